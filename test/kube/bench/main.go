// Command bench measures Ceph in pods beside Ceph on bare hosts, in one run: 'make bench-kube'.
// Both labs have three hosts with one disk each, and get the same manifest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/kube"
)

// watched is how long the operator is watched at rest.
const watched = time.Minute

func main() {
	hosts.MaybeInit()
	if err := hosts.Script(os.Stdout, bench); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func bench(t hosts.T) {
	bare := bareOnline(t)
	k := kube.New(t, kube.Options{Nodes: 3, Disks: 1})
	k.Install(t)
	pods := podsOnline(t, k)
	fmt.Printf("time from apply to ONLINE: bare hosts %.1f s, pods %.1f s, ratio %.2f\n", bare.Seconds(),
		pods.Seconds(), pods.Seconds()/bare.Seconds())
	atRest(t, k)
}

// bareOnline is the time on bare hosts.
func bareOnline(t hosts.T) time.Duration {
	binary, err := filepath.Abs("bin/holdfast")
	if err != nil {
		t.Fatalf("bench: %v", err)
	}
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1})
	h := home.Start(t, lab, binary)
	h.AwaitHosts(t, 3)
	h.AwaitFreeDisks(t)
	began := time.Now()
	h.Apply(t, home.SpecFor(lab, 3, 2, 1).YAML())
	awaitOnline(t, func(context.Context) (string, error) { return h.Holdfast("get", "storagestatuses") })
	took := time.Since(began)
	h.Wipe(t, home.SpecFor(lab, 3, 2, 1).YAML())
	return took
}

// podsOnline is the time in pods.
func podsOnline(t hosts.T, k *kube.Cluster) time.Duration {
	spec := home.Spec{Mons: 3, Mgrs: 2, DeletionPolicy: "Wipe", Config: home.Quick, Devices: map[string][]string{}}
	for _, n := range k.Nodes() {
		spec.Devices[n.Name] = []string{n.Disk(0).ID()}
	}
	began := time.Now()
	k.Apply(t, spec.YAML())
	awaitOnline(t, func(ctx context.Context) (string, error) { return k.Try(ctx, "", "get", "storagestatuses") })
	return time.Since(began)
}

func awaitOnline(t hosts.T, status func(context.Context) (string, error)) {
	home.AwaitFor(t, 5*time.Minute, "ONLINE", func() error {
		out, err := status(context.Background())
		if err == nil && !strings.Contains(out, "ONLINE") {
			err = errors.New(out)
		}
		return err
	})
}

// atRest says what the operator needs while nothing changes, and how often the API server writes
// then.
func atRest(t hosts.T, k *kube.Cluster) {
	operator := func() map[string]float64 {
		name := leaderPod(t, k)
		return series(k.Kubectl(t, "get", "--raw",
			"/api/v1/namespaces/holdfast-system/pods/"+name+":8081/proxy/metrics"))
	}
	server := func() map[string]float64 { return series(k.Kubectl(t, "get", "--raw", "/metrics")) }
	before, wrote := operator(), server()
	time.Sleep(watched) // what is measured is what happens in this time
	after, writes := operator(), server()
	fmt.Printf("the operator that leads, at rest: %.0f MiB, %.1f %% of one processor\n",
		after["process_resident_memory_bytes"]/(1<<20),
		100*(after["process_cpu_seconds_total"]-before["process_cpu_seconds_total"])/watched.Seconds())
	orchestrations := sum(after, "holdfast_orchestrations_total") - sum(before, "holdfast_orchestrations_total")
	fmt.Printf("orchestrations in %s: %.0f; writes of holdfast.io kinds meanwhile:\n", watched, orchestrations)
	for name, n := range writes {
		if d := n - wrote[name]; d > 0 && strings.HasPrefix(name, "apiserver_request_total{") && strings.Contains(name, `group="holdfast.io"`) &&
			!strings.Contains(name, `verb="GET"`) && !strings.Contains(name,
			`verb="LIST"`) && !strings.Contains(name, `verb="WATCH"`) {
			fmt.Printf("  %4.0f %s\n", d, name)
		}
	}
}

func leaderPod(t hosts.T, k *kube.Cluster) string {
	holder := k.Kubectl(t, "-n", "holdfast-system", "get", "lease", "leader", "-o", "jsonpath={.spec.holderIdentity}")
	name, _, _ := strings.Cut(holder, "_")
	return name
}

// series reads metrics in Prometheus' text format.
func series(text string) map[string]float64 {
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		cut := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || cut < 0 {
			continue
		}
		if value, err := strconv.ParseFloat(strings.TrimSpace(line[cut:]), 64); err == nil {
			all[line[:cut]] = value
		}
	}
	return all
}

// sum is that of all series of a metric.
func sum(all map[string]float64, name string) (total float64) {
	for key, value := range all {
		if key == name || strings.HasPrefix(key, name+"{") {
			total += value
		}
	}
	return total
}
