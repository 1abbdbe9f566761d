package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/bench/stat"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// roundTimeout bounds one bring-up.
const roundTimeout = 3 * time.Minute

// cpu is CPU time by who used it.
type cpu map[string]time.Duration

// round is one bring-up.
type round struct {
	Side string `json:"side"`
	// Seconds is the time of the whole command.
	Seconds float64 `json:"seconds"`
	// Milestones say after how many seconds something was first seen.
	Milestones map[string]float64 `json:"milestones"`
	// CPU says who used how many seconds of CPU time.
	CPU map[string]float64 `json:"cpu"`
}

// bench is one benchmark under way. The same hosts and disks serve both sides, and Holdfast's servers run all the time, so
// that both sides have them in the background.
type bench struct {
	lab      *hosts.Lab
	script   *script
	holdfast *holdfast // nil when only the script is measured
}

// measure does all rounds. The sides take turns, and in turns at being the first.
func measure(t hosts.T, o options, binary string) *result {
	lab := hosts.New(t, hosts.Options{Count: mons, Disks: 1, Share: []string{filepath.Dir(binary)}})
	b := &bench{lab: lab, script: &script{lab: lab, dir: filepath.Join(lab.Dir, "script")}}
	if o.side != pair.Script {
		b.holdfast = newHoldfast(t, lab, binary)
	}
	r := &result{Load: stat.Load()}
	for n, side := range pair.Turns(o.rounds, o.side) {
		one := b.round(t, side, func() {
			if n == o.rounds && side == pair.Holdfast && o.idle > 0 {
				r.Idle = b.idle(t, o.idle)
			}
		})
		if n > 0 {
			r.Rounds = append(r.Rounds, one)
		}
		fmt.Fprintf(os.Stderr, "round %d of %d: %s %.2f s\n", n, o.rounds, side, one.Seconds)
	}
	r.conclude()
	return r
}

// round brings the cluster up once, from nothing, calls meanwhile when it is healthy, and removes it.
func (b *bench) round(t hosts.T, side string, meanwhile func()) round {
	b.freshDisks(t)
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	bringUp, remove := b.script.run, b.script.remove
	if side == pair.Holdfast {
		bringUp, remove = b.holdfast.run, func() error { return b.holdfast.remove(t) }
	}
	before, err := b.used()
	if err != nil {
		t.Fatalf("%v", err)
	}
	watching, end := context.WithCancel(ctx)
	defer end()
	seen := observe(watching, b.lab)
	start := time.Now()
	used, err := bringUp(ctx)
	took := time.Since(start)
	end()
	times, watchErr := seen()
	if err = errors.Join(err, watchErr); err != nil {
		t.Fatalf("%v", err)
	}
	after, err := b.used()
	if err != nil {
		t.Fatalf("%v", err)
	}
	maps.Copy(used, after.minus(before))
	times[done] = took
	meanwhile()
	if err := remove(); err != nil {
		t.Fatalf("%v", err)
	}
	return round{Side: side, Seconds: took.Seconds(), Milestones: seconds(times), CPU: seconds(used)}
}

// freshDisks empties the disks, and waits until Holdfast's servers know and have come to rest.
func (b *bench) freshDisks(t hosts.T) {
	ctx, cancel := context.WithTimeout(context.Background(), roundTimeout)
	defer cancel()
	for _, h := range b.lab.Hosts() {
		if err := h.Disk(0).Discard(ctx); err != nil {
			t.Fatalf("%v", err)
		}
	}
	if b.holdfast != nil {
		b.holdfast.AwaitFreeDisks(t)
		b.holdfast.awaitRest(t)
	}
}

const (
	cephDaemons  = "Ceph's daemons"
	wholeMachine = "whole machine"
)

// used is what was used so far by those who live longer than a round, and by Ceph's daemons.
func (b *bench) used() (cpu, error) {
	used := cpu{}
	if b.holdfast != nil {
		servers, err := b.holdfast.servers()
		if err != nil {
			return nil, err
		}
		used = servers
	}
	busy, err := machineBusy()
	if err != nil {
		return nil, err
	}
	used[wholeMachine] = busy
	all, err := pids()
	if err != nil {
		return nil, err
	}
	namespaces := map[string]bool{}
	for _, h := range b.lab.Hosts() {
		namespaces[namespaceOf(h.PID())] = true
	}
	for _, pid := range all {
		if !readProcess(pid).daemon() || !namespaces[namespaceOf(pid)] {
			continue
		}
		if u, err := stat.Of(pid); err == nil {
			used[cephDaemons] += u.Own
		}
	}
	return used, nil
}

func (c cpu) minus(before cpu) cpu {
	d := cpu{}
	for who, now := range c {
		d[who] = now - before[who]
	}
	return d
}

func seconds(times map[string]time.Duration) map[string]float64 {
	s := map[string]float64{}
	for name, t := range times {
		s[name] = t.Seconds()
	}
	return s
}
