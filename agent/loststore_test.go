package agent

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// lossy is a service agent whose daemon cannot start without a file that it makes.
type lossy struct{ *sleeper }

func (lossy) Name() string { return "lossy" }

func (lossy) ConfigureLocalService(_ context.Context, l *service.Local) error {
	return os.WriteFile(filepath.Join(l.Data, "store"), nil, 0o600)
}

// Kept implements service.Keeper.
func (lossy) Kept(l *service.Local) bool {
	_, err := os.Stat(filepath.Join(l.Data, "store"))
	return err == nil
}

// A daemon whose store is lost while it runs is made ready anew when it ends.
func TestRun_lostStore(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Type = "lossy"
		d.Spec.Command = []string{"sh", "-c", "while [ -e store ]; do sleep 0.05; done; exit 1"}
	}))
	w.also = []service.ServiceAgent{lossy{w.service}}
	w.run()
	first := w.awaitState("one", api.DaemonRunning).Status.PID
	if err := os.Remove(filepath.Join(w.data("one"), "store")); err != nil {
		t.Fatal(err)
	}
	w.await("another process, with a store", func() bool {
		d := w.daemon("one")
		return d.Status.State == api.DaemonRunning && d.Status.PID != first && lossy{}.Kept(&service.Local{Data: w.data("one")})
	})
}
