package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/engine"
)

// splitWorld is grouped, with a third disk in each host that the group has its databases on.
func splitWorld() *fakeWorld {
	f := grouped(func(g *api.DriveGroup) {
		g.Spec.DataDevices, g.Spec.DBDevices = []api.DriveFilter{{Model: "hdd"}}, []api.DriveFilter{{Model: "ssd"}}
	})
	for i := range f.hosts {
		h := &f.hosts[i]
		for d := range h.Status.Devices {
			h.Status.Devices[d].Model = "hdd"
		}
		h.Status.Devices = append(h.Status.Devices, api.Device{
			ID: fmt.Sprintf("ssd-%d", i+1), Model: "ssd", Serial: fmt.Sprintf("F%d", i+1), Size: resource.MustParse("100Gi"), Availability: api.DeviceAvailable,
		})
	}
	return f
}

// divide makes the partitions of an OSD.
func (f *fakeWorld) divide(d *api.Daemon) {
	for _, x := range partsOf(d) {
		if f.there(x.ID) {
			continue
		}
		h := &f.hosts[d.Spec.Host[1]-'1']
		disk := f.device(x.Of)
		disk.Availability, disk.Reasons = api.DeviceUnavailable, []string{"has partitions"}
		h.Status.Devices = append(h.Status.Devices, api.Device{
			ID: x.ID, Kind: api.DevicePartition, Parent: x.Of, Size: *resource.NewQuantity(x.Bytes, resource.BinarySI),
		})
	}
}

// free takes away those of an OSD that is removed.
func (f *fakeWorld) free(d *api.Daemon) {
	if d.Spec.OnRemoval != api.DeletionWipe && d.Spec.Parameters[ParamDrain] != memory.Replace {
		return
	}
	for _, x := range partsOf(d) {
		if x.Name == DeviceBlock && d.Spec.OnRemoval != api.DeletionWipe {
			continue
		}
		h := &f.hosts[d.Spec.Host[1]-'1']
		h.Status.Devices = slices.DeleteFunc(h.Status.Devices, func(p api.Device) bool { return p.ID == x.ID })
		if f.there(x.Of) && !slices.ContainsFunc(h.Status.Devices, func(p api.Device) bool { return p.Parent == x.Of }) {
			f.device(x.Of).Availability, f.device(x.Of).Reasons = api.DeviceAvailable, nil
		}
	}
}

func TestGroup_databases(t *testing.T) {
	f := splitWorld()
	if p := f.plan(); !contains(decisions(p, api.VerdictDo), "drivegroup/g: disk ssd-1 (ssd F1 107.4 GB) of host h1 holds the databases of the OSDs on wwn-10, wwn-11, 53.7 GB each") {
		t.Errorf("%v", decisions(p))
	}
	f.settle(t)
	seen := map[string]bool{}
	for i := range 6 {
		d := f.daemons[fmt.Sprint("c-osd-", i)]
		x := partsOf(d)
		if len(x) != 1 || x[0].Name != DeviceDB || x[0].Of != "ssd-"+d.Spec.Host[1:] || x[0].Bytes != 51199<<20 || seen[x[0].ID] {
			t.Errorf("%s: %+v", d.Name, d.Spec.Devices)
			continue
		}
		seen[x[0].ID] = true
	}
	f.writes = 0
	if p := f.round(t); f.writes > 0 || !p.Done {
		t.Errorf("%d writes, done %v: %v", f.writes, p.Done, p.Status.Reasons)
	}
	if s := f.groups[0].Status; s.Taken != 6 || s.Devices[0].DB == nil || s.Devices[0].DB.Serial != "F1" || s.State != api.ResourceOnline {
		t.Errorf("%+v", s)
	}
}

