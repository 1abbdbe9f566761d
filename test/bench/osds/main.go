// Command osds measures how long Holdfast takes to make twelve OSDs on three hosts, as a ratio to how long one takes, in the same cluster.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const (
	// perHost is how many of the twelve each of the three hosts has. Each has one disk more from the start, and the first one more for
	// the OSD that is made alone.
	perHost = 4
	// limit bounds each wait.
	limit = 3 * time.Minute
)

func main() {
	hosts.MaybeInit()
	rounds := flag.Int("rounds", 3, "how many times both are measured")
	binary := flag.String("binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	bound := flag.Float64("bound", 0, "end with an error if the median ratio is higher; 0 for none, as it depends on the number of cores")
	flag.Parse()
	if err := run(*rounds, *binary, *bound); err != nil {
		fmt.Fprintln(os.Stderr, "osds:", err)
		os.Exit(1)
	}
}

func run(rounds int, binary string, bound float64) error {
	binary, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	var ratios []float64
	err = hosts.Script(os.Stderr, func(t hosts.T) {
		lab := hosts.New(t, hosts.Options{Count: 3, Disks: perHost + 2, Share: []string{filepath.Dir(binary)}})
		h := home.Start(t, lab, binary)
		for range rounds {
			one, twelve := measure(t, h)
			ratios = append(ratios, twelve.Seconds()/one.Seconds())
			fmt.Printf("1 OSD %.2f s, 12 OSDs %.2f s: %.2f times as long\n", one.Seconds(), twelve.Seconds(), twelve.Seconds()/one.Seconds())
		}
	})
	if err != nil {
		return err
	}
	slices.Sort(ratios)
	median := ratios[len(ratios)/2]
	fmt.Printf("\nTime for 12 OSDs on 3 hosts / time for 1, until all are up: median %.2f of %d rounds\n", median, rounds)
	if bound > 0 && median > bound {
		return fmt.Errorf("that is more than %.2f", bound)
	}
	return nil
}

// measure brings a cluster of three OSDs up, and adds one and then twelve.
func measure(t hosts.T, h *home.Home) (one, twelve time.Duration) {
	spec := home.SpecFor(h.Lab, 1, 1, 1)
	h.Apply(t, spec.YAML(), "--wait", "--timeout", limit.String())
	one = add(t, h, &spec, 4, func(x *hosts.Host) []*hosts.Disk {
		if x.Name == h.Lab.Host(1).Name {
			return []*hosts.Disk{x.Disk(1)}
		}
		return nil
	})
	twelve = add(t, h, &spec, 16, func(x *hosts.Host) (disks []*hosts.Disk) {
		for n := range perHost {
			disks = append(disks, x.Disk(2+n))
		}
		return disks
	})
	h.Wipe(t, spec.YAML())
	h.AwaitFreeDisks(t)
	return one, twelve
}

// add declares disks and waits until so many OSDs are up, by Ceph's own word.
func add(t hosts.T, h *home.Home, spec *home.Spec, up int, disks func(*hosts.Host) []*hosts.Disk) time.Duration {
	for _, host := range h.Lab.Hosts() {
		for _, d := range disks(host) {
			spec.Devices[host.Name] = append(spec.Devices[host.Name], d.ID())
		}
	}
	start := time.Now()
	h.Apply(t, spec.YAML())
	home.Await(t, fmt.Sprintf("%d OSDs to be up", up), func() error {
		out, err := h.Holdfast("get", "storagestatuses", "ceph", "-o", "json")
		if err != nil {
			return err
		}
		var s api.StorageStatus
		if err := json.Unmarshal([]byte(out), &s); err != nil {
			return err
		}
		if s.Status.Ceph == nil || int(s.Status.Ceph.OSDsUp) < up {
			return fmt.Errorf("%+v", s.Status.Ceph)
		}
		return nil
	})
	return time.Since(start)
}
