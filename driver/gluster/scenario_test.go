package gluster

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

func TestBringUp(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("vol1", "10Gi", replica3())
	p := w.round()
	if len(p.Daemons) != 3 || len(p.Commands) != 0 || p.Status.Status != api.StorageOffline {
		t.Fatalf("first plan: %v %v %+v", decisions(p), commands(p), p.Status)
	}
	w.agents()
	p = w.round()
	if diff := cmp.Diff([]string{"c-glusterd-n1: peer probe 10.0.0.2", "c-glusterd-n1: peer probe 10.0.0.3"}, commands(p)); diff != "" {
		t.Fatalf("second plan (-want +got):\n%s", diff)
	}
	w.agents()
	p = w.round()
	want := []string{
		"c-glusterd-n1: volume create vol1 bricks=10.0.0.1:/m/wwn-10/vol1.1 10.0.0.2:/m/wwn-20/vol1.1 10.0.0.3:/m/wwn-30/vol1.1 replica=3",
		"c-glusterd-n1: volume set vol1 cluster.lookup-optimize=off",
		"c-glusterd-n1: volume start vol1",
	}
	if diff := cmp.Diff(want, commands(p)); diff != "" {
		t.Fatalf("third plan (-want +got):\n%s", diff)
	}
	p = w.settle()
	if !p.Done || p.Status.Status != api.StorageOnline || p.Status.Health != sets.OK || p.Status.Nodes != 3 || len(p.Status.Reasons) != 0 {
		t.Errorf("in the end: %+v %v", p.Status, decisions(p))
	}
	v := w.vol("vol1").Status
	if v.State != api.ResourceOnline || v.Layout != "1 x 3" || v.Source != "10.0.0.1:/vol1" || len(v.Backups) != 2 || len(v.Bricks) != 3 || v.Message != "" {
		t.Errorf("volume: %+v", v)
	}
}

// A cluster without nodes waits, and says for what.
func TestStatus_waits(t *testing.T) {
	w := newWorld(t)
	p := w.round()
	if p.Status.Status != api.StorageOffline || p.Done || !contains(p.Status.Reasons, "it waits for nodes") {
		t.Errorf("no nodes: %+v", p.Status)
	}
	for i := 1; i <= 2; i++ {
		w.host(i, 1)
		w.node(i, 1)
	}
	if p = w.settle(); p.Status.Status != api.StorageOffline || !contains(p.Status.Reasons, "2 of the 3 nodes that are needed") || !slices.Equal(p.Status.StorageNodes, []string{"n1", "n2"}) {
		t.Errorf("two nodes: %+v", p.Status)
	}
	w.volume("v", "1Gi", replica3())
	if p = w.settle(); !contains(decisions(p, api.VerdictRefuse), "replica 3 needs 3 nodes") || w.vol("v").Status.State != api.ResourcePending {
		t.Errorf("replica 3 on two nodes: %v", decisions(p))
	}
	w.host(3, 1)
	w.node(3, 1)
	if p = w.settle(); p.Status.Status != api.StorageOnline || !p.Done {
		t.Errorf("three nodes: %+v", p.Status)
	}
}