// What another cluster is about to have a part of is not taken, although nothing is on it yet.
func TestGroup_othersParts(t *testing.T) {
	f := splitWorld()
	other := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other-osd-0"}}
	other.Spec = api.DaemonSpec{Cluster: "other", Type: TypeOSD, ID: "0", Host: "h1", Devices: []api.DaemonDevice{
		{Name: DeviceBlock, ID: "partuuid-1", Of: "wwn-10"}, {Name: DeviceDB, ID: "partuuid-2", Of: "ssd-1"},
	}}
	f.others = []*api.Daemon{other}
	f.clusters = []api.StorageCluster{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}, Spec: api.StorageClusterSpec{Type: api.StorageCeph}}}
	f.hosts[0].Status.Devices = append(f.hosts[0].Status.Devices, api.Device{
		ID: "partuuid-3", Kind: api.DevicePartition, Parent: "wwn-10", Model: "hdd", Size: resource.MustParse("10Gi"), Availability: api.DeviceAvailable,
	})
	f.groups[0].Spec.DataDevices = append(f.groups[0].Spec.DataDevices, api.DriveFilter{Paths: []string{"partuuid-3"}})
	p := f.plan()
	for _, id := range []string{"wwn-10", "partuuid-3"} {
		if !contains(decisions(p, api.VerdictSkip), "drivegroup/g: disk "+id+" ") || !contains(decisions(p, api.VerdictSkip), "daemon other-osd-0 of cluster default/other uses it") {
			t.Errorf("%s: %v", id, decisions(p))
		}
	}
	if !contains(decisions(p, api.VerdictRefuse), "no disk of host h1 is used, because it has none for the databases of its OSDs") {
		t.Errorf("the disk for databases: %v", decisions(p))
	}
	if got := f.plan().Daemons; slices.ContainsFunc(got, func(c engine.DaemonChange) bool { return c.Daemon.Spec.Type == TypeOSD && c.Daemon.Spec.Host == "h1" }) {
		t.Errorf("%+v", got)
	}
}

// A group whose databases have no place is refused before anything is made.
func TestGroup_databasesRefused(t *testing.T) {
	f := splitWorld()
	f.device("ssd-2").Availability = api.DeviceUnavailable
	f.device("ssd-2").Reasons = []string{"it is mounted at /"}
	p := f.plan()
	if !p.Refused || len(p.Daemons) > 0 || !contains(decisions(p, api.VerdictRefuse), "drivegroup/g: no disk of host h2 is used, because it has none for the databases of its OSDs") {
		t.Errorf("%v", decisions(p))
	}
}

// freshDisk puts a disk into h1.
func (f *fakeWorld) freshDisk(id string) {
	f.hosts[0].Status.Devices = append(f.hosts[0].Status.Devices, api.Device{ID: id, Model: "hdd", Size: resource.MustParse("1T"), Availability: api.DeviceAvailable})
}

// A disk that failed is replaced: the new one has the number of the old one, and its database is in the place of the old one's.
func TestGroup_databaseOfAReplacedDisk(t *testing.T) {
	f := splitWorld()
	f.settle(t)
	old := partsOf(f.daemons["c-osd-0"])[0].ID
	f.pull(1, "wwn-10", "wwn-1x")
	f.device("wwn-1x").Model = "hdd"
	f.groups[0].Spec.Exclude, f.groups[0].Spec.Take = []string{"wwn-10"}, []string{"wwn-1x"}
	f.settle(t)
	d := f.daemons["c-osd-0"]
	if d == nil || placeOf(d).device != "wwn-1x" || len(partsOf(d)) != 1 || partsOf(d)[0].Of != "ssd-1" || partsOf(d)[0].Bytes != 51199<<20 || f.there(old) {
		t.Errorf("%s", f.osdPlaces())
	}
}

// A disk that works is exchanged: the new one waits until the old one's database is gone, and is made where that was. Where it is kept, there is
// no room.
func TestGroup_databaseOfAnExchangedDisk(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionWipe, api.DeletionRetain} {
		f := splitWorld()
		f.cluster.Spec.DeletionPolicy = policy
		f.settle(t)
		f.freshDisk("wwn-1x")
		f.groups[0].Spec.Exclude, f.groups[0].Spec.Take = []string{"wwn-10"}, []string{"wwn-1x"}
		first := f.round(t)
		f.settle(t)
		made := f.taken("wwn-1x")
		switch {
		case policy == api.DeletionRetain:
			if made != nil || !contains(decisions(first, api.VerdictRefuse), "no disk for 1 new OSD of host h1 is used, because there is no space for the databases") {
				t.Errorf("%s: %v", f.osdPlaces(), decisions(first))
			}
		case made == nil || partsOf(made)[0].Of != "ssd-1" || !contains(decisions(first, api.VerdictWait), "waiting for space on disk ssd-1 for its block.db: a leaving OSD still uses it"):
			t.Errorf("%s: %v", f.osdPlaces(), decisions(first))
		}
	}
}

