package gluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/drift"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// changed is what a plan says was changed outside Holdfast of an object, with the verdict; empty where nothing was.
func changed(p *engine.Plan, object string) (api.Verdict, string) {
	for _, d := range p.Decisions {
		if d.Reason == api.ReasonChangedOutside && d.Object == object {
			return d.Verdict, d.Message
		}
	}
	return "", ""
}

// sees has the agents report, and runs a round.
func (w *world) sees() *engine.Plan {
	w.agents()
	p := w.round()
	w.now = w.now.Add(1e10)
	return p
}

func (w *world) wantChanged(p *engine.Plan, object string, verdict api.Verdict, part string) {
	w.t.Helper()
	if v, text := changed(p, object); v != verdict || !strings.Contains(text, part) {
		w.t.Fatalf("of %s it says %q: %q, want %q with %q; %q", object, v, text, verdict, part, decisions(p))
	}
}

// byHand is a pool at rest with a volume that has options.
func byHand(t *testing.T, nodes int) *world {
	w := poolOf(t, nodes)
	options := api.VolumeOptions{"performance.cache-size": "64MB", "network.ping-timeout": "20"}
	w.volume("v", "10Gi", replica3()).Spec.Options = options
	p := w.settle()
	for _, d := range p.Decisions {
		if d.Reason == api.ReasonChangedOutside {
			t.Fatalf("at rest: %+v", d)
		}
	}
	return w
}

// TestByHand_options: declared options that somebody sets or resets are set back, and it is told what was found.
func TestByHand_options(t *testing.T) {
	w := byHand(t, 3)
	options := w.gluster.volumes["v"].options
	options["performance.cache-size"] = "1GB"
	delete(options, "network.ping-timeout")
	p := w.sees()
	w.wantChanged(p, "volume/v", api.VerdictDo, "network.ping-timeout was reset, performance.cache-size was set to 1GB")
	if options["performance.cache-size"] != "64MB" || options["network.ping-timeout"] != "20" {
		t.Errorf("%v", options)
	}
	p = w.sees()
	w.wantChanged(p, "volume/v", "", "")
	w.vol("v").Spec.Options["performance.cache-size"] = "128MB" // a declared change is none from outside
	p = w.sees()
	w.wantChanged(p, "volume/v", "", "")
	if len(p.Commands) == 0 {
		t.Error("it is not set")
	}
}

// TestByHand_limit: a limit that somebody changes is set back.
func TestByHand_limit(t *testing.T) {
	w := byHand(t, 3)
	w.vol("v").Spec.SizePolicy = api.SizeEnforced
	w.settle()
	f := w.gluster.volumes["v"]
	limit := f.limit
	f.limit = 1
	p := w.sees()
	w.wantChanged(p, "volume/v", api.VerdictDo, "its limit was changed to 1 bytes outside Holdfast")
	if f.limit != limit || limit == 0 {
		t.Errorf("%d, and was %d", f.limit, limit)
	}
}

// TestByHand_stopped: a volume that somebody stops is started again, by name.
func TestByHand_stopped(t *testing.T) {
	w := byHand(t, 3)
	w.gluster.volumes["v"].state = glusterd.VolumeStopped
	p := w.sees()
	w.wantChanged(p, "volume/v", api.VerdictDo, "stopped outside Holdfast")
	if s := w.vol("v").Status; s.State != api.ResourceOffline {
		t.Errorf("it is %s: %s", s.State, s.Message)
	}
	w.settle()
	if s := w.vol("v").Status; s.State != api.ResourceOnline || w.gluster.volumes["v"].state != glusterd.VolumeStarted {
		t.Errorf("it is %s: %s", s.State, s.Message)
	}
}

// TestByHand_deleted: a volume that somebody deletes is told of, and never made again in silence.
func TestByHand_deleted(t *testing.T) {
	w := byHand(t, 3)
	delete(w.gluster.volumes, "v")
	for range 5 {
		p := w.sees()
		w.wantChanged(p, "volume/v", api.VerdictSkip, "was deleted outside Holdfast")
	}
	if len(w.gluster.volumes) > 0 {
		t.Error("it was made again")
	}
}

// stranger makes a volume by hand, of bricks that somebody chose.
func (w *world) stranger(name string) {
	v := &fakeVolume{name: name, id: "id-" + name, state: glusterd.VolumeStarted, options: map[string]string{}}
	v.layout.replica = 1
	for _, node := range slices.Sorted(maps.Keys(w.gluster.nodes))[:1] {
		n := w.gluster.nodes[node]
		v.bricks = append(v.bricks, &fakeBrick{node: n, path: "/m/wwn-10/somewhere", running: true})
	}
	w.gluster.volumes[name] = v
}

// TestByHand_stranger: a volume that somebody made is told of and left alone; one that was kept is none.
func TestByHand_stranger(t *testing.T) {
	w := byHand(t, 3)
	w.stranger("x")
	p := w.sees()
	w.wantChanged(p, "volume/x", api.VerdictSkip, "this volume was made outside Holdfast")
	now := metav1.NewTime(w.now)
	w.vol("v").DeletionTimestamp = &now // its policy is Retain
	p = w.settle()
	w.wantChanged(p, "volume/v", "", "")
	if w.gluster.volumes["v"] == nil || w.gluster.volumes["x"] == nil {
		t.Errorf("%v", w.gluster.volumes)
	}
}

