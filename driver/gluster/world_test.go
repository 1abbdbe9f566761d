package gluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/drivertest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
	"github.com/holdfast-storage/holdfast/engine/plandump"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

var testTime = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

const gib = int64(1) << 30

// tester is what *testing.T and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is what a driver sees of a cluster, with hosts whose agents do as they are told, and a GlusterFS in memory.
type world struct {
	t       tester
	cluster *api.StorageCluster
	hosts   []api.Host
	nodes   []api.StorageNode
	volumes []api.Volume
	daemons map[string]*api.Daemon
	others  []*api.Daemon
	status  *api.StorageStatus
	now     time.Time
	waits   waits.Waits
	writes  int
	gluster *fakeGluster
	// failing are verbs that fail from now on.
	failing map[string]string
	// failures are the commands of the last plan that failed.
	failures []engine.CommandFailure
	// late has agents tell the states of their daemons, and not report for now.
	late bool
}

func newWorld(t tester) *world {
	w := &world{
		t: t, now: testTime, daemons: map[string]*api.Daemon{}, gluster: newFake(), failing: map[string]string{},
		cluster: &api.StorageCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-c", Generation: 1},
			Spec:       api.StorageClusterSpec{Type: api.StorageGlusterFS, DeletionPolicy: api.DeletionRetain},
		},
	}
	return w
}

// host adds a host h<i> with the address 10.0.0.<i> and empty disks of 100 GiB.
func (w *world) host(i, disks int) *api.Host {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("h%d", i)}}
	h.Labels = map[string]string{api.LabelHostname: h.Name}
	h.Status.Addresses = []string{fmt.Sprintf("10.0.0.%d", i)}
	for d := range disks {
		h.Status.Devices = append(h.Status.Devices, api.Device{
			ID: fmt.Sprintf("wwn-%d%d", i, d), Path: fmt.Sprintf("/dev/sd%c", 'b'+d), Availability: api.DeviceAvailable,
			Size: *resource.NewQuantity(100*gib, resource.BinarySI),
		})
	}
	w.hosts = append(w.hosts, h)
	return &w.hosts[len(w.hosts)-1]
}

// node declares all disks of h<i>, in a zone.
func (w *world) node(i int, zone int32) *api.StorageNode {
	n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("n%d", i), Generation: 1}}
	n.Spec = api.StorageNodeSpec{
		Type: api.StorageGlusterFS, Cluster: "c", NodeSelector: map[string]string{api.LabelHostname: fmt.Sprintf("h%d", i)},
		GlusterFS: &api.GlusterFSNode{Zone: zone},
	}
	for _, h := range w.hosts {
		if h.Name == fmt.Sprintf("h%d", i) {
			for _, d := range h.Status.Devices {
				n.Spec.Devices = append(n.Spec.Devices, d.ID)
			}
		}
	}
	w.nodes = append(w.nodes, n)
	return &w.nodes[len(w.nodes)-1]
}

// pool is a world with n hosts and nodes of one disk, each in a zone of its own.
func poolOf(t tester, n int) *world {
	w := newWorld(t)
	for i := 1; i <= n; i++ {
		w.host(i, 1)
		w.node(i, int32(i))
	}
	return w
}

func (w *world) volume(name, size string, d *api.VolumeDurability) *api.Volume {
	v := api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1, UID: types.UID("uid-" + name)}}
	v.Spec = api.VolumeSpec{Cluster: "c", Size: resource.MustParse(size), Durability: d, DeletionPolicy: api.DeletionRetain}
	w.volumes = append(w.volumes, v)
	return &w.volumes[len(w.volumes)-1]
}

func replica3() *api.VolumeDurability {
	return &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: 3}}
}

func (w *world) vol(name string) *api.Volume {
	for i := range w.volumes {
		if w.volumes[i].Name == name {
			return &w.volumes[i]
		}
	}
	return nil
}

func (w *world) hostNamed(name string) *api.Host {
	for i := range w.hosts {
		if w.hosts[i].Name == name {
			return &w.hosts[i]
		}
	}
	return nil
}

func (w *world) setMode(i int, mode api.HostMode) {
	w.hostNamed(fmt.Sprintf("h%d", i)).Spec.Mode = mode
}

