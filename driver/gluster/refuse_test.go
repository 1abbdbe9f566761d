package gluster

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// What cannot be done is refused, with the reason, and nothing is touched.
func TestRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(*world) // the cluster comes to rest after it
		change func(*world)
		want   string
	}{
		{
			"replica 3 on two nodes", func(w *world) { w.undeclare("n3") }, func(w *world) { w.volume("v", "1Gi", replica3()) },
			"Refuse volume/v: replica 3 needs 3 nodes with devices or directories",
		},
		{"disperse on too few nodes", nil, func(w *world) {
			w.volume("v", "1Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 4, Redundancy: 2}})
		}, "Refuse volume/v: disperse 4 + 2 needs 6 nodes"},
		{"no room", nil, func(w *world) { w.volume("v", "1Ti", nil) }, "Refuse volume/v: there is no room for 1Ti as replica 3 on 3 nodes: the emptiest place has 95Gi"},
		{"device with data", nil, func(w *world) {
			h := w.host(4, 1)
			h.Status.Devices[0].Availability, h.Status.Devices[0].Reasons = api.DeviceUnavailable, []string{"it has an ext4 file system"}
			w.node(4, 1)
		}, "Refuse node/n4: device wwn-40 on host h4 cannot be used: it has an ext4 file system"},
		{
			"shrinking", func(w *world) { w.volume("v", "10Gi", nil) }, func(w *world) { w.vol("v").Spec.Size = resource.MustParse("5Gi") },
			"Refuse volume/v: its size cannot go from 10Gi to 5Gi: bricks never shrink",
		},
		{"an address in use", nil, func(w *world) {
			w.hosts[0].Status.Addresses = append(w.hosts[0].Status.Addresses, "10.9.9.9")
			w.nodes[0].Spec.StorageNetwork.IPs = []string{"10.9.9.9"}
		}, "Refuse node/n1: its address would change from 10.0.0.1 to 10.9.9.9, and the pool and all clients know it by 10.0.0.1"},
		{"another host", nil, func(w *world) {
			w.host(4, 0)
			w.nodes[0].Spec.NodeSelector = map[string]string{api.LabelHostname: "h4"}
		}, "its nodeSelector now selects h4"},
		{"a node of two clusters", nil, func(w *world) {
			w.host(4, 1)
			w.node(4, 1)
			w.others = append(w.others, otherGlusterd("h4", "10.0.0.4", ""))
		}, "Refuse node/n4: node x of cluster other/o has a glusterd on host h4 with the address 10.0.0.4 already"},
		{"a directory of two clusters", nil, func(w *world) {
			h := w.host(4, 1)
			h.Status.Addresses = append(h.Status.Addresses, "10.1.0.4")
			w.node(4, 1).Spec.Directories = []string{"/srv/bricks"}
			w.others = append(w.others, otherGlusterd("h4", "10.1.0.4", "/srv"))
		}, "Refuse node/n4: directory /srv/bricks of host h4 is used by o-glusterd-x"},
		{"a directory of two new nodes", nil, func(w *world) {
			h := w.host(4, 0)
			h.Status.Addresses = append(h.Status.Addresses, "10.1.0.4")
			w.node(4, 1).Spec.Directories = []string{"/srv/bricks"}
			n := w.node(4, 1)
			n.Name, n.Spec.Directories, n.Spec.StorageNetwork.IPs = "n5", []string{"/srv"}, []string{"10.1.0.4"}
		}, "Refuse node/n5: directory /srv of host h4 is used by"},
		{"two nodes on one address", nil, func(w *world) {
			w.node(1, 1).Name = "n1b"
		}, "node n1 has a glusterd on host h1 with the address 10.0.0.1 already"},
		{
			"a node that is needed", func(w *world) { w.volume("v", "1Gi", nil) }, func(w *world) { w.undeclare("n2") },
			"Refuse node/n2: its StorageNode was deleted, and brick /m/wwn-20/v.1 of volume v (replica 3, 1Gi) has nowhere to go",
		},
		{
			"a device that is needed", func(w *world) { w.volume("v", "1Gi", nil) }, func(w *world) { w.nodes[1].Spec.Devices = nil },
			"Refuse node/n2: device wwn-20 was removed from StorageNode n2, and brick",
		},
		{"the only copy", func(w *world) {
			w.volume("v", "1Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
		}, func(w *world) {
			b := w.gluster.volumes["v"].bricks[0]
			b.node.store(b.path).dead = true
			w.gluster.settle()
			w.undeclare(b.node.name)
		}, "has the only copy of its files and does not serve: bring it back"},
		{
			"built in another way", func(w *world) {
				w.volume("v", "1Gi", nil)
				w.settle()
				now := metav1.NewTime(w.now)
				w.vol("v").DeletionTimestamp = &now
			}, func(w *world) { w.volume("v", "1Gi", &api.VolumeDurability{Arbiter: &api.VolumeArbiter{}}) },
			"Refuse volume/v: the pool has a volume of this name that is built in another way (1 x 3, and 1 x (2 + 1) is declared)",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := poolOf(t, 3)
			if test.before != nil {
				test.before(w)
			}
			w.settle()
			before := w.gluster.text()
			test.change(w)
			w.agents()
			changed := w.gluster.text()
			p := w.settle()
			// What is wrong with a volume degrades no cluster. One of two nodes waits for a third.
			degraded := p.Status.Status == api.StorageDegraded
			if !contains(decisions(p), test.want) || p.Done || degraded && strings.HasPrefix(test.want, "Refuse volume/") ||
				p.Status.Status == api.StorageOnline && !strings.HasPrefix(test.want, "Refuse volume/") {
				t.Errorf("%s\n%s, decisions %q", test.want, p.Status.Status, decisions(p))
			}
			if after := w.gluster.text(); after != before && after != changed {
				t.Errorf("something was touched:\n%s\nbefore:\n%s", after, before)
			}
		})
	}
}