// A host with databases that is removed while its OSDs are known keeps nobody from planning, whatever becomes of the databases.
func TestGroup_databasesOfAGoneHost(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		f := splitWorld()
		f.cluster.Spec.DeletionPolicy = policy
		f.settle(t)
		f.powerOff(3, 0)
		f.agents()
		f.hosts = f.hosts[:2]
		if p := f.round(t); len(p.Decisions) == 0 {
			t.Errorf("%s: nothing is said of it", policy)
		}
	}
}

func (f *fakeWorld) taken(device string) *api.Daemon {
	for _, d := range f.daemons {
		if d.Spec.Type == TypeOSD && placeOf(d).device == device {
			return d
		}
	}
	return nil
}

// A disk for databases is lost: the OSDs that it served are named with that reason.
func TestGroup_databaseLost(t *testing.T) {
	f := splitWorld()
	f.settle(t)
	h := &f.hosts[0]
	rest := h.Status.Devices[:0]
	for _, d := range h.Status.Devices {
		if d.ID != "ssd-1" && d.Parent != "ssd-1" {
			rest = append(rest, d)
		}
	}
	h.Status.Devices = rest
	f.broken["c-osd-0"], f.broken["c-osd-1"] = true, true
	f.agents()
	p := f.round(t)
	for _, o := range []string{"osd.0", "osd.1"} {
		if !contains(decisions(p, api.VerdictWait), o+": its block.db is on disk ssd-1, which is missing on host h1") {
			t.Errorf("%s: %v", o, strings.Join(decisions(p), "\n"))
		}
	}
}

// dm-crypt is said to be on all hosts, or on none.
func (f *fakeWorld) canEncrypt(status metav1.ConditionStatus) {
	for i := range f.hosts {
		f.hosts[i].Status.Conditions = []metav1.Condition{{Type: api.HostEncryption, Status: status, Message: "the kernel has no device-mapper"}}
	}
}

// The devices of an encrypted OSD are named with the Secret of its own; those that are there when the group changes stay as they are.
func TestGroup_encrypted(t *testing.T) {
	f := splitWorld()
	f.groups[0].Spec.Encrypted, f.groups[0].Spec.DBSlots = true, 3
	if p := f.plan(); !p.Refused || !contains(decisions(p, api.VerdictRefuse), "no disk of host h1 is used, because the host cannot encrypt disks: its agent does not support encryption") {
		t.Errorf("%v", decisions(p))
	}
	f.canEncrypt(metav1.ConditionFalse)
	if p := f.plan(); !p.Refused || !contains(decisions(p, api.VerdictRefuse), "no disk of host h3 is used, because the host cannot encrypt disks: the kernel has no device-mapper") {
		t.Errorf("%v", decisions(p))
	}
	f.canEncrypt(metav1.ConditionTrue)
	f.settle(t)
	for i := range 6 {
		d := f.daemons[fmt.Sprint("c-osd-", i)]
		for _, x := range d.Spec.Devices {
			if x.KeySecret != fmt.Sprint("c-key-osd.", i) {
				t.Errorf("%s: %+v", d.Name, x)
			}
		}
		if key := f.secrets[fmt.Sprint("c-key-osd.", i)].data[api.KeyLUKS]; len(key) < 32 {
			t.Errorf("the key of osd.%d has %d characters", i, len(key))
		}
	}
	f.groups[0].Spec.Encrypted = false
	f.freshDisk("wwn-1x")
	f.groups[0].Spec.Take = []string{"wwn-1x"}
	f.settle(t)
	if d := f.taken("wwn-1x"); !isEncrypted(f.daemons["c-osd-0"]) || d == nil || len(partsOf(d)) != 1 || isEncrypted(d) {
		t.Errorf("%+v", d)
	}
}