func TestLayouts(t *testing.T) {
	w := poolOf(t, 6)
	w.volume("arb", "10Gi", &api.VolumeDurability{Arbiter: &api.VolumeArbiter{}})
	w.volume("disp", "40Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 4, Redundancy: 2}})
	w.volume("dist", "150Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.volume("plain", "1Gi", nil)
	p := w.settle()
	if !p.Done {
		t.Fatalf("%v", decisions(p))
	}
	for name, want := range map[string]string{"arb": "1 x (2 + 1)", "disp": "1 x (4 + 2)", "dist": "2", "plain": "1 x 3"} {
		if s := w.vol(name).Status; s.Layout != want || s.State != api.ResourceOnline {
			t.Errorf("%s: %s %s %s, want %s", name, s.Layout, s.State, s.Message, want)
		}
	}
	if b := w.vol("arb").Status.Bricks; b[0].Size.Value() != 10*gib || b[2].Size.Value() != 10*gib/16 {
		t.Errorf("arbiter: %v", b)
	}
	if b := w.vol("disp").Status.Bricks; b[0].Size.Value() != 10*gib {
		t.Errorf("disperse: %v", b)
	}
}

func TestOptions(t *testing.T) {
	w := poolOf(t, 3)
	w.cluster.Spec.GlusterFS = &api.GlusterFSSpec{Options: api.VolumeOptions{"network.ping-timeout": "20", "a.b": "1"}}
	v := w.volume("v", "1Gi", nil)
	v.Spec.Options = api.VolumeOptions{"a.b": "2"}
	v.Spec.Auth.Allow = []string{"10.0.0.*"}
	w.settle()
	g := w.gluster.volumes["v"]
	if diff := cmp.Diff(map[string]string{"network.ping-timeout": "20", "a.b": "2", "auth.allow": "10.0.0.*", "cluster.lookup-optimize": "off"}, g.options); diff != "" {
		t.Fatal(diff)
	}
	g.options["by.hand"] = "1"
	v = w.vol("v")
	v.Spec.Options, v.Spec.Auth.Allow = nil, nil
	w.cluster.Spec.GlusterFS.Options = api.VolumeOptions{"a.b": "1"}
	if p := w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
	if diff := cmp.Diff(map[string]string{"a.b": "1", "by.hand": "1", "cluster.lookup-optimize": "off"}, g.options); diff != "" {
		t.Error(diff)
	}
}

func TestExpand(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", nil)
	w.settle()
	w.vol("v").Spec.Size = resource.MustParse("50Gi") // there is room where it is
	if p := w.settle(); !p.Done || w.vol("v").Status.Layout != "1 x 3" || w.vol("v").Status.Capacity.String() != "50Gi" {
		t.Fatalf("%+v", w.vol("v").Status)
	}
	w.vol("v").Spec.Size = resource.MustParse("150Gi")
	if p := w.settle(); p.Done || !contains(decisions(p, api.VerdictRefuse), "there is no room") || w.vol("v").Status.State != api.ResourceOnline {
		t.Fatalf("no room: %v %+v", decisions(p), w.vol("v").Status)
	}
	for i := 4; i <= 6; i++ {
		w.host(i, 1)
		w.node(i, int32(i))
	}
	if p := w.settle(); !p.Done || w.vol("v").Status.Layout != "2 x 3" || len(w.gluster.volumes["v"].bricks) != 6 {
		t.Fatalf("%v %+v", decisions(p), w.vol("v").Status)
	}
	if task := w.gluster.volumes["v"].task; task == nil || task.Kind != glusterd.TaskRebalance {
		t.Errorf("it was not rebalanced: %v", task)
	}
	w.vol("v").Spec.Size = resource.MustParse("100Gi")
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "bricks never shrink") {
		t.Errorf("shrinking: %v", decisions(p))
	}
}

func TestBrickDies(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	w.gluster.volumes["v"].bricks[1].running = false
	w.gluster.settle()
	w.agents()
	p := w.round()
	if !slices.Equal(commands(p), []string{"c-glusterd-n1: volume start v force=true"}) || p.Status.Status != api.StorageDegraded {
		t.Fatalf("%v %+v", commands(p), p.Status)
	}
	w.agents()
	if p = w.round(); p.Status.Health != sets.Healing || w.vol("v").Status.State != api.ResourceDegraded || w.vol("v").Status.Heals == 0 {
		t.Errorf("healing: %+v %+v", p.Status, w.vol("v").Status)
	}
	if p = w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

func TestNodeLost(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	w.power(1, false) // the speaker
	p := w.settle()
	if p.Status.Status != api.StorageDegraded || !contains(p.Status.Reasons, "disconnected") || w.daemons["c-glusterd-n2"].Spec.Parameters[glusterd.ParamReport] != glusterd.DepthPool {
		t.Fatalf("%+v %v", p.Status, decisions(p))
	}
	if len(p.Commands) > 0 {
		t.Errorf("something is done about a node that is away: %v", commands(p))
	}
	w.power(1, true)
	if p = w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
	w.power(2, false)
	w.power(3, false)
	if p = w.settle(); p.Status.Status != api.StorageOffline {
		t.Errorf("two of three away: %+v", p.Status)
	}
}

// What the self-heal daemons leave as it is although all bricks serve they are asked for, once a minute by default.
func TestHealAsked(t *testing.T) {
	for name, w := range map[string]waits.Waits{"by default": {}, "set lower": {BrickHeal: 20 * time.Second}} {
		t.Run(name, func(t *testing.T) { testHealAsked(t, w) })
	}
}

func testHealAsked(t *testing.T, set waits.Waits) {
	w, heal := poolOf(t, 3), set.OrDefault().BrickHeal
	w.waits = set
	w.volume("v", "10Gi", nil)
	w.settle()
	v := w.gluster.volumes["v"]
	v.lazy, v.bricks[1].stale = true, true
	start := w.now
	for v.lazy && w.now.Sub(start) < time.Hour {
		w.agents()
		if p := w.round(); len(p.Commands) == 0 && p.Recheck > heal {
			t.Fatalf("nobody looks again in time: %s", p.Recheck)
		}
		w.now = w.now.Add(10 * time.Second)
	}
	if took := w.now.Sub(start); took < heal || took > heal+30*time.Second {
		t.Errorf("a heal was asked for after %s", took)
	}
	if p := w.settle(); !p.Done || meta.FindStatusCondition(w.vol("v").Status.Conditions, healAsked) != nil {
		t.Errorf("%v %+v", decisions(p), w.vol("v").Status.Conditions)
	}
}

// That nothing could be asked is told, and is not an outage. Nothing is done meanwhile.
func TestPoolSilent(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", nil)
	w.settle()
	w.gluster.silent = true
	p := w.settle()
	if p.Status.Status != api.StorageDegraded || p.Status.Health != sets.Degraded || !contains(p.Status.Reasons, "volume v is Degraded: state incomplete: gluster did not answer") {
		t.Errorf("%+v", p.Status)
	}
	if len(p.Commands) > 0 {
		t.Errorf("something is done: %v", commands(p))
	}
	w.gluster.silent = false
	if p = w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

func TestDiskReplaced(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	old := w.gluster.nodes["c-glusterd-n2"].stores["wwn-20"]
	old.dead = true
	w.gluster.settle()
	p := w.settle()
	if !contains(p.Status.Reasons, "it does not answer") || len(p.Commands) != 0 {
		t.Fatalf("a dead disk: %+v %v", p.Status, commands(p))
	}
	h := w.hostNamed("h2")
	h.Status.Devices = append(h.Status.Devices, api.Device{ID: "wwn-29", Path: "/dev/sdz", Availability: api.DeviceAvailable})
	for i := range w.nodes {
		if w.nodes[i].Name == "n2" {
			w.nodes[i].Spec.Devices = []string{"wwn-29"}
		}
	}
	// The first plan decides whether the change is accepted at all, and the new disk is not yet a place for bricks then.
	p = w.plan()
	refused := func(d api.Decision) bool { return d.Verdict == api.VerdictRefuse }
	if slices.ContainsFunc(p.Decisions, refused) || !strings.Contains(strings.Join(decisions(p), "\n"), "when device wwn-29 of node n2 can be used") {
		t.Errorf("%v", decisions(p))
	}
	if p = w.settle(); !p.Done {
		t.Fatalf("%v", decisions(p))
	}
	if b := w.vol("v").Status.Bricks[1]; b.Device != "wwn-29" || !b.Online {
		t.Errorf("%+v", b)
	}
	if len(w.daemons["c-glusterd-n2"].Spec.Devices) != 1 {
		t.Errorf("the old device was kept: %v", w.daemons["c-glusterd-n2"].Spec.Devices)
	}
}

// A disk that is pulled is no reason for its node's glusterd not to come up: its agent is not asked for what is not there.
func TestDiskPulled(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.host(i, 2)
		w.node(i, int32(i))
	}
	w.volume("v", "10Gi", nil)
	w.settle()
	h := w.hostNamed("h2")
	pulled := h.Status.Devices[0]
	b := w.gluster.volumes["v"].bricks[1]
	b.node.store(b.path).dead = true
	h.Status.Devices = h.Status.Devices[1:]
	w.gluster.settle()
	p := w.settle()
	if d := w.daemons["c-glusterd-n2"].Spec.Devices; len(d) != 1 || d[0].ID != "wwn-21" || p.Done {
		t.Fatalf("%+v %v", d, decisions(p))
	}
	if !slices.Equal(w.nodes[1].Spec.Devices, []string{"wwn-20", "wwn-21"}) || len(w.nodes[1].Status.Devices) != 2 {
		t.Errorf("its claim is gone: %+v", w.nodes[1].Status)
	}
	w.nodes[1].Spec.Devices = []string{"wwn-21"}
	if p = w.settle(); !p.Done || w.vol("v").Status.Bricks[1].Device != "wwn-21" {
		t.Errorf("%v %+v", decisions(p), w.vol("v").Status.Bricks)
	}
	h.Status.Devices = append(h.Status.Devices, pulled)
}

// A brick whose directory was lost on a disk that is well is filled again where it is, when it was gone for as long as is waited.
func TestBrickRefilled(t *testing.T) {
	for name, w := range map[string]waits.Waits{"by default": {}, "set lower": {BrickLost: 3 * time.Second}} {
		t.Run(name, func(t *testing.T) { testBrickRefilled(t, w) })
	}
}

func testBrickRefilled(t *testing.T, set waits.Waits) {
	w, lost := poolOf(t, 3), set.OrDefault().BrickLost
	w.waits = set
	w.volume("v", "10Gi", nil)
	w.settle()
	clear(w.gluster.nodes["c-glusterd-n3"].stores["wwn-30"].dirs)
	w.gluster.settle()
	w.agents()
	p := w.round()
	if len(p.Commands) != 0 || p.Recheck != lost {
		t.Fatalf("at once: %v %v %v", commands(p), decisions(p), p.Recheck)
	}
	w.now = w.now.Add(lost - time.Second)
	w.agents()
	if p = w.round(); len(p.Commands) != 0 {
		t.Fatalf("too soon: %v %v", commands(p), decisions(p))
	}
	w.now = w.now.Add(time.Second)
	w.agents()
	p = w.round()
	if !contains(commands(p), "c-glusterd-n1: volume reset-brick v old=10.0.0.3:/m/wwn-30/v.1") {
		t.Fatalf("%v %v", commands(p), decisions(p))
	}
	if p = w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

func TestNodeRemoved(t *testing.T) {
	w := poolOf(t, 4)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.volume("dist", "10Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	for _, name := range []string{"n1"} { // the speaker
		w.undeclare(name)
	}
	p := w.settle()
	if !p.Done || w.daemons["c-glusterd-n1"] != nil || p.Status.Nodes != 3 {
		t.Fatalf("%v %+v", decisions(p), p.Status)
	}
	w.undeclare("n2")
	p = w.settle()
	if w.daemons["c-glusterd-n2"] == nil || !contains(decisions(p, api.VerdictRefuse), "has nowhere to go") {
		t.Errorf("a node that is needed: %v", decisions(p))
	}
	if s := w.vol("v").Status; s.State != api.ResourceOnline {
		t.Errorf("%+v", s)
	}
}

func TestDrainHost(t *testing.T) {
	w := poolOf(t, 4)
	w.volume("v", "10Gi", nil)
	w.settle()
	w.setMode(3, api.HostDrain)
	p := w.settle()
	if w.daemons["c-glusterd-n3"] != nil || contains(decisions(p), "host/h3") {
		t.Fatalf("%v", decisions(p))
	}
	w.setMode(2, api.HostDrain)
	if p = w.settle(); !contains(decisions(p, api.VerdictRefuse), "host/h2") || w.daemons["c-glusterd-n2"] == nil {
		t.Errorf("a host that is needed: %v", decisions(p))
	}
	w.setMode(2, api.HostActive)
	w.setMode(3, api.HostActive)
	if p = w.settle(); !p.Done || w.daemons["c-glusterd-n3"] == nil {
		t.Errorf("back: %v", decisions(p))
	}
}

func TestMaintenance(t *testing.T) {
	w := poolOf(t, 3)
	w.gluster.writing = true
	w.volume("v", "10Gi", nil)
	w.settle()
	w.setMode(1, api.HostMaintenance)
	p := w.settle()
	if w.daemons["c-glusterd-n1"].Status.State != api.DaemonStopped || contains(decisions(p), "host/h1") {
		t.Fatalf("%v", decisions(p))
	}
	w.setMode(2, api.HostMaintenance)
	p = w.settle()
	if !contains(decisions(p, api.VerdictRefuse), "Refuse host/h2: volume v needs it") || w.daemons["c-glusterd-n2"].Spec.State != api.WantRunning {
		t.Errorf("a second one: %v", decisions(p))
	}
	w.setMode(2, api.HostActive)
	w.setMode(1, api.HostActive)
	if p = w.settle(); !p.Done {
		t.Errorf("back: %v", decisions(p))
	}
	w.volume("dist", "10Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	for i := 1; i <= 3; i++ {
		w.setMode(i, api.HostMaintenance)
	}
	p = w.settle()
	if !contains(decisions(p, api.VerdictRefuse), "has the only copy of its files") {
		t.Errorf("distribute: %v", decisions(p))
	}
}

func TestDelete(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		w := poolOf(t, 3)
		v := w.volume("v", "10Gi", nil)
		v.Spec.DeletionPolicy = policy
		w.settle()
		now := metav1.NewTime(w.now)
		w.vol("v").DeletionTimestamp = &now
		w.settle()
		if w.vol("v") != nil {
			t.Fatalf("%s: it is still there: %+v", policy, w.vol("v").Status)
		}
		dirs := 0
		for _, n := range w.gluster.nodes {
			dirs += len(n.stores["wwn-"+n.name[1:]+"0"].dirs)
		}
		g := w.gluster.volumes["v"]
		switch {
		case policy == api.DeletionWipe && (g != nil || dirs != 0):
			t.Errorf("%s: %v, %d directories", policy, g, dirs)
		case policy == api.DeletionRetain && (g == nil || g.state != glusterd.VolumeStopped || dirs != 3):
			t.Errorf("%s: %v, %d directories", policy, g, dirs)
		}
		if policy == api.DeletionRetain { // it is taken over again
			w.volume("v", "10Gi", nil)
			if p := w.settle(); !p.Done || len(w.gluster.volumes["v"].bricks) != 3 {
				t.Errorf("taken over: %v", decisions(p))
			}
		}
	}
}

func TestDeleteCluster(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", nil)
	w.settle()
	now := metav1.NewTime(w.now)
	w.cluster.DeletionTimestamp, w.cluster.Spec.DeletionPolicy = &now, api.DeletionWipe
	p := w.round()
	if len(p.Daemons) != 3 || len(p.Remove) != 0 {
		t.Fatalf("first they are told what becomes of their data: %v", decisions(p))
	}
	w.agents()
	if p = w.round(); len(p.Remove) != 3 || p.Finished {
		t.Fatalf("%v", decisions(p))
	}
	w.agents()
	if p = w.round(); !p.Finished || len(p.Resources) != 0 {
		t.Errorf("%v %v", decisions(p), p.Resources)
	}
}

// A volume is not told to be usable before its options are set, nor while those can mount it who may not.
func TestOptionsBeforeOnline(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "10Gi", replica3())
	w.vol("v").Spec.Auth.Allow = []string{"10.0.0.1"}
	w.settle()
	for _, tt := range []struct {
		was, want api.ResourceState
	}{{api.ResourceCreating, api.ResourceCreating}, {api.ResourceOnline, api.ResourceCreating}} {
		delete(w.gluster.volumes["v"].options, "auth.allow")
		w.vol("v").Status.State = tt.was
		w.agents()
		w.round()
		if s := w.vol("v").Status; s.State != tt.want {
			t.Errorf("it was %s and has lost an option: %s %q, want %s", tt.was, s.State, s.Message, tt.want)
		}
		w.settle()
		if s := w.vol("v").Status; s.State != api.ResourceOnline || w.gluster.volumes["v"].options["auth.allow"] != "10.0.0.1" {
			t.Errorf("in the end it is %s %q", s.State, s.Message)
		}
	}
}

// TestAllowNarrowed: a volume is not Online while somebody can mount it whom the newest spec does not name, and says so when GlusterFS does not take that.
func TestAllowNarrowed(t *testing.T) {
	for _, tt := range []struct {
		name      string
		was, want []string
		state     api.ResourceState
		fails     bool
	}{
		{"another one", []string{"10.0.0.1"}, []string{"10.0.0.2"}, api.ResourceCreating, false},
		{"one less", []string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.0.2"}, api.ResourceCreating, false},
		{"no more everybody", nil, []string{"10.0.0.2"}, api.ResourceCreating, false},
		{"one more", []string{"10.0.0.1"}, []string{"10.0.0.1", "10.0.0.2"}, api.ResourceCreating, false},
		{"GlusterFS does not take it", []string{"10.0.0.1"}, []string{"10.0.0.2"}, api.ResourceDegraded, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := poolOf(t, 3)
			w.volume("v", "10Gi", replica3())
			w.vol("v").Spec.Auth.Allow = tt.was
			w.settle()
			w.vol("v").Spec.Auth.Allow = tt.want
			w.vol("v").Generation++
			if tt.fails {
				w.failing["volume set v"] = "it is locked"
				w.settleFor(40)
			} else {
				w.round()
			}
			if s := w.vol("v").Status; s.State != tt.state || tt.fails && !strings.Contains(s.Message, "can still mount it: it is locked") {
				t.Errorf("it is %s %q, want %s", s.State, s.Message, tt.state)
			}
			delete(w.failing, "volume set v")
			w.settle()
			if s := w.vol("v").Status; s.State != api.ResourceOnline || w.gluster.volumes["v"].options["auth.allow"] != strings.Join(tt.want, ",") {
				t.Errorf("in the end it is %s %q", s.State, s.Message)
			}
		})
	}
}

// What GlusterFS does not take for one volume holds up no other volume, and no node.
func TestOneVolumeFails(t *testing.T) {
	w := poolOf(t, 4)
	w.volume("a", "10Gi", nil)
	w.settle()
	w.failing["volume set a"] = "option : no.such does not exist"
	w.vol("a").Spec.Options = api.VolumeOptions{"no.such": "1"}
	w.volume("b", "10Gi", nil)
	w.undeclare("n1")
	w.settleFor(40)
	if s := w.vol("b").Status; s.State != api.ResourceOnline {
		t.Errorf("the other volume: %+v", s)
	}
	if s := w.vol("a").Status; s.State != api.ResourceOnline || !strings.Contains(s.Message, "no.such does not exist") {
		t.Errorf("the volume: %+v", s)
	}
	if w.daemons["c-glusterd-n1"] != nil {
		t.Errorf("the node did not leave: %v", decisions(w.plan()))
	}
	delete(w.failing, "volume set a")
	if p := w.settle(); !p.Done || w.vol("a").Status.Message != "" {
		t.Errorf("%v", decisions(p))
	}
}

// A volume that outgrows its disks goes to the node that came for it, also when both are declared at one moment.
func TestExpand_newNode(t *testing.T) {
	for _, together := range []bool{true, false} {
		w := newWorld(t)
		for i := 1; i <= 3; i++ {
			w.host(i, 2)
			w.node(i, int32(i))
		}
		w.volume("v", "90Gi", nil)
		w.settle()
		w.host(4, 2)
		w.node(4, 4)
		if !together {
			w.settle()
		}
		w.vol("v").Spec.Size = resource.MustParse("180Gi")
		if p := w.settle(); !p.Done {
			t.Fatalf("%v", decisions(p))
		}
		if b := w.vol("v").Status.Bricks; len(b) != 6 || !slices.ContainsFunc(b, func(b api.VolumeBrick) bool { return b.Node == "n4" }) {
			t.Errorf("declared together: %v: %+v", together, b)
		}
	}
}

// A plan that is made before the speaker reports the bricks of the last one, and after all nodes report their directories, adds none: the
// agent sees that it was decided on an old report.
func TestExpand_oldReports(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.host(i, 3)
		w.node(i, int32(i))
	}
	w.volume("v", "90Gi", nil)
	w.settle()
	w.vol("v").Spec.Size = resource.MustParse("180Gi")
	asked := map[string]bool{}
	for range 3 {
		for _, c := range w.round().Commands {
			if c.Verb == glusterd.VerbAddBrick {
				asked[c.Params[glusterd.ParamBricks]] = true
			}
		}
		speaker := w.daemons["c-glusterd-n1"]
		old, err := glusterd.Parse(speaker.Status.Report)
		if err != nil {
			t.Fatal(err)
		}
		w.agents()
		r, err := glusterd.Parse(speaker.Status.Report)
		if err != nil {
			t.Fatal(err)
		}
		r.Pool = old.Pool
		if speaker.Status.Report, err = r.Text(); err != nil {
			t.Fatal(err)
		}
	}
	if len(asked) < 2 {
		t.Fatalf("only %v was asked for: the test sees nothing", asked)
	}
	if p := w.settle(); !p.Done {
		t.Fatalf("%v", decisions(p))
	}
	if b := w.vol("v").Status.Bricks; len(b) != 6 {
		t.Errorf("%d bricks, want 6: %+v", len(b), b)
	}
}

