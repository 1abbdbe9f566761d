package torus

import (
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// still runs rounds in which no block moves.
func (w *world) still() (status api.StorageStatusStatus, open []string) {
	for range 4 {
		w.agents()
		p := w.round()
		w.now = w.now.Add(10 * time.Second)
		status, open = p.Status, decisions(p)
	}
	return status, open
}

// A node that came back lacks what was written while it was away: the other one, which alone has that, is not stopped before it is copied.
func TestReturn(t *testing.T) {
	w := given(t, 2)
	w.power(2, false)
	w.agents()
	for range 20 {
		w.torus.write()
	}
	w.power(2, true)
	s, _ := w.still()
	if s.Status != api.StorageDegraded || s.Health != healthMoving || !strings.Contains(s.Message, "node n2 came back") {
		t.Fatalf("back, and not whole: %s %s %q", s.Status, s.Health, s.Reasons)
	}
	w.torus.move()
	if p := w.settle(); !p.Done || p.Status.Status != api.StorageOnline || p.Status.Health != healthOK {
		t.Errorf("whole: %+v %v", p.Status, decisions(p))
	}
}

// Maintenance of the next host, and a drain, wait for a node that came back, also after an absence that Torus took no notice of.
func TestReturn_next(t *testing.T) {
	for _, mode := range []api.HostMode{api.HostMaintenance, api.HostDrain} {
		t.Run(string(mode), func(t *testing.T) {
			w := given(t, 3)
			w.setMode(3, api.HostMaintenance)
			w.settle()
			for range 20 {
				w.torus.write()
			}
			w.setMode(3, api.HostActive)
			w.still()
			w.setMode(2, mode)
			if _, open := w.still(); !contains(open, "Wait host/h2") || !contains(open, "node n3 came back") || w.daemons["c-torusd-n2"].Spec.State != api.WantRunning || len(w.torus.ring) != 3 {
				t.Fatalf("%v", open)
			}
			w.torus.move()
			if p := w.settle(); w.daemons["c-torusd-n2"] != nil && w.daemons["c-torusd-n2"].Status.State != api.DaemonStopped || w.torus.lost() {
				t.Errorf("%v", decisions(p))
			}
		})
	}
}

// An agent of an earlier release tells nothing of a return, and must not hold up all maintenance.
func TestReturn_olderAgent(t *testing.T) {
	if r := (&torus.Report{}); !r.Whole(nil) {
		t.Error("no report of an older agent is believed")
	}
}

// full fills the stores of the ring to so many percent.
func (w *world) full(percent int64) {
	used := map[string]int64{}
	for _, b := range w.torus.blocks {
		for u := range b {
			used[u] += 512 << 10
		}
	}
	most := int64(1)
	for _, n := range used {
		most = max(most, n)
	}
	w.torus.size = most * 100 / percent
}

func TestDrain_noRoom(t *testing.T) {
	w := given(t, 3)
	w.full(80)
	w.setMode(3, api.HostDrain)
	p := w.settle()
	if !contains(decisions(p, api.VerdictRefuse), "do not fit on the other 2 peers of the ring, which have") || len(w.torus.ring) != 3 {
		t.Fatalf("%v", decisions(p))
	}
	w.torus.size *= 2
	if p = w.settle(); len(w.torus.ring) != 2 || w.torus.lost() || w.daemons["c-torusd-n3"] != nil {
		t.Errorf("with room: %v", decisions(p))
	}
}

func TestReplication_noRoom(t *testing.T) {
	w := given(t, 3)
	w.full(80)
	w.cluster.Spec.Torus.Replication = 3
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "cannot change replication from 2 to 3") || w.torus.replication != 2 {
		t.Errorf("%v", decisions(p))
	}
}

func TestFull(t *testing.T) {
	for percent, want := range map[int64]string{50: healthOK, 88: healthNearFull, 97: healthFull} {
		w := given(t, 3)
		w.full(percent)
		p := w.settle()
		if p.Status.Health != want || (p.Status.Status == api.StorageOnline) != (want == healthOK) {
			t.Errorf("%d %%: %s %s %q", percent, p.Status.Status, p.Status.Health, p.Status.Reasons)
		}
	}
}

// Of a large peer and a small one, the small one bounds what two copies take.
func TestFits(t *testing.T) {
	peers := []torus.Peer{{Size: 1000}, {Size: 100}}
	for _, test := range []struct {
		copies int
		bytes  int64
		want   bool
	}{{2, 180, true}, {2, 200, false}, {1, 1000, true}, {1, 1100, false}, {3, 3, false}} {
		if got := fits(peers, test.copies, test.bytes); got != test.want {
			t.Errorf("%d copies, %d bytes in all: %v", test.copies, test.bytes, got)
		}
	}
}
