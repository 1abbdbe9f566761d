package e2e

import (
	"fmt"
	"strconv"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestHungMgr stops the process of the only mgr, as one that locks up: Ceph drops it, and Holdfast starts it again.
func TestHungMgr(t *testing.T) {
	begin(t)
	b := newBed(t, 1, 1)
	b.mustApply(home.SpecFor(b.Lab, 1, 1, 1).YAML())
	b.await("Ceph to be well", func() error { return b.health(1, 1) })
	hung := b.daemon("ceph-mgr-a").Status.PID
	b.Lab.Host(1).Run(t, t.Context(), "kill", "-STOP", strconv.Itoa(int(hung)))
	b.await("Ceph to miss the mgr", func() error {
		if m := b.mgrs(); m.Available {
			return fmt.Errorf("mgr.%s is active", m.Active)
		}
		return nil
	})
	b.await("another process of the mgr", func() error {
		if d := b.daemon("ceph-mgr-a"); d.Status.PID == hung || d.Status.State != api.DaemonRunning {
			return fmt.Errorf("%s, process %d", d.Status.State, d.Status.PID)
		}
		return nil
	})
	b.await("Ceph to be well", func() error { return b.health(1, 1) })
}
