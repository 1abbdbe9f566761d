package devices_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/hostaction"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/devices"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world has a cluster, and the host h1 with two disks, the first of which has a partition.
func world(t *testing.T) *sim.World {
	t.Helper()
	w := sim.NewWorld()
	must(t, w.AddHost(t.Context(), "h1", []string{"wwn-1", "wwn-2"}))
	must(t, w.ChangeHost(t.Context(), "h1", func(s *api.HostStatus) {
		part := sim.Disk("partuuid-1", "/dev/sdb1")
		part.Kind, part.Parent = api.DevicePartition, "wwn-1"
		s.Devices = append(s.Devices, part)
	}))
	must(t, w.Create(t.Context(), cluster()))
	return w
}

func cluster() *api.StorageCluster {
	return &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t"}, Spec: api.StorageClusterSpec{Type: sim.ToyType},
	}
}

func wipe(id string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: "a", UID: "u"},
		Spec: api.ActionSpec{
			Kind: hostaction.Wipe, Target: "device/" + id, Host: "h1",
			Parameters: map[string]api.ActionParameter{hostaction.ParamConfirm: api.ActionParameter(id)},
		},
	}
}

// labeler has an answer for each device, before and after the question to its storage system.
type labeler struct {
	engine.Driver
	before, after answer
	devices       []string
}

type answer struct {
	why     string
	unknown bool
}

func (l *labeler) Needs(v *engine.View, d *api.Device) (string, bool) {
	l.devices = append(l.devices, d.ID)
	is := l.before
	if v.System != nil {
		is = l.after
	}
	return is.why, is.unknown
}

// planner asks a storage system, which fails or not.
type planner struct {
	asked int
	err   error
}

func (p *planner) Suppose(
	_ context.Context, _ types.NamespacedName, change func(*engine.View),
) (*engine.View, *engine.Plan, error) {
	p.asked++
	v := &engine.View{System: "asked"}
	change(v)
	return v, &engine.Plan{}, p.err
}

func config(w *sim.World, l *labeler, p *planner) devices.Config {
	c := devices.Config{
		Store: w.Memory, Planners: map[api.StorageType]hosts.Planner{}, Labelers: map[api.StorageType]engine.Labeler{},
	}
	if l != nil {
		c.Labelers[sim.ToyType] = l
	}
	if p != nil {
		c.Planners[sim.ToyType] = p
	}
	return c
}

func daemon(t *testing.T, w *sim.World, devices ...api.DaemonDevice) {
	t.Helper()
	must(t, w.PutDaemon(t.Context(), cluster(), engine.DaemonChange{New: true, Daemon: api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: api.DaemonSpec{Host: "h1", Devices: devices},
	}}))
}

func node(t *testing.T, w *sim.World, change func(*api.StorageNode)) {
	t.Helper()
	n := &api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n"},
		Spec: api.StorageNodeSpec{
			Type: sim.ToyType, NodeSelector: map[string]string{api.LabelHostname: "h1"}, Devices: []string{"wwn-2"},
		},
	}
	change(n)
	status := n.Status
	must(t, w.Create(t.Context(), n))
	n.Status = status
	must(t, w.UpdateStatus(t.Context(), n))
}

func group(t *testing.T, w *sim.World, d api.GroupDevice) {
	t.Helper()
	g := &api.DriveGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g"}, Spec: api.DriveGroupSpec{Cluster: "t"},
		Status: api.DriveGroupStatus{Devices: []api.GroupDevice{d}},
	}
	status := g.Status
	must(t, w.Create(t.Context(), g))
	g.Status = status
	must(t, w.UpdateStatus(t.Context(), g))
}