func (w *world) undeclare(name string) {
	w.nodes = slices.DeleteFunc(w.nodes, func(n api.StorageNode) bool { return n.Name == name })
}

func (w *world) resources() (all []api.Resource) {
	for i := range w.volumes {
		all = append(all, &w.volumes[i])
	}
	return all
}

func (w *world) view() *engine.View {
	x := conformance.World{Cluster: w.cluster, Hosts: w.hosts, Nodes: w.nodes, Resources: w.resources(), Daemons: w.daemons}
	v := x.View(w.others...)
	v.Failures = w.failures
	if w.status != nil {
		v.Status = w.status.DeepCopy()
	}
	system, err := Driver{}.Observe(context.Background(), v, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	if system != nil {
		v.System = system
	}
	return v
}

func (w *world) plan() *engine.Plan {
	view := w.view()
	p := plandump.Write(Driver{Waits: w.waits}.Plan(view, w.now))
	if lost := drivertest.Withdrawn(view, p); len(lost) > 0 {
		w.t.Fatalf("clients lose something: %q", lost)
	}
	return p
}

// round runs one orchestration and returns its plan.
func (w *world) round() *engine.Plan {
	p := w.plan()
	w.apply(p)
	return p
}

func (w *world) apply(p *engine.Plan) {
	w.writes += len(p.Nodes) + len(p.Resources) + len(p.Daemons) + len(p.Remove) + len(p.Commands)
	w.status = &api.StorageStatus{Status: p.Status}
	for _, s := range p.Nodes {
		for i := range w.nodes {
			if w.nodes[i].Name == s.Name {
				w.nodes[i].Status = s.Status
			}
		}
	}
	for _, c := range p.Resources {
		s := c.Resource.(*api.Volume)
		if c.Gone {
			if w.vol(s.Name).DeletionTimestamp == nil {
				w.t.Fatalf("volume %s is let go and was not deleted", s.Name)
			}
			w.volumes = slices.DeleteFunc(w.volumes, func(v api.Volume) bool { return v.Name == s.Name })
			continue
		}
		w.vol(s.Name).Status = s.Status
	}
	for _, c := range p.Daemons {
		if (w.daemons[c.Daemon.Name] == nil) != c.New {
			w.t.Fatalf("daemon %s: New is %v", c.Daemon.Name, c.New)
		}
		d := c.Daemon.DeepCopy()
		if d.Spec.State == api.WantStopped {
			w.checkStop(d)
		}
		d.Generation++
		w.daemons[d.Name] = d
	}
	for _, r := range p.Remove {
		w.checkRemoval(w.daemons[r.Name])
		now := metav1.NewTime(w.now)
		w.daemons[r.Name].DeletionTimestamp = &now
	}
	held := map[string]bool{}
	w.failures = nil
	for _, c := range p.Commands {
		if c.Line == "" {
			w.t.Fatalf("%s %s holds up all other volumes if it fails", c.Verb, c.Object)
		}
		if !held[c.Line] {
			held[c.Line] = !w.perform(c)
		}
	}
}

// perform has the agent of a daemon carry out a command; like the engine, one that fails holds up those of its line.
func (w *world) perform(c engine.Command) bool {
	d := w.daemons[c.Daemon]
	if d == nil {
		w.t.Fatalf("%s %s is asked of %q, which is no daemon", c.Verb, c.Object, c.Daemon)
	}
	if why := cmp.Or(w.failing[c.Verb], w.failing[c.Verb+" "+c.Object]); why != "" || !w.heard(d.Spec.Host) {
		w.failures = append(w.failures, engine.CommandFailure{Command: c, Message: why})
		return false
	}
	if c.Verb == glusterd.VerbDropBrick {
		if err := w.gluster.drop(w.gluster.nodes[d.Name], c); err != nil {
			w.t.Fatal(err)
		}
		return true
	}
	if _, err := glusterd.CommandLines(c.Verb, c.Object, c.Params); err != nil {
		w.t.Fatal(err)
	}
	err := w.gluster.do(w.gluster.nodes[d.Name], c)
	if err == nil {
		w.gluster.settle()
	}
	return err == nil
}

func (w *world) heard(host string) bool {
	h := w.hostNamed(host)
	return h != nil && h.AgentHeard()
}

// silence has the agent of h<i> heard or not; its machine runs on.
func (w *world) silence(i int, silent bool) {
	h := w.hostNamed(fmt.Sprintf("h%d", i))
	h.Status.Conditions = nil
	if silent {
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(w.now)}}
	}
}

