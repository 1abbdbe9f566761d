package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestRun_watched looks at a process that somebody else has started: it is told of, and left alone, also when its Daemon is deleted by a cluster that
// is to be wiped.
func TestRun_watched(t *testing.T) {
	id := fmt.Sprintf("w%d", os.Getpid())
	w := newWorld(t, sleeperDaemon("mon", func(d *api.Daemon) {
		d.Spec.Type, d.Spec.ID, d.Spec.State, d.Spec.OnRemoval = "ceph-mon", id, api.WantWatched, api.DeletionWipe
		d.Spec.Parameters = map[string]string{api.ParameterForeign: "x"}
	}))
	// What an earlier hand-over left on the host.
	if err := os.MkdirAll(w.data("mon"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.run()
	if d := w.awaitState("mon", api.DaemonStopped); !strings.Contains(d.Status.Message, "does not start it") {
		t.Error(d.Status.Message)
	}

	program := filepath.Join(t.TempDir(), "ceph-mon")
	if err := os.Symlink("/bin/sh", program); err != nil {
		t.Fatal(err)
	}
	process := exec.Command(program, "-c", "read x", "-i", id, "-c", "/no.conf")
	in, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		in.Close()
		_ = process.Wait()
	}
	t.Cleanup(end)
	if d := w.awaitState("mon", api.DaemonRunning); int(d.Status.PID) != process.Process.Pid || d.Status.Started == nil {
		t.Errorf("%+v", d.Status)
	}
	w.await("the host to tell of it", func() bool {
		h := &api.Host{}
		_ = w.api.Get(t.Context(), client.ObjectKey{Name: "h1"}, h)
		for _, f := range h.Status.Foreign {
			if f.ID == id && int(f.PID) == process.Process.Pid {
				return true
			}
		}
		return false
	})

	w.delete("mon")
	w.awaitGone("mon")
	if st, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", process.Process.Pid)); err != nil || strings.Contains(string(st), ") Z ") {
		t.Errorf("its process was ended: %v", err)
	}
	if _, err := os.Stat(w.data("mon")); err != nil {
		t.Errorf("its directory was cleared away: %v", err)
	}
}
