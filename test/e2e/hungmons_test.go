package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestHungMons stops the processes of two of three mons, as a disk that hangs does: the quorum is lost although all of them run. Those that hang are named,
// with the command that helps, and it does.
func TestHungMons(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 1, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	hung := b.daemon("ceph-mon-b")
	b.signal(hung, "STOP")
	b.signal(b.daemon("ceph-mon-c"), "STOP")
	b.await("the status to name those that hang", func() error {
		out := b.run("status", "ceph")
		for _, want := range []string{"OFFLINE", "waiting for 2 of 3 mons to form a quorum: mon.b on h2, mon.c on h3 do not answer", "'holdfast daemon restart ceph-mon-b --force'"} {
			if !strings.Contains(out, want) {
				return fmt.Errorf("%s\nwant %s", out, want)
			}
		}
		return nil
	})
	for object, want := range map[string]string{
		"ceph": "mon.b on h2, mon.c on h3 do not answer", "mon.a": "it runs and answers, but the mons have no quorum", "mon.b": "restart it with 'holdfast daemon restart ceph-mon-b --force'",
	} {
		b.await("'why "+object+"' to tell of it", func() error { // of each mon when it is not fresh any more
			if out := b.run("why", object); !strings.Contains(out, want) || strings.Contains(out, "as desired") {
				return fmt.Errorf("%s\nwant %s", out, want)
			}
			return nil
		})
	}
	b.refused("daemon restart mon.b", "cannot check mon.b: the mons do not answer")
	was := b.starts(hung)
	b.restartedOnce(created(b, b.run("daemon", "restart", "mon.b", "--force", "--wait", "--timeout", "2m")), hung, was)
	b.await("mon.c to be known to be out of the quorum", func() error {
		if out := b.run("status", "ceph"); !strings.Contains(out, "mon.c on h3 is not in the quorum") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	b.run("daemon", "restart", "mon.c", "--wait", "--timeout", "2m") // Ceph can be asked again, and counts it as missing
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	b.noOrphans()
}