// power turns h<i> off or on.
func (w *world) power(i int, on bool) {
	w.silence(i, !on)
	for _, d := range w.daemons {
		if n := w.gluster.nodes[d.Name]; n != nil && d.Spec.Host == fmt.Sprintf("h%d", i) {
			w.gluster.power(n, on)
		}
	}
	w.gluster.settle()
}

// agents bring each daemon as far as its spec says, and report.
func (w *world) agents() {
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		d := w.daemons[name]
		if !w.heard(d.Spec.Host) {
			continue
		}
		n := w.gluster.node(d)
		switch {
		case d.DeletionTimestamp != nil:
			delete(w.daemons, name)
			delete(w.gluster.nodes, name)
			continue
		case d.Spec.State == api.WantStopped:
			w.gluster.power(n, false)
			d.Status.State, d.Status.ObservedGeneration = api.DaemonStopped, d.Generation
			continue
		}
		if !n.up {
			started := metav1.NewMicroTime(w.now)
			d.Status.Started = &started
			w.gluster.power(n, true)
		}
		n.sync(d, &w.hostNamed(d.Spec.Host).Status)
		d.Status.State = api.DaemonRunning
		d.Status.ObservedGeneration = d.Generation
	}
	w.gluster.settle()
	for _, name := range slices.Sorted(maps.Keys(w.daemons)) {
		if d := w.daemons[name]; !w.late && w.heard(d.Spec.Host) && d.Status.State == api.DaemonRunning {
			text, err := w.gluster.report(d).Text()
			if err != nil {
				w.t.Fatal(err)
			}
			d.Status.Report = text
		}
	}
}

// settle runs rounds until some in a row have changed nothing, and returns the last plan.
func (w *world) settle() *engine.Plan {
	w.t.Helper()
	if p := w.settleFor(80); p != nil {
		return p
	}
	p := w.plan()
	w.t.Fatalf("does not settle:\n%s\ncommands %+v\n%s", strings.Join(decisions(p), "\n"), p.Commands, w.gluster.text())
	return nil
}

// settleFor runs rounds until some in a row have changed nothing, and returns the last plan; nil when there are too many.
func (w *world) settleFor(rounds int) *engine.Plan {
	const enough = 3
	idle := 0
	for range rounds {
		w.agents()
		before := w.writes
		p := w.round()
		w.now = w.now.Add(10 * time.Second)
		if idle++; w.writes != before {
			idle = 0
		}
		w.gluster.heal()
		w.gluster.move()
		if idle >= enough {
			return p
		}
	}
	return nil
}

// checkStop: the set of each brick on a node that is told to stop can do without it.
func (w *world) checkStop(d *api.Daemon) {
	if n := w.gluster.nodes[d.Name]; n != nil && w.daemons[d.Name].Spec.State != api.WantStopped && n.up {
		w.gluster.checkWithout(w.t, n, "node "+n.name+" is stopped", func(*fakeBrick) bool { return false })
	}
}

// checkRemoval: a glusterd that goes has no brick of any volume.
func (w *world) checkRemoval(d *api.Daemon) {
	if w.cluster.DeletionTimestamp != nil {
		return
	}
	for _, v := range w.gluster.volumes {
		for _, b := range v.bricks {
			if b.node.daemon == d.Name {
				w.t.Fatalf("%s is removed and has brick %s of volume %s", d.Name, b.path, v.name)
			}
		}
	}
}

// decisions lists a plan's decisions.
var decisions = conformance.Decisions

func contains(texts []string, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, part) })
}

func commands(p *engine.Plan) []string {
	var all []string
	for _, c := range p.Commands {
		line := c.Daemon + ": " + c.Verb + " " + c.Object
		for _, k := range slices.Sorted(maps.Keys(c.Params)) {
			line += " " + k + "=" + c.Params[k]
		}
		all = append(all, line)
	}
	return all
}
