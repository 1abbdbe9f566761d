package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
)

// settling is how long the fleet is left alone before it is watched: its server keeps what changed in the last 75 seconds, and takes some
// time to see that it is not busy any more.
const settling = 90 * time.Second

// sampling is how often the server's metrics are read: reading them costs it some milliseconds.
const sampling = 5 * time.Second

// bench is a measurement that goes on.
type bench struct {
	options
	server *server
	cephs  *cephs
	fleet  *fleet
	api    client.WithWatch
	result *result
}

// measure does everything, and returns what was measured also when the last step failed: it starts the server, has the hosts join, brings the clusters up, watches them at rest, ends
// daemons, and starts the server anew.
func measure(ctx context.Context, o options) (_ *result, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b := &bench{options: o, cephs: newCephs(), result: &result{Hosts: o.hosts, Daemons: o.hosts*o.disks + o.clusters*(mons+mgrs), Clusters: o.clusters}}
	if err := b.cephs.serve(ctx, within(o.dir, cephSocket)); err != nil {
		return nil, err
	}
	go b.cephs.run(ctx)
	if b.server, err = startServer(ctx, o.dir); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.server.stop()) }()
	if b.api, err = newClient(b.server.config); err != nil {
		return nil, err
	}
	defer func() {
		if b.fleet != nil {
			b.fleet.stopAll()
		}
	}()
	steps := []func(context.Context) error{b.join, b.bringUp, b.quiet, b.react, b.later, b.restart}
	if o.unchanged {
		steps = []func(context.Context) error{b.join, b.bringUp, b.runUnchanged}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return b.result, err
		}
	}
	return b.result, nil
}

// join has all hosts join, and waits until the leader hears all of them.
func (b *bench) join(ctx context.Context) (err error) {
	note("%d hosts join", b.hosts)
	read, err := b.meter(ctx)
	if err != nil {
		return err
	}
	if b.fleet, err = startFleet(ctx, b.options, b.server, b.cephs); err != nil {
		return err
	}
	if err := b.await(ctx, "all agents to be heard", func() (bool, string, error) { return b.heard(ctx) }); err != nil {
		return err
	}
	b.result.Join, err = read()
	return err
}

// bringUp declares the clusters and waits until all are ready.
func (b *bench) bringUp(ctx context.Context) error {
	note("%d clusters with %d daemons come up", b.clusters, b.result.Daemons)
	stopProfile := func() error { return nil }
	read, err := b.meter(ctx)
	if err != nil {
		return err
	}
	if err := b.declareClusters(ctx); err != nil {
		return err
	}
	for from := 0; from < b.hosts; from += b.wave {
		to := min(from+b.wave, b.hosts)
		if to == b.hosts { // the last wave costs most: there are the most objects
			stopProfile = b.startProfile(ctx, ".up", profiledUp)
		}
		if err := b.declareNodes(ctx, from, to); err != nil {
			return err
		}
		what := fmt.Sprintf("all clusters to be ready with %d of %d hosts", to, b.hosts)
		if err := b.await(ctx, what, func() (bool, string, error) { return b.ready(ctx, to) }); err != nil {
			return err
		}
	}
	b.result.BringUp, err = read()
	return errors.Join(err, stopProfile())
}

// profiledUp is how much of the last wave is profiled.
const profiledUp = 20 * time.Second

// quiet watches the fleet while nothing happens.
func (b *bench) quiet(ctx context.Context) error {
	pause(ctx, settling)
	note("nothing happens for %s", b.watch)
	stopProfile := b.startProfile(ctx, ".quiet", b.watch)
	before, err := b.server.metrics(ctx)
	if err != nil {
		return err
	}
	begun, used, agents := time.Now(), b.usage(), own()
	for time.Since(begun) < b.watch {
		pause(ctx, sampling)
		if err := b.sample(ctx); err != nil {
			return err
		}
	}
	took, spent := time.Since(begun), b.usage().Own-used.Own
	after, err := b.server.metrics(ctx)
	if err != nil {
		return err
	}
	b.result.Rest, b.result.AgentCores = b.resting(spent, took, after), (own().Own-agents.Own).Seconds()/took.Seconds()
	b.result.compare(before, after, took)
	if b.profile != "" {
		err = b.server.profile(ctx, "/debug/pprof/heap", b.profile+".heap")
	}
	return errors.Join(err, stopProfile())
}

