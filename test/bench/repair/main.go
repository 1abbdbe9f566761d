// Command repair measures what Holdfast takes to take an OSD from a cluster that holds data, and to make one anew on another disk after
// its own failed, as ratios to the shortest sequences by hand (byhand.sh): on the same hosts, in the same cluster, in alternation. It also
// measures mons: from kill -9 of the leader until commands are answered again, and until all are in quorum again.
package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const (
	// disks is how many each host has: the last one of the last host is for the OSD that is made by hand.
	disks = 3
	// limit bounds each step.
	limit = 4 * time.Minute
)

func main() {
	hosts.MaybeInit()
	rounds := flag.Int("rounds", 3, "how many times each is measured, after one time that does not count")
	program := flag.String("binary", "bin/holdfast", "the holdfast program, as 'make build' leaves it")
	flag.Parse()
	if err := run(*rounds, *program); err != nil {
		fmt.Fprintln(os.Stderr, "repair:", err)
		os.Exit(1)
	}
}

func run(rounds int, program string) error {
	binary, err := pair.Program(program, true)
	if err != nil {
		return err
	}
	return hosts.Script(os.Stderr, func(t hosts.T) {
		b := newBench(t, binary)
		removals, replacements := pair.Times{}, pair.Times{}
		for n, side := range pair.Turns(rounds, "") {
			removed, replaced := b.turn(t, side)
			fmt.Printf("round %d, %-8s  removal %5.1f s, replacement %5.1f s\n", n, side, removed.Seconds(), replaced.Seconds())
			if n > 0 {
				removals[side] = append(removals[side], removed.Seconds())
				replacements[side] = append(replacements[side], replaced.Seconds())
			}
		}
		tell("removal of an OSD, until its data lies elsewhere and the disk is free", removals)
		tell("replacement of one that failed, until all data is where it belongs", replacements)
		b.mons(t, rounds)
	})
}

func tell(what string, times pair.Times) {
	if ratio := times.Ratio(); ratio != nil {
		fmt.Printf("%s: Holdfast takes %.2f times as long as by hand (%.2f to %.2f)\n", what, ratio.Median, ratio.Min, ratio.Max)
	}
}

// bench is a cluster with data in it.
type bench struct {
	*home.Home
	spec home.Spec
	last *hosts.Host
	// dir is where the OSD that is made by hand has its files, on the last host.
	dir string
}

func newBench(t hosts.T, binary string) *bench {
	lab := hosts.New(t, hosts.Options{Count: 3, Disks: disks})
	b := &bench{Home: home.Start(t, lab, binary), spec: home.SpecFor(lab, 3, 2, disks), last: lab.Host(3), dir: "/var/lib/byhand"}
	// Ceph splitting placement groups in the middle would be measured, too.
	b.spec.Config = maps.Clone(b.spec.Config)
	b.spec.Config["osd_pool_default_pg_autoscale_mode"], b.spec.Config["osd_pool_default_pg_num"] = "off", "32"
	b.spec.Devices[b.last.Name] = b.spec.Devices[b.last.Name][:disks-1]
	if err := os.WriteFile(b.script(), sequences, 0o755); err != nil {
		t.Fatalf("%v", err)
	}
	b.Apply(t, b.spec.YAML()+"---\napiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: data}\nspec: {cluster: ceph}\n", "--wait")
	b.shell(t, "bash", "-c", "rados -p data bench 60 write --no-cleanup --max-objects 64 -b 4M >/dev/null")
	return b
}

// script is where the sequences by hand lie.
func (b *bench) script() string { return filepath.Join(b.Lab.Dir, "byhand.sh") }

// shell runs a command on the last host, as the administrator of Ceph.
func (b *bench) shell(t hosts.T, command ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return b.last.Run(t, ctx, b.Binary, append([]string{"ceph", "shell", "--"}, command...)...)
}

// turn has one side remove an OSD of the last host and make it anew, then replace it, and leaves the cluster as it was.
func (b *bench) turn(t hosts.T, side string) (removed, replaced time.Duration) {
	if side == pair.Script {
		return b.byHand(t)
	}
	return b.byHoldfast(t)
}