// TestByHand_peers: a node that somebody detached is taken into the pool again; a peer that is no node is named.
func TestByHand_peers(t *testing.T) {
	w := byHand(t, 4)
	node := w.unused()
	w.gluster.serial++
	w.gluster.nodes["c-glusterd-"+node].pool = w.gluster.serial
	p := w.sees()
	w.wantChanged(p, "node/"+node, api.VerdictDo, "detached from the pool outside Holdfast")
	p = w.settle()
	w.wantChanged(p, "node/"+node, "", "")
	speaker := w.gluster.nodes["c-glusterd-n1"]
	x := &fakeNode{name: "x", address: "10.0.9.9", uuid: "uuid-x", pool: speaker.pool, up: true}
	x.version, w.gluster.nodes["x"] = speaker.version, x
	p = w.sees()
	w.wantChanged(p, "peer/10.0.9.9", api.VerdictSkip, "no StorageNode")
}

// unused is a node without a brick of volume v.
func (w *world) unused() string {
	for _, n := range w.nodes {
		if !slices.ContainsFunc(w.vol("v").Status.Bricks, func(b api.VolumeBrick) bool { return b.Node == n.Name }) {
			return n.Name
		}
	}
	w.t.Fatal("each node has a brick")
	return ""
}

// TestByHand_brickRemoved: bricks that somebody removes wait for a word, and nothing is put in their place before.
func TestByHand_brickRemoved(t *testing.T) {
	w := byHand(t, 3)
	w.vol("v").Spec.Size.Add(w.vol("v").Spec.Size)
	w.settle()
	w.vol("v").Spec.Durability = replica3()
	f := w.gluster.volumes["v"]
	gone := f.bricks[2]
	f.bricks, f.layout.replica = f.bricks[:2], 2
	for range 4 {
		p := w.sees()
		w.wantChanged(p, "volume/v", api.VerdictWait, "removed from volume v outside Holdfast: n3:"+gone.path)
		if len(p.Commands) > 0 {
			t.Fatalf("%v", commands(p))
		}
	}
	v := w.vol("v")
	s := v.Status
	if s.State != api.ResourceDegraded || s.Lost == "" || len(s.Bricks) != 3 || s.Bricks[2].Membership != drift.Removed {
		t.Fatalf("%+v", s)
	}
	if api.LossWord(&v.Status.ResourceStatus) == "" {
		t.Error("nobody can accept it")
	}
	f.bricks, f.layout.replica = append(f.bricks, gone), 3 // it is put back
	w.sees()
	if s := w.vol("v").Status; s.State != api.ResourceOnline || s.Lost != "" || s.Bricks[2].Membership != drift.Member {
		t.Errorf("put back: %+v", s)
	}
}

// TestByHand_brickAccepted: bricks of a set that somebody removed are forgotten when a user says so.
func TestByHand_brickAccepted(t *testing.T) {
	w := byHand(t, 6)
	w.vol("v").Spec.Size.Set(150 * gib)
	w.settle()
	f := w.gluster.volumes["v"]
	if len(f.bricks) != 6 {
		t.Fatalf("%d bricks", len(f.bricks))
	}
	f.bricks = f.bricks[:3]
	p := w.sees()
	w.wantChanged(p, "volume/v", api.VerdictWait, "n4:/m/wwn-40/v.1")
	v := w.vol("v")
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, api.AnnotationRecreate, api.LossWord(&v.Status.ResourceStatus))
	w.sees()
	w.sees()
	if s := w.vol("v").Status; s.State != api.ResourceOnline || s.Lost != "" || len(s.Bricks) != 6 ||
		!meta.IsStatusConditionTrue(s.Conditions, api.ResourcePresent) {
		t.Errorf("%+v", s)
	}
	w.settle()
	if bricks := w.vol("v").Status.Bricks; len(bricks) != 6 || bricks[5].Membership != drift.Left {
		t.Errorf("left: %+v", bricks)
	}
	if dirs := w.gluster.nodes["c-glusterd-n4"].stores["wwn-40"].dirs; len(dirs) != 1 {
		t.Errorf("the data in a brick that somebody took out is gone: %v", dirs)
	}
}

// TestByHand_brickAdded: bricks that somebody adds are used and told of, until somebody changes the Volume.
func TestByHand_brickAdded(t *testing.T) {
	w := byHand(t, 6)
	f := w.gluster.volumes["v"]
	for i := range 3 {
		n := w.gluster.nodes["c-glusterd-n"+itoa(i+4)]
		b := &fakeBrick{node: n, path: "/elsewhere/b" + itoa(i), running: true}
		s := &fakeStore{name: "/elsewhere", path: "/elsewhere", size: 100 * gib}
		s.dirs, n.stores["/elsewhere"] = map[string]string{b.path: f.id}, s
		f.bricks = append(f.bricks, b)
	}
	for range 3 {
		w.plan()
		w.agentsReport()
		p := w.round()
		w.wantChanged(p, "volume/v", api.VerdictSkip, "added to the volume outside Holdfast")
	}
	w.vol("v").Generation++
	w.agentsReport()
	w.round()
	w.agentsReport()
	p := w.round()
	w.wantChanged(p, "volume/v", "", "")
}

// agentsReport has agents tell what there is, and nothing more.
func (w *world) agentsReport() {
	for _, d := range w.daemons {
		text, err := w.gluster.report(d).Text()
		if err != nil {
			w.t.Fatal(err)
		}
		d.Status.Report = text
	}
}
