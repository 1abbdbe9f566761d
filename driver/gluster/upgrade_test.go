package gluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// install puts a release on all nodes, as their administrators do.
func (w *world) install(version string) {
	for _, n := range w.gluster.nodes {
		n.installed = version
	}
}

// A pool is upgraded node after node while clients write (world.checkStop looks at each stop), nobody rejects anybody, and then the
// operating version is raised.
func TestUpgrade(t *testing.T) {
	for _, version := range []string{"10.4", "11.1"} {
		w := poolOf(t, 5)
		w.gluster.writing = true
		w.volume("rep", "10Gi", nil)
		w.volume("arb", "10Gi", &api.VolumeDurability{Arbiter: &api.VolumeArbiter{}})
		w.volume("disp", "10Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 3, Redundancy: 2}})
		w.settle()
		w.install(version)
		p := w.settle()
		if !p.Done || p.Status.GlusterFS.Version != version || int(p.Status.GlusterFS.OpVersion) != 10000*release(version) {
			t.Fatalf("%s: %+v\n%s", version, p.Status.GlusterFS, strings.Join(decisions(p), "\n"))
		}
		for _, n := range w.gluster.nodes {
			if n.version != version || n.rejected {
				t.Errorf("%s: node %s runs %s, rejected %v", version, n.name, n.version, n.rejected)
			}
		}
		for name, d := range w.daemons {
			if d.Spec.Parameters[glusterd.ParamDrop] != "" || d.Spec.State != api.WantRunning {
				t.Errorf("%s: %s is left as %s with %v", version, name, d.Spec.State, d.Spec.Parameters)
			}
		}
	}
}

// No two nodes are restarted at a time, and that which speaks for the pool is not the first.
func TestUpgrade_order(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	w.install("11.1")
	order := ""
	for range 60 {
		w.agents()
		down := 0
		for _, c := range w.round().Daemons {
			if c.Daemon.Spec.State == api.WantStopped && !strings.HasSuffix(order, c.Daemon.Spec.ID+" ") {
				order += c.Daemon.Spec.ID + " "
			}
		}
		for _, d := range w.daemons {
			if d.Spec.State == api.WantStopped {
				down++
			}
		}
		if down > 1 {
			t.Fatalf("%d nodes are stopped: %s", down, order)
		}
		w.gluster.heal()
	}
	if order != "n2 n1 n3 " {
		t.Errorf("restarted in the order %q", order)
	}
}

// Reports come later than the word that a process runs, and heals take their time: at no moment is a node stopped without which a set
// cannot be written (world.checkStop).
func TestUpgrade_lateReports(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := poolOf(rt, 4)
		w.gluster.writing = true
		w.volume("v", "10Gi", rapid.SampledFrom(durabilities()[:3]).Draw(rt, "durability"))
		w.settle()
		w.install(rapid.SampledFrom([]string{"10.4", "11.1"}).Draw(rt, "release"))
		for range rapid.IntRange(10, 60).Draw(rt, "steps") {
			w.late = rapid.Bool().Draw(rt, "late")
			w.agents()
			w.round()
			if rapid.Bool().Draw(rt, "heal") {
				w.gluster.heal()
			}
			w.now = w.now.Add(time.Second)
		}
		w.late = false
		if p := w.settle(); !p.Done || p.Status.GlusterFS.Version == "10.3" {
			rt.Fatalf("%+v\n%s", p.Status.GlusterFS, strings.Join(decisions(p), "\n"))
		}
	})
}

// The same for hosts that go into maintenance one after the other, each as soon as the one before is active again.
func TestMaintenance_lateReports(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	turn := func() {
		w.agents()
		w.round()
	}
	w.setMode(2, api.HostMaintenance)
	turn()
	w.late = true
	turn()
	w.setMode(2, api.HostActive)
	turn()
	turn()
	w.setMode(3, api.HostMaintenance)
	for range 3 {
		turn()
	}
	if d := w.daemons["c-glusterd-n3"]; d.Spec.State != api.WantRunning {
		t.Errorf("host h3 is stopped, and nobody has said that h2 is healed: %v", decisions(w.plan()))
	}
	w.late = false
	w.settle()
	if d := w.daemons["c-glusterd-n3"]; d.Spec.State != api.WantStopped {
		t.Errorf("host h3 is never in maintenance: %v", decisions(w.plan()))
	}
}

