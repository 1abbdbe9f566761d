package ceph

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// carry takes a disk with its OSD out of a host and puts it into another one.
func (f *fakeWorld) carry(osd, from, to int, id string) {
	h := &f.hosts[from-1]
	i := slices.IndexFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id })
	f.hosts[to-1].Status.Devices = append(f.hosts[to-1].Status.Devices, h.Status.Devices[i])
	h.Status.Devices = slices.Delete(h.Status.Devices, i, i+1)
	f.broken["c-"+strings.Replace(osdName(osd), ".", "-", 1)] = true
	f.agents()
}

// arrives runs orchestrations until osd.3 has a Daemon on a host, where it works.
func (f *fakeWorld) arrives(t *testing.T, host string) {
	t.Helper()
	f.until(t, "osd.3 has left", func() bool { return f.daemons["c-osd-3"] == nil || f.daemons["c-osd-3"].Spec.Host == host })
	delete(f.broken, "c-osd-3")
	p := f.settle(t)
	d := f.daemons["c-osd-3"]
	if !p.Done || d.Spec.Host != host || placeOf(d).device != "wwn-21" || told(d) || drains(d) {
		t.Errorf("on %s, wanted %s: %v", d.Spec.Host, d.Spec.State, decisions(p))
	}
}

// An OSD whose disk was carried to another host follows it there when the disk is named there: with its number, its identity and its data, and
// without any word to Ceph. Until then nothing happens, and it is told what to do, also when the disk was taken out of its old node.
func TestMoved(t *testing.T) {
	for name, first := range map[string]func(*fakeWorld){
		"still named": func(*fakeWorld) {},
		"taken out":   func(f *fakeWorld) { f.nodes[1].Spec.Devices = []string{"wwn-20"} },
		"taken out of a cluster that wipes": func(f *fakeWorld) {
			f.cluster.Spec.DeletionPolicy, f.nodes[1].Spec.Devices = api.DeletionWipe, []string{"wwn-20"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			uuid := f.ceph.OSDs()[3]
			f.carry(3, 2, 4, "wwn-21")
			first(f)
			p := f.settle(t)
			if w := word(decisions(p, api.VerdictWait), "osd.3"); !strings.HasPrefix(w, "its disk is in host h4 now, as wwn-21: move it from the StorageNode of host h2") || drains(f.daemons["c-osd-3"]) {
				t.Fatalf("%q of %v", w, decisions(p))
			}
			f.nodes[1].Spec.Devices = []string{"wwn-20"}
			f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
			v, _, err := f.observed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if engine.Project(f.driver, v, f.now).Risk() == api.RiskData {
				t.Error("its plan says that data is destroyed")
			}
			f.arrives(t, "h4")
			if f.ceph.OSDs()[3] != uuid || len(f.ceph.OSDs()) != 8 || f.ceph.Calls("osd purge")+f.ceph.Calls("osd destroy")+f.ceph.Calls("osd crush reweight") > 0 {
				t.Errorf("OSDs %v", f.ceph.OSDs())
			}
		})
	}
}

// An OSD that was told to leave, and whose disk is then carried over and named, gets its weight back. Its Daemon on the old host does not have the disk
// wiped any more when it goes, should that be seen there again.
func TestMoved_thatWasToLeave(t *testing.T) {
	f := withFake(twoDisks())
	f.cluster.Spec.DeletionPolicy = api.DeletionWipe
	f.settle(t)
	f.ceph.Stick(3, true)
	f.nodes[1].Spec.Devices = []string{"wwn-20"}
	f.settle(t)
	if f.ceph.Weight(3) != 0 {
		t.Fatal("osd.3 has its weight")
	}
	f.carry(3, 2, 4, "wwn-21")
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
	if d := f.daemons["c-osd-3"]; d.Spec.OnRemoval != api.DeletionWipe {
		t.Fatalf("it is not wiped: %v", d.Spec.OnRemoval)
	}
	f.until(t, "osd.3 is removed", func() bool { d := f.daemons["c-osd-3"]; return d == nil || d.DeletionTimestamp != nil })
	if d := f.daemons["c-osd-3"]; d != nil && d.Spec.OnRemoval != api.DeletionRetain {
		t.Errorf("its disk is wiped where it is seen")
	}
	f.arrives(t, "h4")
	if f.ceph.Weight(3) != f.ceph.Weight(2) {
		t.Errorf("osd.3 has weight %v", f.ceph.Weight(3))
	}
}

// As long as Ceph does not answer nobody is told to wipe a disk of its own.
func TestMoved_cephSilent(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.carry(3, 2, 4, "wwn-21")
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
	if p := f.plan(); contains(decisions(p), "wipe it") || !contains(decisions(p, api.VerdictRefuse), "of this cluster: waiting for Ceph to say whether it is needed") {
		t.Errorf("%v", decisions(p))
	}
}

// The disk is carried out of a host that is drained: its OSD goes with it, and the host is empty then.
func TestMoved_fromDrainedHost(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.carry(3, 2, 4, "wwn-21")
	f.mode(2, api.HostDrain)
	f.nodes[1].Spec.Devices = []string{"wwn-20"}
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
	f.arrives(t, "h4")
	if len(f.states("h2")) > 0 || f.ceph.Calls("osd purge") != 1 {
		t.Errorf("on h2 is %v, %d were purged", f.states("h2"), f.ceph.Calls("osd purge"))
	}
}

