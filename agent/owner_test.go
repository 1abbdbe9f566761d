package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// noted is a runtime that notes what is started, and what is announced of it.
type noted struct {
	runtime.Runtime
	started   chan runtime.Process
	announced chan string
}

func (n *noted) Start(ctx context.Context, p runtime.Process) error {
	n.started <- p
	return n.Runtime.Start(ctx, p)
}

func (n *noted) Announce(_ context.Context, name string, serves bool) error {
	n.announced <- fmt.Sprint(name, " ", serves)
	return nil
}

func (n *noted) expect(t *testing.T, want string) {
	t.Helper()
	select {
	case got := <-n.announced:
		if got != want {
			t.Errorf("announced: %q, want %q", got, want)
		}
	case <-time.After(deadline):
		t.Errorf("never announced: %q", want)
	}
}

// confined is a sleeper that needs something of its host.
type confined struct{ *sleeper }

func (confined) Name() string { return "confined" }

func (confined) Needs(l *service.Local) runtime.Needs {
	return runtime.Needs{Privileged: true, Directories: []runtime.Directory{{Path: l.Parameters["bricks"]}}}
}

// The runtime is given whose a process is and what it needs of the host, and is told when it
// serves: by the word of its service agent.
func TestRun_ownsItsProcesses(t *testing.T) {
	w := newWorld(t)
	rt := &noted{started: make(chan runtime.Process, 9), announced: make(chan string, 9)}
	w.also = []service.ServiceAgent{confined{w.service}}
	w.service.set(func(s *sleeper) { s.awaits = "the others" })
	w.wrap = func(r runtime.Runtime) runtime.Runtime {
		rt.Runtime = r
		return rt
	}
	w.run()
	d := sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Type, d.Spec.ID, d.Spec.Parameters = "confined", "7", map[string]string{"bricks": "${DATA}/bricks"}
	})
	w.create(d)
	p := <-rt.started
	want := runtime.Owner{Namespace: "default", Name: "one", UID: "uid-one", Type: "confined", ID: "7", Cluster: "c"}
	if diff := cmp.Diff(want, p.Of); diff != "" {
		t.Error(diff)
	}
	own := w.data("one")
	needs := runtime.Needs{Privileged: true, Directories: []runtime.Directory{
		{Path: own[:len(own)-len("/data")], Mounts: runtime.MountsFromHost}, {Path: own + "/bricks"},
	}}
	if diff := cmp.Diff(needs, p.Needs); diff != "" {
		t.Error(diff)
	}
	rt.expect(t, "default.one false")
	w.service.set(func(s *sleeper) { s.awaits = "" })
	rt.expect(t, "default.one true")
}