// later watches what the server uses when nothing happens, after some daemons and hosts have changed: what the API remembers of a bring-up it
// keeps until something of the same kind changes.
func (b *bench) later(ctx context.Context) error {
	note("nothing happens again")
	if err := b.awaitReady(ctx); err != nil {
		return err
	}
	used, err := b.rest(ctx)
	b.result.Later = used
	return err
}

func (b *bench) awaitReady(ctx context.Context) error {
	return b.await(ctx, "all clusters to be ready", func() (bool, string, error) { return b.ready(ctx, b.hosts) })
}

// rest leaves the fleet alone, and takes what the server uses.
func (b *bench) rest(ctx context.Context) (resting, error) {
	pause(ctx, settling)
	begun, used := time.Now(), b.usage()
	pause(ctx, b.watch)
	took, spent := time.Since(begun), b.usage().Own-used.Own
	now, err := b.server.metrics(ctx)
	return b.resting(spent, took, now), err
}

// restart starts the server anew with the fleet as it is, and watches what it uses when nothing happens: there is nothing left of the bring-up
// then, as on most days of a fleet.
func (b *bench) restart(ctx context.Context) error {
	note("the server is started anew")
	if err := b.server.restart(ctx); err != nil {
		return err
	}
	if err := b.await(ctx, "all agents to be heard", func() (bool, string, error) { return b.heard(ctx) }); err != nil {
		return err
	}
	if err := b.awaitReady(ctx); err != nil {
		return err
	}
	used, err := b.rest(ctx)
	b.result.Restarted = used
	return err
}

func (b *bench) resting(spent, took time.Duration, metrics map[string]float64) resting {
	m := memoryOf(metrics)
	if files, err := stat.FilePages(b.server.cmd.Process.Pid); err == nil {
		m.Files = float64(files) / (1 << 20)
	}
	return resting{Cores: spent.Seconds() / took.Seconds(), ResidentMiB: float64(b.usage().Resident) / (1 << 20), Memory: m}
}

// sample notes how old the newest report of each host is.
func (b *bench) sample(ctx context.Context) error {
	now, err := b.server.metrics(ctx)
	if err != nil {
		return err
	}
	a := &b.result.Age
	a.P50 = max(a.P50, now[`holdfast_agent_report_age_seconds{quantile="0.5"}`])
	a.P99 = max(a.P99, now[`holdfast_agent_report_age_seconds{quantile="0.99"}`])
	a.Max = max(a.Max, now[`holdfast_agent_report_age_seconds{quantile="1"}`])
	if n := int(now["holdfast_agent_report_age_seconds_count"]); n <= b.hosts {
		return fmt.Errorf("the leader has heard %d hosts, and there are %d and its own", n, b.hosts)
	}
	return nil
}

// startProfile takes CPU profiles of the server and of the agents in the background, if they are wanted. The function that it
// returns waits for them.
func (b *bench) startProfile(ctx context.Context, suffix string, d time.Duration) (wait func() error) {
	if b.profile == "" {
		return func() error { return nil }
	}
	file, err := os.Create(b.profile + suffix + ".agents")
	if err == nil {
		err = pprof.StartCPUProfile(file)
	}
	done := make(chan error, 1)
	go func() {
		done <- b.server.profile(ctx, fmt.Sprintf("/debug/pprof/profile?seconds=%d", int(d.Seconds())), b.profile+suffix)
	}()
	return func() error {
		pprof.StopCPUProfile()
		return errors.Join(err, file.Close(), <-done)
	}
}

// usage is what the server has used; nothing when it has ended, which other steps tell.
func (b *bench) usage() stat.Usage {
	u, _ := stat.Of(b.server.cmd.Process.Pid)
	return u
}

// patience bounds each wait, and telling is how often it is said how far things are.
const patience, telling = 20 * time.Minute, 10 * time.Second

// await calls check until it says that all is done.
func (b *bench) await(ctx context.Context, what string, check func() (done bool, state string, err error)) error {
	told := time.Now()
	for begun := time.Now(); time.Since(begun) < patience; {
		done, state, err := check()
		if done || err != nil {
			return err
		}
		if time.Since(told) > telling {
			told = time.Now()
			note("waiting for %s: %s", what, state)
		}
		if pause(ctx, 500*time.Millisecond); ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return fmt.Errorf("waited %s for %s (see %s)", patience, what, within(b.dir, "server.log"))
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

func seconds(d time.Duration) float64 { return d.Round(time.Millisecond).Seconds() }
