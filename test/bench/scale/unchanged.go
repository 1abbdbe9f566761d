package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// seldomest and oftenest are the intervals of clusters that are hardly ever, and as often as can be, orchestrated.
	seldomest, oftenest = time.Hour, time.Second
	// calming is how long the clusters are left alone when they have come up: the API keeps what changed in the last 75 seconds.
	calming = 90 * time.Second
	// easing is how long clusters are left alone after their interval was changed: that is a change itself.
	easing = 10 * time.Second
)

// runUnchanged measures what an orchestration costs in which nothing changes, of clusters that are ready and whose daemons all run. The
// server is watched three times for as long: with clusters that are hardly ever orchestrated, with the same clusters orchestrated once a
// second, and hardly ever again. What it does more in the second than on the average of the others is what orchestrations cost: heartbeats,
// garbage of the bring-up and the profile itself are in all three.
func (b *bench) runUnchanged(ctx context.Context) error {
	u := &unchanged{Clusters: b.clusters, HostsEach: b.hosts / b.clusters, DaemonsEach: b.result.Daemons / b.clusters}
	var rest [2]window
	var busy window
	for _, phase := range []struct {
		name     string
		interval time.Duration
		pause    time.Duration
		into     *window
	}{{"before", seldomest, calming, &rest[0]}, {"busy", oftenest, easing, &busy}, {"after", seldomest, easing, &rest[1]}} {
		note("each cluster is orchestrated every %s", phase.interval)
		if err := b.setInterval(ctx, phase.interval); err != nil {
			return err
		}
		pause(ctx, phase.pause)
		var err error
		if *phase.into, err = b.window(ctx, phase.name); err != nil {
			return fmt.Errorf("while watching the server: %w", err)
		}
		u.Load = append(u.Load, load())
	}
	u.compare(busy, rest)
	b.result.Unchanged = u
	return nil
}

func (b *bench) setInterval(ctx context.Context, interval time.Duration) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"interval":%q}}`, interval))
	for n := range b.clusters {
		c := &api.StorageCluster{}
		c.Namespace, c.Name = "default", clusterName(n)
		if err := b.api.Patch(ctx, c, patch); err != nil {
			return fmt.Errorf("while setting the interval of %s: %w", c.Name, err)
		}
	}
	return nil
}

// window is what the server did in some time.
type window struct {
	took time.Duration
	// cpu is its own CPU time, asking the part of it in which the driver asked Ceph, and engine that of the engine, asking included.
	cpu, asking, engine time.Duration
	// runs are orchestrations by outcome, writes those to etcd by kind, and started the command lines of processes.
	runs    map[string]float64
	writes  map[string]int
	started []string
}

// window watches the server for a while.
func (b *bench) window(ctx context.Context, name string) (w window, err error) {
	before, err := b.server.metrics(ctx)
	if err != nil {
		return w, err
	}
	begun, used := time.Now(), b.usage()
	group, watching := errgroup.WithContext(ctx)
	file := within(b.dir, "unchanged."+name)
	if b.profile != "" {
		file = b.profile + "." + name
	}
	group.Go(func() error {
		return b.server.profile(watching, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(b.watch.Seconds())), file)
	})
	group.Go(func() (err error) { w.writes, err = b.server.writes(watching, b.watch); return err })
	group.Go(func() error { w.started = startedBy(watching, b.server.cmd.Process.Pid, b.watch); return nil })
	if err := group.Wait(); err != nil {
		return w, err
	}
	w.took, w.cpu = time.Since(begun), b.usage().Own-used.Own
	after, err := b.server.metrics(ctx)
	if err != nil {
		return w, err
	}
	w.runs = outcomes(before, after)
	if w.asking, err = spentIn(ctx, file, asksCeph); err != nil {
		return w, err
	}
	w.engine, err = spentIn(ctx, file, asksCeph+"|"+inEngine)
	return w, err
}

// load is the machine's load average of the last minute.
func load() string {
	text, _ := os.ReadFile("/proc/loadavg") // without it the load is not told
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// outcomes are the orchestrations that ended between two moments, by how.
func outcomes(before, after map[string]float64) map[string]float64 {
	runs := map[string]float64{}
	for name, value := range after {
		if labels, ok := strings.CutPrefix(name, "holdfast_orchestration_duration_seconds_count{"); ok && value > before[name] {
			runs[label(labels, "outcome")] = value - before[name]
		}
	}
	return runs
}