func otherGlusterd(host, address, dirs string) *api.Daemon {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "o-glusterd-x"}}
	d.Spec = api.DaemonSpec{Cluster: "o", Type: glusterd.Type, ID: "x", Host: host, Parameters: map[string]string{
		glusterd.ParamAddress: address, glusterd.ParamDirectories: dirs,
	}}
	return d
}

// A set of which the rest lists different things to heal may have its last good copy on the brick that is down.
func TestLastGoodCopy(t *testing.T) {
	set := func(heals ...int64) []glusterd.Brick {
		bricks := make([]glusterd.Brick, len(heals))
		for i, h := range heals {
			bricks[i] = glusterd.Brick{Address: "10.0.0." + string(rune('1'+i)), Path: "/b", State: glusterd.BrickOnline, Heal: &glusterd.Heal{Pending: h}}
		}
		return bricks
	}
	down := func(bricks []glusterd.Brick, i int) []glusterd.Brick {
		bricks[i].State, bricks[i].Heal = glusterd.BrickOffline, nil
		return bricks
	}
	split := set(0, 0, 0)
	split[1].Heal.SplitBrain = 1
	nobody := func(*glusterd.Brick) bool { return false }
	replica, disperse := &glusterd.Volume{Replica: 3}, &glusterd.Volume{Disperse: 6, Redundancy: 2}
	for _, test := range []struct {
		name   string
		v      *glusterd.Volume
		set    []glusterd.Brick
		away   func(*glusterd.Brick) bool
		want   string
		passes bool
	}{
		{"all is well", replica, set(0, 0, 0), nobody, "", false},
		{"it is down and the others agree", replica, down(set(0, 20, 20), 0), nobody, "", false},
		{"it is down and the others do not agree", replica, down(set(0, 20, 30), 0), nobody, "may have the last good copy", false},
		{"it is down and nobody knows", replica, func() []glusterd.Brick { s := down(set(0, 0, 0), 0); s[2].Heal = nil; return s }(), nobody, "it is not known what", false},
		{"a heal is under way", replica, set(0, 5, 0), nobody, "a heal is in progress", true},
		{"another one is down", replica, down(set(0, 0, 0), 2), nobody, "10.0.0.3:/b of the same set does not serve", false},
		{"another one is about to stop", replica, set(0, 0, 0), func(b *glusterd.Brick) bool { return b.Address == "10.0.0.2" }, "10.0.0.2:/b of the same set does not serve", false},
		{"split-brain", replica, split, nobody, "have to be decided first", true},
		{"two copies", &glusterd.Volume{Replica: 2}, set(0, 0), nobody, "2 of the 2 bricks of a set have to serve", false},
		{"one copy", &glusterd.Volume{}, set(0), nobody, "has the only copy", false},
		{"fragments", disperse, set(0, 0, 0, 0, 0, 0), nobody, "", false},
		{"unknown", &glusterd.Volume{Replica: 3, Unknown: "busy"}, set(0, 0, 0), nobody, "busy", true},
	} {
		got := sets.Without(test.v, test.set, 0, test.away)
		why, passes := got.Message, got.Verdict == api.VerdictWait
		if !contains([]string{why}, test.want) || test.want == "" && why != "" || why != "" && passes != test.passes {
			t.Errorf("%s: %+v, want %q, passes %v", test.name, got, test.want, test.passes)
		}
	}
}

// A node that knows nothing of the pool founds no second one while the pool is not heard.
func TestNoSecondPool(t *testing.T) {
	w := poolOf(t, 1)
	w.volume("v", "1Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	w.power(1, false)
	w.host(2, 1)
	w.node(2, 1)
	w.volume("v2", "1Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	p := w.settle()
	if len(w.gluster.volumes) != 1 || !contains(p.Status.Reasons, "no node of the pool is connected (such as n1)") {
		t.Fatalf("%v\n%s", p.Status.Reasons, w.gluster.text())
	}
	w.power(1, true)
	if p = w.settle(); !p.Done || w.gluster.nodes["c-glusterd-n1"].pool != w.gluster.nodes["c-glusterd-n2"].pool {
		t.Errorf("%v", decisions(p))
	}
}

// A drain that could not move all files is never committed: it is stopped, started again, and committed when nothing is left.
func TestDrain_failures(t *testing.T) {
	w := poolOf(t, 3)
	w.volume("v", "1Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	w.settle()
	w.undeclare(w.gluster.volumes["v"].bricks[0].node.name)
	var seen []string
	for range 40 {
		w.agents()
		p := w.round()
		for _, c := range p.Commands {
			seen = append(seen, c.Verb)
		}
		if task := w.gluster.volumes["v"].task; task != nil && !slices.Contains(seen, glusterd.VerbRemoveStop) {
			task.Failures = 5
		}
		w.gluster.move()
	}
	want := []string{glusterd.VerbAddBrick, glusterd.VerbRemoveStart, glusterd.VerbRemoveStop, glusterd.VerbRemoveStart, glusterd.VerbRemoveCommit}
	got := slices.DeleteFunc(seen, func(v string) bool { return !slices.Contains(want, v) })
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if p := w.settle(); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}