// The disks of a host that is gone for good can be put into another one. An encrypted one is opened with the key of its OSD, though a StorageNode
// names it.
func TestMoved_encryptedFromGoneHost(t *testing.T) {
	f := grouped(func(g *api.DriveGroup) { g.Spec.Encrypted = true })
	f.host(4, 1)
	f.canEncrypt(metav1.ConditionTrue)
	f.settle(t)
	var d *api.Daemon
	for _, x := range f.daemons {
		if placeOf(x).host == "h4" && x.Spec.Type == TypeOSD {
			d = x
		}
	}
	key := d.Spec.Devices[0].KeySecret
	f.hosts[0].Status.Devices = append(f.hosts[0].Status.Devices, *f.device("wwn-40"))
	f.off["h4"] = true
	f.hosts = f.hosts[:3]
	f.node(1, "wwn-40")
	f.agents()
	delete(f.daemons, d.Name) // as the engine does for a host that is gone
	f.settle(t)
	if got := f.daemons[d.Name]; got == nil || got.Spec.Host != "h1" || got.Spec.Devices[0].KeySecret != key || key == "" {
		t.Errorf("%+v", got)
	}
}

// An OSD whose Daemon was lost comes back with its database, which ceph-volume has made for it: the label there tells.
func TestReturns_withDatabase(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.broken["c-osd-3"] = true
	f.agents()
	db := volumePrefix + strings.Repeat("3", 64)
	f.hosts[1].Status.Devices = append(f.hosts[1].Status.Devices, api.Device{
		ID: db, Path: "/dev/dm-0", Kind: api.DeviceMapped, Availability: api.DeviceUnavailable, Ceph: &api.DeviceCeph{FSID: f.device("wwn-21").Ceph.FSID, OSDUUID: f.device("wwn-21").Ceph.OSDUUID, Part: "db"},
	})
	delete(f.daemons, "c-osd-3")
	clone := f.hosts[1].Status.Devices[len(f.hosts[1].Status.Devices)-1]
	clone.ID = volumePrefix + strings.Repeat("4", 64)
	f.hosts[1].Status.Devices = append(f.hosts[1].Status.Devices, clone)
	if p := f.settle(t); f.daemons["c-osd-3"] != nil || !contains(decisions(p, api.VerdictRefuse), "both have the label of its block.db") {
		t.Errorf("of two databases one is taken: %v", decisions(p))
	}
	f.hosts[1].Status.Devices = f.hosts[1].Status.Devices[:len(f.hosts[1].Status.Devices)-1]
	f.settle(t)
	want := []api.DaemonDevice{{Name: DeviceBlock, ID: "wwn-21"}, {Name: DeviceDB, ID: db}}
	if d := f.daemons["c-osd-3"]; d == nil || !slices.Equal(d.Spec.Devices, want) {
		t.Errorf("%+v", d)
	}
}

// A disk with a label that another one has, too, is taken for none of them when its Daemon was lost.
func TestMoved_copiesWithoutDaemon(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.carry(3, 2, 4, "wwn-21")
	clone := *f.device("wwn-21")
	clone.ID = "wwn-1x"
	f.hosts[0].Status.Devices = append(f.hosts[0].Status.Devices, clone)
	f.nodes[1].Spec.Devices = []string{"wwn-20"}
	delete(f.daemons, "c-osd-3")
	f.nodes[0].Spec.Devices, f.nodes[3].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-1x"), append(f.nodes[3].Spec.Devices, "wwn-21")
	p := f.settle(t)
	if !contains(decisions(p, api.VerdictRefuse), "disks on h1 and h4 have its label") || len(f.daemonsOf(TypeOSD)) != 7 {
		t.Errorf("%v", decisions(p))
	}
}

// What is not plainly a disk that was carried over is left alone.
func TestMoved_notFollowed(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*fakeWorld)
		want string
	}{
		"a copy, and the disk is there": {func(f *fakeWorld) {
			f.hosts[3].Status.Devices = append(f.hosts[3].Status.Devices, *f.device("wwn-21"))
			f.broken["c-osd-3"] = true
			f.agents()
		}, ""},
		"two copies": {func(f *fakeWorld) {
			f.carry(3, 2, 4, "wwn-21")
			f.hosts[2].Status.Devices = append(f.hosts[2].Status.Devices, *f.device("wwn-21"))
		}, "disks on h3 and h4 have its label"},
		"its host is silent": {func(f *fakeWorld) {
			f.hosts[3].Status.Devices = append(f.hosts[3].Status.Devices, *f.device("wwn-21"))
			f.powerOff(2, 0)
			f.agents()
		}, ""},
		"its database": {func(f *fakeWorld) {
			f.carry(3, 2, 4, "wwn-21")
			f.device("wwn-21").Ceph.Part = "db"
		}, ""},
		"a copy is in the place of the disk": {func(f *fakeWorld) {
			clone := *f.device("wwn-21")
			clone.ID = "wwn-2x"
			f.carry(3, 2, 4, "wwn-21")
			f.hosts[1].Status.Devices = append(f.hosts[1].Status.Devices, clone)
		}, "disks on h2 and h4 have its label"},
		"another cluster's": {func(f *fakeWorld) {
			f.carry(3, 2, 4, "wwn-21")
			f.device("wwn-21").Ceph.FSID = "aaaaaaaa-0000-4000-8000-000000000000"
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			tt.do(f)
			f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
			p := f.settle(t)
			if d := f.daemons["c-osd-3"]; d.Spec.Host != "h2" || drains(d) || d.DeletionTimestamp != nil || !contains(decisions(p), tt.want) {
				t.Errorf("%s on %s: %v", d.Spec.State, d.Spec.Host, decisions(p))
			}
		})
	}
}
