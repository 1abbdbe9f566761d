package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestKindOfWrite(t *testing.T) {
	const before = `{"metadata":{"managedFields":[{"time":"1"}]},"spec":{},"status":{"nextOrchestration":"1","report":{"outcome":"Unchanged"}}}`
	moved := strings.ReplaceAll(before, `"1"`, `"2"`)
	told := strings.Replace(moved, "Unchanged", "Waiting", 1)
	const cluster = "/registry/holdfast.io/storageclusters/default/c1"
	for _, tt := range []struct{ key, before, after, want string }{
		{cluster, before, moved, dueWrites},
		{cluster, before, told, "storageclusters"},
		{cluster, "", moved, "storageclusters"},
		{"/registry/holdfast.io/hosts/h1", `{"spec":{"mode":"Active"},"status":{"foreign":[1]}}`, `{"spec":{"mode":"Active"},"status":{"foreign":[2]}}`, reportWrites},
		{"/registry/holdfast.io/hosts/h1", `{"spec":{"mode":"Active"},"status":{"foreign":[1]}}`, `{"spec":{"mode":"Drained"},"status":{"foreign":[1]}}`, "hosts"},
		{"/registry/holdfast.io/daemons/default/d1", before, moved, "daemons"},
		{"/registry/configmaps/holdfast-system/told-default.c1", "", "", "configmaps"},
		{"/registry/coordination.k8s.io/leases/holdfast-system/orchestrate-default.c1", "", "", lockWrites},
		{"/registry/leases/holdfast-system/host-h1", "", "", "leases"},
		{"/holdfast/fence/orchestrate-default.c1", "", "", lockWrites},
		{"/holdfast/fence/leader", "", "", termWrites},
		{"compact_rev_key", "", "", "compact_rev_key"},
	} {
		e := &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(tt.key), Value: []byte(tt.after), CreateRevision: 1, ModRevision: 2}}
		if tt.before != "" {
			e.PrevKv = &mvccpb.KeyValue{Value: []byte(tt.before)}
		}
		if got := kindOfWrite(e); got != tt.want {
			t.Errorf("a write of %s is %q, want %q", tt.key, got, tt.want)
		}
	}
}

// busyAndRest are 100 orchestrations in ten seconds of a server that otherwise uses a tenth of a core.
func busyAndRest() (busy window, rest [2]window) {
	at := func(cpu, asking time.Duration, leases int) window {
		return window{took: 10 * time.Second, cpu: cpu, asking: asking, engine: 2 * asking, writes: map[string]int{"leases": leases, "hosts": 2}}
	}
	rest = [2]window{at(1100*time.Millisecond, 0, 19), at(900*time.Millisecond, 0, 21)}
	busy = at(2*time.Second, 200*time.Millisecond, 30)
	busy.runs, busy.writes[dueWrites] = map[string]float64{"Unchanged": 100}, 100
	return busy, rest
}

func TestUnchanged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*window)
		want   string
	}{
		{"within all bounds", func(*window) {}, ""},
		{"a write beside it", func(w *window) { w.writes["daemons"] = 1 }, "wrote daemons"},
		{"more of what is written at rest", func(w *window) { w.writes["hosts"] = 3 }, "wrote hosts"},
		{"locks", func(w *window) { w.writes[lockWrites] = 1 }, "wrote locks"},
		{"due written twice", func(w *window) { w.writes[dueWrites] = 200 }, "2.00 times"},
		{"a process", func(w *window) { w.started = []string{"ceph"} }, "1 processes: ceph"},
		{"busy", func(w *window) { w.cpu += 300 * time.Millisecond }, "11.00 ms of CPU time beyond"},
		{"busy with asking", func(w *window) { w.cpu, w.asking = w.cpu+time.Second, w.asking+time.Second }, ""},
		{"something changed", func(w *window) { w.runs["Changed"] = 2 }, "2 orchestrations were Changed"},
		{"the watch saw nothing", func(w *window) { w.writes = nil }, "the writes were not watched"},
		{"nothing was done", func(w *window) { w.runs = nil }, "no orchestration"},
	} {
		busy, rest := busyAndRest()
		tt.change(&busy)
		u := &unchanged{}
		u.compare(busy, rest)
		err := u.judge()
		if (err != nil) != (tt.want != "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	// Half of the runs went on at rest, too: each of the others took twice as much.
	busy, rest := busyAndRest()
	rest[0].runs, rest[1].runs = map[string]float64{"Unchanged": 50}, map[string]float64{"Unchanged": 50}
	var u unchanged
	if u.compare(busy, rest); u.CPU != 20 || u.Due != 2 {
		t.Errorf("each of 50 runs took %v ms and %v writes", u.CPU, u.Due)
	}
}

func TestUnchanged_print(t *testing.T) {
	busy, rest := busyAndRest()
	u := &unchanged{Clusters: 10, HostsEach: 3, DaemonsEach: 14, Load: []string{"0.1", "0.2"}}
	u.compare(busy, rest)
	var out strings.Builder
	if err := (&result{Unchanged: u}).print(&out); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"100 orchestrations of 10 clusters at rest, with 14 daemons on 3 hosts each", "CPU time of the server (ms) 10.00", "to ask Ceph 2.00",
		"beyond that 8.00 10.00", "in the engine 2.00", "for garbage 6.00", "writes of storageclusters: status.nextOrchestration 1.00 1", "writes of leases 0.100", "0.110, 0.090",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestAccounted(t *testing.T) {
	const top = "Type: cpu\nActive filters:\n   focus=Observe\nShowing nodes accounting for 1540ms, 12.5% of 12320ms total\n"
	if got, err := accounted(top); err != nil || got != 1540*time.Millisecond {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := accounted("Showing nodes accounting for 0, 0% of 12320ms total\n"); err != nil || got != 0 {
		t.Errorf("nothing is %s, %v", got, err)
	}
	if _, err := accounted("no such file"); err == nil {
		t.Error("an answer that says nothing was taken")
	}
}

// TestStartedBy: a program is seen also when it ends at once.
func TestStartedBy(t *testing.T) {
	now, cancel := context.WithCancel(t.Context())
	cancel() // it looks once
	before := childrenAt(os.Getpid())
	cat := echoing(t)
	if got := before.followed(now); !slices.Equal(got, []string{"cat"}) {
		t.Errorf("started were %q, want a cat", got)
	}
	if got := childrenAt(os.Getpid()).followed(now); len(got) > 0 {
		t.Errorf("started were %q, and all ran before", got)
	}
	_ = cat.Process.Kill()
	_ = cat.Wait() // it was killed
	before = childrenAt(os.Getpid())
	if err := exec.CommandContext(t.Context(), "true").Run(); err != nil {
		t.Fatal(err)
	}
	if got := before.followed(now); !slices.Equal(got, []string{unseen}) {
		t.Errorf("started were %q, and one ended before it was looked", got)
	}
	if asksRelease("sleep 60") || !asksRelease("glusterd --version") {
		t.Error("a look at a package is not told from other programs")
	}
}

// echoing starts a program that runs when it is returned: for a moment after exec(2) a process has no command line yet.
func echoing(t *testing.T) *exec.Cmd {
	t.Helper()
	cat := exec.CommandContext(t.Context(), "cat")
	in, err := cat.StdinPipe()
	out, err2 := cat.StdoutPipe()
	if err := errors.Join(err, err2, cat.Start()); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte{'.'}); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cat
}