// What must not be stopped is not restarted, and the rest is well as it is.
func TestUpgrade_kept(t *testing.T) {
	for name, test := range map[string]struct {
		size       string
		durability *api.VolumeDurability
		harm       func(*world)
		says       string
	}{
		"single bricks": {"200Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}}, func(*world) {}, "has the only copy of its files"},
		"a brick is down": {"10Gi", nil, func(w *world) {
			w.gluster.volumes["v"].bricks[1].node.store(w.gluster.volumes["v"].bricks[1].path).dead = true
		}, "does not serve"},
		"an older one": {"10Gi", nil, func(w *world) { w.install("9.6") }, "cannot be downgraded"},
	} {
		w := poolOf(t, 3)
		w.gluster.writing = true
		w.volume("v", test.size, test.durability)
		w.settle()
		w.install("11.1")
		test.harm(w)
		w.gluster.settle()
		p := w.settle()
		if !contains(decisions(p, api.VerdictSkip), test.says) {
			t.Errorf("%s: %s", name, strings.Join(decisions(p), "\n"))
		}
		for _, b := range w.gluster.volumes["v"].bricks {
			if b.node.version != "10.3" {
				t.Errorf("%s: node %s was restarted", name, b.node.name)
			}
		}
	}
}

// The whole way is foreseen.
func TestUpgrade_foreseen(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", nil)
	w.settle()
	w.install("11.1")
	w.agents()
	p := engine.Project(Driver{}, w.view(), w.now)
	stops := 0
	for _, s := range p.Steps {
		for _, c := range s.Plan.Daemons {
			if c.Daemon.Spec.State == api.WantStopped && strings.HasPrefix(c.Reason, "restart, because GlusterFS 11.1 is installed, and 10.3 runs") {
				stops++
			}
		}
	}
	if stops != 3 || len(p.Open) > 0 {
		t.Errorf("%d stops, open: %v", stops, p.Open)
	}
}

// A node that the others reject keeps the pool from changes, and can leave it: what it has is made anew elsewhere.
func TestRejected(t *testing.T) {
	for name, leave := range map[string]func(*world){
		"deleted": func(w *world) { w.undeclare("n2") },
		"drained": func(w *world) { w.setMode(2, api.HostDrain) },
	} {
		w := poolOf(t, 4)
		w.volume("v", "10Gi", nil)
		w.settle()
		if !slices.ContainsFunc(w.gluster.volumes["v"].bricks, func(b *fakeBrick) bool { return b.node.name == "n2" }) {
			t.Fatal("no brick is on n2")
		}
		w.gluster.nodes["c-glusterd-n2"].rejected = true
		w.volume("x", "1Gi", nil)
		w.settle()
		if got := w.vol("x").Status; w.gluster.volumes["x"] != nil || !strings.Contains(got.Message, "delete its StorageNode") {
			t.Errorf("%s: %s", name, got.Message)
		}
		leave(w)
		p := w.settle()
		if w.daemons["c-glusterd-n2"] != nil || w.gluster.volumes["x"] == nil || !p.Done {
			t.Errorf("%s: %s\n%s", name, strings.Join(decisions(p), "\n"), w.gluster.text())
		}
	}
}

// One with the only copy of files has to stay: it would not move them.
func TestRejected_single(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	n := w.gluster.volumes["v"].bricks[0].node
	n.rejected = true
	w.undeclare(n.name)
	p := w.settle()
	if w.daemons[n.daemon] == nil || len(w.gluster.volumes["v"].bricks) != 1 || !contains(decisions(p, api.VerdictRefuse), "while the others reject it") {
		t.Errorf("%s\n%s", strings.Join(decisions(p), "\n"), w.gluster.text())
	}
}

// A node of version 10 that may not restart keeps new volumes waiting, as soon as two run version 11. It is said why, and what can be done.
func TestUpgrade_holdsUp(t *testing.T) {
	w := poolOf(t, 4)
	w.volume("v", "10Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	w.install("11.1")
	w.settle()
	w.volume("x", "1Gi", nil)
	w.settle()
	got := w.vol("x").Status
	for _, part := range []string{"runs GlusterFS 10.3, and others run 11.1 already", "has the only copy of its files", "reboot its host", "files of volume v"} {
		if w.gluster.volumes["x"] != nil || got.State != api.ResourcePending || !strings.Contains(got.Message, part) {
			t.Errorf("no word of %q: %s %s", part, got.State, got.Message)
		}
	}
}
