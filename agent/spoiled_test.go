package agent

import (
	"os"
	"path/filepath"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A daemon that ends because somebody changed or emptied one of its files gets all of them anew
// before its next start.
func TestRun_spoiledFile(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Files = []api.DaemonFile{{Path: "conf", Sources: []api.FileSource{{Text: new("right")}}}}
		d.Spec.Command = []string{"sh", "-c", "while grep -q right conf; do sleep 0.05; done; exit 1"}
	}))
	w.run()
	first := w.awaitState("one", api.DaemonRunning).Status.PID
	if err := os.WriteFile(filepath.Join(w.data("one"), "conf"), []byte("garbage"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.await("another process, with its file", func() bool {
		d := w.daemon("one")
		return d.Status.State == api.DaemonRunning && d.Status.PID != first && w.read("one", "conf") == "right"
	})
}
