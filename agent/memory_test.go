package agent

import (
	"fmt"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// TestRun_memory: what the leader notes of a daemon has nobody prepare it anew, and no process
// ends. Afterwards the spec of another daemon changes: when that is prepared, the agent has seen
// the notes, too.
func TestRun_memory(t *testing.T) {
	prepared := func(d *api.Daemon) { d.Spec.State = api.WantPrepared }
	w := newWorld(t, sleeperDaemon("noted", prepared), sleeperDaemon("runs"), sleeperDaemon("changed", prepared))
	w.run()
	w.awaitState("noted", api.DaemonPrepared)
	w.awaitState("changed", api.DaemonPrepared)
	pid := w.awaitState("runs", api.DaemonRunning).Status.PID
	for i := range 6 {
		for _, name := range []string{"noted", "runs"} {
			d := w.daemon(name)
			if leadermemory.Set(d, "flaps", fmt.Sprint(i)); i == 5 {
				d.Annotations = nil
			}
			if err := w.api.Update(t.Context(), d); err != nil {
				t.Fatal(err)
			}
		}
	}
	w.change("changed", func(d *api.Daemon) { d.Spec.Parameters = map[string]string{"a": "b"} })
	w.awaitState("changed", api.DaemonPrepared)
	if n := w.service.count(&w.service.configured); n != 4 {
		t.Errorf("daemons were prepared %d times: each once, and once more the one whose spec changed, are 4", n)
	}
	if now := w.daemon("runs").Status; now.PID != pid || now.Restarts != 0 || now.ObservedGeneration != 1 {
		t.Errorf("the process was %d, and is %+v", pid, now)
	}
	if now := w.daemon("noted").Status; now.ObservedGeneration != 1 {
		t.Errorf("the status is of generation %d", now.ObservedGeneration)
	}
}
