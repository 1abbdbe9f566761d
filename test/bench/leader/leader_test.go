package main

import (
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestPercentile(t *testing.T) {
	n := []float64{3, 1, 2, 10, 4, 5, 6, 7, 8, 9}
	for p, want := range map[float64]float64{0: 1, .5: 5, .9: 9, 1: 10} {
		if got := percentile(n, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	good := result{FailOvers: []float64{5, 6.9}, Unchanged: unchanged{Runs: 100, CPU: 2, Schedule: 1}}
	if err := good.judge(); err != nil {
		t.Error(err)
	}
	for want, r := range map[string]result{
		"a fail-over took 7.10 s": {FailOvers: []float64{5, 7.1}},
		"12.00 ms of CPU time":    {Unchanged: unchanged{CPU: 12}},
		"wrote 3 times":           {Unchanged: unchanged{Writes: 3}},
		"started 1 processes":     {Unchanged: unchanged{Started: 1}},
	} {
		if err := r.judge(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestCount: what goes on whatever is orchestrated, such as the word of agents on their hosts, is no write of an orchestration.
func TestCount(t *testing.T) {
	var events []*clientv3.Event
	for _, key := range []string{
		"/registry/coordination.k8s.io/leases/holdfast-system/leader", "/registry/holdfast.io/hosts/h1",
		"/registry/holdfast.io/storageclusters/default/c1", "/registry/holdfast.io/daemons/default/d1", "/registry/configmaps/holdfast-system/told-default.c1",
		"/registry/holdfast.io/clusterevents/holdfast-system/control-plane-1",
	} {
		events = append(events, &clientv3.Event{Kv: &mvccpb.KeyValue{Key: []byte(key)}})
	}
	var w watched
	w.count(events)
	if w.writes != 2 || w.schedule != 1 {
		t.Errorf("counted %+v, want 2 writes, 1 of the schedule", w)
	}
}

func TestPrint(t *testing.T) {
	r := result{FailOvers: []float64{5.1, 5.3}, Elected: []float64{4.9, 5}, Unchanged: unchanged{Clusters: 2, Runs: 40, CPU: 1.5, Schedule: 1}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"and has written 5.10 5.30 5.30 7.00", "CPU time for each (ms) 1.50 10.00", "processes started 0 0"} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