// Whoever may need a disk keeps it, whichever cluster it is.
func TestAccept(t *testing.T) {
	one := []string{"wwn-1"}
	has := func(device api.DaemonDevice) func(*testing.T, *sim.World) {
		return func(t *testing.T, w *sim.World) { t.Helper(); daemon(t, w, device) }
	}
	changed := func(change func(*api.HostStatus)) func(*testing.T, *sim.World) {
		return func(t *testing.T, w *sim.World) { t.Helper(); must(t, w.ChangeHost(t.Context(), "h1", change)) }
	}
	for name, c := range map[string]struct {
		set     func(t *testing.T, w *sim.World)
		id      string
		refused string
	}{
		"nobody's disk":    {},
		"a daemon's":       {set: has(api.DaemonDevice{ID: "wwn-1"}), refused: "in use by daemon d"},
		"a part of it":     {set: has(api.DaemonDevice{ID: "partuuid-1"}), refused: "in use by daemon d"},
		"a part to come":   {set: has(api.DaemonDevice{ID: "p", Of: "wwn-1"}), refused: "in use by daemon d"},
		"another's daemon": {set: has(api.DaemonDevice{ID: "wwn-2"})},
		"a node's": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) { n.Spec.Devices = []string{"/dev/sdb"} })
		}, refused: "StorageNode default/n claims device wwn-1"},
		"a node's partition": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) { n.Spec.Devices = []string{"partuuid-1"} })
		}, refused: "StorageNode default/n claims device partuuid-1"},
		"another's node": {set: func(t *testing.T, w *sim.World) { node(t, w, func(*api.StorageNode) {}) }},
		"recorded, and not declared any more": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) {
				n.Status.Host, n.Status.Devices = "h1", []api.ClaimedDevice{{Name: "/dev/sdb", ID: "wwn-1"}}
			})
		}, refused: "StorageNode default/n claims device wwn-1"},
		"the node excludes it": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) { n.Spec.Devices, n.Spec.Exclude = one, []string{"/dev/sdb"} })
		}},
		"the node wants another": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) { n.Spec.Devices, n.Spec.Replace = one, one })
		}},
		"excluded, and its daemon is there": {set: func(t *testing.T, w *sim.World) {
			node(t, w, func(n *api.StorageNode) { n.Spec.Devices, n.Spec.Exclude = one, one })
			daemon(t, w, api.DaemonDevice{ID: "wwn-1"})
		}, refused: "in use by daemon d"},
		"a group's": {set: func(t *testing.T, w *sim.World) {
			group(t, w, api.GroupDevice{Host: "h1", ID: "wwn-1"})
		}, refused: "DriveGroup default/g has taken device wwn-1"},
		"a group's databases": {set: func(t *testing.T, w *sim.World) {
			group(t, w, api.GroupDevice{Host: "h1", ID: "wwn-2", DB: &api.DeviceSlot{ID: "wwn-1"}})
		}, refused: "DriveGroup default/g has taken device wwn-1"},
		"a group's on another host": {set: func(t *testing.T, w *sim.World) {
			group(t, w, api.GroupDevice{Host: "h2", ID: "wwn-1"})
		}},
		"mounted": {set: changed(func(s *api.HostStatus) {
			s.Devices[2].MountPoints = []string{"/srv"}
		}), refused: "device partuuid-1 (/dev/sdb1) is mounted at /srv"},
		"held": {set: changed(func(s *api.HostStatus) {
			s.Devices[0].Holders = []string{"md0"}
		}), refused: "is part of md0"},
		"a partition":    {id: "partuuid-1", refused: "not a whole disk"},
		"no such device": {id: "wwn-9", refused: "no device of host h1 matches wwn-9"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t)
			if c.set != nil {
				c.set(t, w)
			}
			if c.id == "" {
				c.id = "wwn-1"
			}
			err := config(w, nil, nil).Accept(t.Context(), wipe(c.id))
			if (err == nil) != (c.refused == "") || err != nil && !strings.Contains(err.Error(), c.refused) {
				t.Errorf("error %v, want %q", err, c.refused)
			}
			if err != nil && !errors.Is(err, action.ErrRefused) {
				t.Errorf("%v is no refusal", err)
			}
			against, err := config(w, nil, nil).Ask(t.Context(), wipe(c.id))
			if err != nil || !strings.Contains(against, c.refused) || (against == "") != (c.refused == "") {
				t.Errorf("when its turn has come: %q, %v", against, err)
			}
		})
	}
}

// The storage system is asked where the label alone does not say whose a disk is. While it does not
// answer, nothing is wiped.
func TestAccept_label(t *testing.T) {
	asks := answer{unknown: true}
	for name, c := range map[string]struct {
		before, after answer
		err           error
		refused       bool
		wait          string
		asked         int
	}{
		"a stranger's label":      {},
		"ours, as Holdfast knows": {before: answer{why: "it holds osd.3"}, refused: true},
		"ours, as Ceph says":      {before: asks, after: answer{why: "it holds osd.3"}, refused: true, asked: 1},
		"ours, and not needed":    {before: asks, asked: 1},
		"nobody says":             {before: asks, after: asks, wait: "does not answer", asked: 1},
		"nobody can be asked":     {before: asks, err: errors.New("no quorum"), wait: "no quorum", asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			l, p := &labeler{before: c.before, after: c.after}, &planner{err: c.err}
			err := config(world(t), l, p).Accept(t.Context(), wipe("wwn-1"))
			if errors.Is(err, action.ErrRefused) != c.refused {
				t.Errorf("refused: %v", err)
			}
			if c.refused && !strings.Contains(err.Error(), "cluster default/t needs device wwn-1: it holds osd.3") {
				t.Errorf("%v", err)
			}
			if !c.refused && (err == nil) != (c.wait == "") || err != nil && !strings.Contains(err.Error(), c.wait) {
				t.Errorf("error %v, want %q", err, c.wait)
			}
			if p.asked != c.asked {
				t.Errorf("asked %d times", p.asked)
			}
			if err == nil && strings.Join(l.devices[len(l.devices)-1:], "") != "partuuid-1" {
				t.Errorf("only the labels of %v were looked at", l.devices)
			}
			against, err := config(world(t), l, p).Ask(t.Context(), wipe("wwn-1"))
			if (err != nil) != (c.wait != "") || (against != "") != c.refused {
				t.Errorf("when its turn has come: %q, %v", against, err)
			}
		})
	}
}

// Of other kinds it checks the form alone. The agent judges a host that is gone.
func TestAccept_others(t *testing.T) {
	w := world(t)
	c := config(w, &labeler{before: answer{why: "it holds osd.3"}}, nil)
	light := wipe("wwn-1")
	light.Spec.Kind = hostaction.Light
	light.Spec.Parameters = map[string]api.ActionParameter{
		hostaction.ParamLight: hostaction.Ident, hostaction.ParamState: hostaction.On,
	}
	rescan := wipe("")
	rescan.Spec.Kind, rescan.Spec.Target = hostaction.Rescan, "host/h1"
	gone := wipe("wwn-1")
	gone.Spec.Host = "h9"
	for _, a := range []*api.Action{light, rescan, gone} {
		if err := c.Accept(t.Context(), a); err != nil {
			t.Errorf("%s on %s: %v", a.Spec.Kind, a.Spec.Host, err)
		}
	}
	light.Spec.Target, rescan.Spec.Target = "device/wwn-9", "host/h2"
	for _, a := range []*api.Action{light, rescan} {
		if err := c.Accept(t.Context(), a); !errors.Is(err, action.ErrRefused) {
			t.Errorf("%s of %s: %v", a.Spec.Kind, a.Spec.Target, err)
		}
	}
}
