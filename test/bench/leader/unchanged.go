package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-storage/holdfast/test/bench/stat"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

func errNoLeader(err error) error { return errors.Join(errors.New("nobody leads"), err) }

// runsMetric counts the orchestrations that a server has started.
const runsMetric = "holdfast_orchestrations_total"

// asksRelease is the program that the agent, which is of the same process, runs once a minute to see which release is installed. No
// orchestration starts it.
const asksRelease = "ceph-mon"

// settling is how long servers are left alone before they are watched: what was set in motion comes to rest.
const settling = 5 * time.Second

// measureUnchanged declares clusters that wait for their first node, and watches the leader while it orchestrates them. There is no
// storage system to be asked: what is measured is the engine's own part, and the API's.
func measureUnchanged(t hosts.T, servers *loopback.Servers, o options) unchanged {
	t.Helper()
	leader := servers.Named(t, leaderOf(t, servers.Server(1)))
	time.Sleep(settling)
	idle := watchServer(t, leader, o.watch)
	manifest := clustersOf(o.clusters)
	if out, err := leader.HoldfastWith(manifest, "apply", "--wait=false", "-f", "-"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	home.Await(t, "all clusters to have been orchestrated", func() error {
		runs, err := leader.Metric(context.Background(), runsMetric)
		if err == nil && int(runs) < 3*o.clusters {
			err = fmt.Errorf("%.0f runs", runs)
		}
		return err
	})
	time.Sleep(settling)
	busy := watchServer(t, leader, o.watch)
	u := unchanged{Clusters: o.clusters, Runs: busy.runs - idle.runs, Writes: busy.writes - idle.writes, Started: busy.started}
	u.CPU = float64((busy.cpu - idle.cpu).Microseconds()) / 1000 / float64(max(u.Runs, 1))
	u.Schedule = float64(busy.schedule) / float64(max(u.Runs, 1))
	return u
}

func clustersOf(count int) string {
	var b strings.Builder
	for n := range count {
		fmt.Fprintf(&b, "---\napiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c%d}\nspec: {type: ceph, ceph: {}, interval: 1s}\n", n)
	}
	return b.String()
}

// watched is what a server has done in some time.
type watched struct {
	cpu                             time.Duration
	runs, writes, schedule, started int
}

func watchServer(t hosts.T, s *loopback.Server, d time.Duration) (w watched) {
	t.Helper()
	etcd := s.Etcd(t)
	defer etcd.Close()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	changes := etcd.Watch(ctx, "/registry/", clientv3.WithPrefix(), clientv3.WithCreatedNotify())
	<-changes
	runs, before := counts(t, s)
	old, started := childrenOf(s.PID()), map[string]string{}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for open := true; open; {
		select {
		case answer, ok := <-changes:
			open = ok
			w.count(answer.Events)
		case <-tick.C:
			for _, child := range childrenOf(s.PID()) {
				if name := nameOf(child); name != "" && !slices.Contains(old, child) {
					started[child] = name // as it was seen last: a process bears its parent's name at first
				}
			}
		}
	}
	for _, name := range started {
		if name != asksRelease {
			w.started++
			t.Logf("%s started a process: %s", s.Name, name)
		}
	}
	runsAfter, after := counts(t, s)
	w.cpu, w.runs = after.Own+after.Children-before.Own-before.Children, runsAfter-runs
	return w
}

// count sorts writes of what belongs to the clusters: it lies in their namespace, or has that in its name.
func (w *watched) count(events []*clientv3.Event) {
	for _, e := range events {
		switch key := string(e.Kv.Key); {
		case strings.Contains(key, "/storageclusters/"):
			w.schedule++
		case strings.Contains(key, "/default/") || strings.Contains(key, "-default."):
			w.writes++
		}
	}
}

// nameOf is what a process is called, or empty when it has ended.
func nameOf(pid string) string {
	name, _ := os.ReadFile("/proc/" + pid + "/comm")
	return strings.TrimSpace(string(name))
}

func counts(t hosts.T, s *loopback.Server) (runs int, u stat.Usage) {
	t.Helper()
	n, err := s.Metric(context.Background(), runsMetric)
	if err == nil {
		u, err = stat.Of(s.PID())
	}
	if err != nil {
		t.Fatalf("%v", err)
	}
	return int(n), u
}

// childrenOf lists the processes that a process has started and that run now.
func childrenOf(pid int) []string {
	var all []string
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // a process that has ended has no children
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		all = append(all, strings.Fields(string(text))...)
	}
	return all
}