// The size is enforced where that is declared: the limit grows with it, and is lifted. One that was set by hand stays.
func TestLimit(t *testing.T) {
	w := poolOf(t, 3)
	v := w.volume("v", "10Gi", nil)
	v.Spec.SizePolicy = api.SizeEnforced
	w.volume("hand", "10Gi", nil)
	w.settle()
	g := w.gluster.volumes["v"]
	limit := func(want int64) {
		t.Helper()
		p := w.settle()
		s := w.vol("v").Status
		if g.limit != want || (s.Limit != nil) != (want > 0) || s.Limit != nil && s.Limit.Value() != want || !p.Done {
			t.Errorf("limit %d, status %v, want %d: %v", g.limit, s.Limit, want, decisions(p))
		}
	}
	limit(10 * gib)
	w.vol("v").Spec.Size = resource.MustParse("20Gi")
	limit(20 * gib)
	w.vol("v").Spec.SizePolicy = api.SizePromised
	limit(0)
	hand := w.gluster.volumes["hand"]
	hand.limit, hand.options[glusterd.OptionQuota] = 5*gib, "on"
	limit(0)
	if hand.limit != 5*gib {
		t.Error("a limit that was set by hand was lifted")
	}
	w.vol("v").Spec.SizePolicy, w.vol("v").Spec.Size = api.SizeEnforced, resource.MustParse("5Gi")
	if p := w.settle(); !contains(decisions(p, api.VerdictRefuse), "bricks never shrink") || g.limit != 0 {
		t.Errorf("shrinking: %d %v", g.limit, decisions(p))
	}
}
