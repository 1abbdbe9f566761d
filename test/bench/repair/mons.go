package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/bench/pair"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// mons kills the leading mon again and again. What is in quorum is asked from the others, as clients do.
func (b *bench) mons(t hosts.T, rounds int) {
	var answers, whole []float64
	for range rounds {
		leader := b.quorum(t)[0]
		d := b.mon(t, leader)
		host := b.Lab.Hosts()[0]
		for _, h := range b.Lab.Hosts() {
			if h.Name == d.Spec.Host {
				host = h
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		host.Run(t, ctx, "kill", "-9", fmt.Sprint(d.Status.PID))
		start := time.Now()
		b.quorum(t)
		answers = append(answers, time.Since(start).Seconds())
		home.Await(t, "all mons to be in quorum", func() error {
			if in := b.quorum(t); len(in) != 3 || b.mon(t, leader).Status.PID == d.Status.PID {
				return fmt.Errorf("in quorum: %v", in)
			}
			return nil
		})
		whole = append(whole, time.Since(start).Seconds())
		cancel()
	}
	a, w := pair.SpreadOf(answers), pair.SpreadOf(whole)
	fmt.Printf("leading mon killed: commands are answered after %.1f s (%.1f to %.1f), all mons in quorum after %.1f s (%.1f to %.1f), of which Ceph's client takes 0.3 s\n",
		a.Median, a.Min, a.Max, w.Median, w.Min, w.Max)
}

// quorum are the names of the mons in quorum, the leader's first.
func (b *bench) quorum(t hosts.T) []string {
	t.Helper()
	var q struct {
		Leader string   `json:"quorum_leader_name"`
		Names  []string `json:"quorum_names"`
	}
	if err := json.Unmarshal([]byte(b.shell(t, "ceph", "quorum_status", "-f", "json")), &q); err != nil {
		t.Fatalf("while reading the quorum: %v", err)
	}
	in := []string{q.Leader}
	for _, name := range q.Names {
		if name != q.Leader {
			in = append(in, name)
		}
	}
	return in
}

func (b *bench) mon(t hosts.T, id string) *api.Daemon {
	t.Helper()
	out, err := b.Holdfast("get", "daemons", "ceph-mon-"+id, "-o", "json")
	var d api.Daemon
	if err == nil {
		err = json.Unmarshal([]byte(out), &d)
	}
	if err != nil {
		t.Fatalf("while reading mon.%s: %v", id, err)
	}
	return &d
}
