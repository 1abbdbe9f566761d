package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/bench/stat"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

const (
	// bringUpBound is the highest median of the pairs' ratios, with 'ceph orch' / without, that
	// passes, idleBound how much the module may cost at rest, in percent of a core.
	bringUpBound = 1.05
	idleBound    = 0.1
	// bringUpLimit bounds one bring-up.
	bringUpLimit = 3 * time.Minute
	// settling is how long a cluster is left alone before its mgr is watched.
	settling = 15 * time.Second
)

// sides are clusters without and with 'ceph orch'.
var sides = []string{"Disabled", "Enabled"}

// clusters brings clusters up on the same hosts, one after the other.
type clusters struct {
	*home.Home
	verbose bool
	// seconds are the times of bring-ups, and idle what the mgr used at rest, by sides.
	seconds map[string][]float64
	idle    map[string]idle
}

func cephPart(o options, w *tabwriter.Writer) error {
	binary, err := pair.Program(o.binary, true)
	if err != nil {
		return err
	}
	before := stat.Load()
	c := &clusters{verbose: o.verbose, seconds: map[string][]float64{}, idle: map[string]idle{}}
	err = hosts.Script(os.Stderr, func(t hosts.T) {
		lab := hosts.New(t, hosts.Options{Count: 3, Disks: 1, Share: []string{filepath.Dir(binary)}})
		c.Home = home.Start(t, lab, binary)
		for n := range o.pairs + 1 { // the first pair warms the machine's caches
			for i := range sides {
				side := sides[(i+n)%len(sides)]
				c.round(t, side, n > 0, n == o.pairs && o.idle > 0, o.idle)
			}
		}
	})
	if err != nil {
		return err
	}
	return errors.Join(c.print(w, o, before), w.Flush())
}

// round brings a cluster up and removes it.
func (c *clusters) round(t hosts.T, side string, counts, watched bool, watch time.Duration) {
	t.Helper()
	spec := home.SpecFor(c.Lab, 3, 2, 1)
	spec.Orch = side
	took := c.bringUp(t, spec)
	if counts {
		c.seconds[side] = append(c.seconds[side], took.Seconds())
	}
	fmt.Fprintf(os.Stderr, "%s: %.2f s\n", side, took.Seconds())
	if watched {
		<-time.After(settling)
		used, err := watchMgr(c.Lab, watch)
		if err != nil {
			t.Fatalf("%v", err)
		}
		c.idle[side] = used
	}
	c.Wipe(t, spec.YAML())
}

// bringUp applies the spec and waits as a person would.
func (c *clusters) bringUp(t hosts.T, spec home.Spec) time.Duration {
	t.Helper()
	for _, h := range c.Lab.Hosts() {
		ctx, cancel := context.WithTimeout(context.Background(), bringUpLimit)
		if err := h.Disk(0).Discard(ctx); err != nil {
			t.Fatalf("%v", err)
		}
		cancel()
	}
	c.AwaitFreeDisks(t)
	manifest := filepath.Join(c.Lab.Dir, "spec.yaml")
	if err := os.WriteFile(manifest, []byte(spec.YAML()), 0o644); err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), bringUpLimit)
	defer cancel()
	said := &stamped{start: time.Now(), quiet: !c.verbose}
	cmd := c.Lab.Host(1).Command(ctx, c.Binary, "apply", "-f", manifest, "--wait")
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Run(); err != nil {
		t.Fatalf("holdfast apply: %v\n%s", err, said.text.String())
	}
	return time.Since(said.start)
}

// print prints the tables, and judges.
func (c *clusters) print(w *tabwriter.Writer, o options, load string) error {
	off, on := pair.SpreadOf(c.seconds[sides[0]]), pair.SpreadOf(c.seconds[sides[1]])
	fmt.Fprintf(w, "\nFrom nothing to ONLINE, by spec.ceph.orch.state: 3 mons, 2 mgrs, 3 OSDs\n")
	fmt.Fprintf(w, "load average before: %s\n\npair\tDisabled s\tEnabled s\tratio\t\n", load)
	var ratios []float64
	for i, d := range c.seconds[sides[0]] {
		e := c.seconds[sides[1]][i]
		ratios = append(ratios, e/d)
		fmt.Fprintf(w, "%d\t%.2f\t%.2f\t%.2f\t\n", i+1, d, e, e/d)
	}
	ratio := pair.SpreadOf(ratios)
	fmt.Fprintf(w, "median\t%.2f\t%.2f\t%.2f\t\n", off.Median, on.Median, ratio.Median)
	fmt.Fprintf(w, "least\t%.2f\t%.2f\t%.2f\t\n", off.Min, on.Min, ratio.Min)
	fmt.Fprintf(w, "most\t%.2f\t%.2f\t%.2f\t\n", off.Max, on.Max, ratio.Max)
	var failed error
	if ratio.Median > bringUpBound {
		failed = fmt.Errorf("a cluster takes %.2f times as long with 'ceph orch': more than %.2f", ratio.Median, bringUpBound)
	}
	if o.idle > 0 {
		failed = errors.Join(failed, c.printIdle(w, o.idle))
	}
	if o.noBound {
		return nil
	}
	return failed
}

func (c *clusters) printIdle(w *tabwriter.Writer, watch time.Duration) error {
	off, on := c.idle[sides[0]], c.idle[sides[1]]
	fmt.Fprintf(w, "\nThe active mgr at rest for %s, in %% of a core\n\n\tDisabled\tEnabled\tdifference\t\n", watch)
	fmt.Fprintf(w, "ceph-mgr\t%.2f\t%.2f\t%+.2f\t\n", off.mgr, on.mgr, on.mgr-off.mgr)
	fmt.Fprintf(w, "its thread %s\t%.3f\t%.3f\t%+.3f\t\n", moduleThread, off.module, on.module, on.module-off.module)
	if on.module > idleBound {
		return fmt.Errorf("the module takes %.3f %% of a core at rest, and the bound is %.1f %%", on.module, idleBound)
	}
	return nil
}
