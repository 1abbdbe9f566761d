package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// dividedWorld is splitWorld with two OSDs on each disk for data.
func dividedWorld() *fakeWorld {
	f := splitWorld()
	f.groups[0].Spec.OSDsPerDevice = 2
	for i := range f.hosts {
		for d := range f.hosts[i].Status.Devices {
			if x := &f.hosts[i].Status.Devices[d]; x.Model == "hdd" {
				x.Size, x.Serial = resource.MustParse("100Gi"), "S"+x.ID
			}
		}
	}
	return f
}

// on are the numbers of the OSDs on a disk, in order, as long as each has a partition and a database of its own.
func (f *fakeWorld) on(t *testing.T, disk string) string {
	t.Helper()
	var all []string
	ids := map[string]bool{}
	for i := range 20 {
		d := f.daemons[fmt.Sprint("c-osd-", i)]
		if d == nil || d.Spec.Devices[0].Of != disk {
			continue
		}
		x := d.Spec.Devices
		if len(x) != 2 || x[0].Name != DeviceBlock || x[0].Bytes != 51199<<20 || x[1].Name != DeviceDB || ids[x[0].ID] || ids[x[1].ID] {
			t.Errorf("%s: %+v", d.Name, x)
		}
		ids[x[0].ID], ids[x[1].ID] = true, true
		all = append(all, d.Spec.ID)
	}
	return strings.Join(all, " ")
}

func TestGroup_divides(t *testing.T) {
	f := dividedWorld()
	if p := f.plan(); !contains(decisions(p, api.VerdictDo), "drivegroup/g: disk wwn-10 (hdd Swwn-10 107.4 GB) of host h1 is divided for 2 OSDs, 53.7 GB each") {
		t.Errorf("%v", decisions(p))
	}
	p := f.settle(t)
	if !p.Done || f.on(t, "wwn-10") == "" || len(f.ceph.OSDs()) != 12 {
		t.Errorf("%s\n%v", f.osdPlaces(), decisions(p))
	}
	if s := f.groups[0].Status; s.Taken != 6 || len(s.Devices) != 12 || s.Devices[0].Serial == "" || s.Message != "12 of 12 OSDs up" {
		t.Errorf("%+v", s)
	}
	f.writes = 0
	if p := f.round(t); f.writes > 0 || !p.Done || contains(decisions(p, api.VerdictRefuse), "") {
		t.Errorf("%d writes, done %v: %v", f.writes, p.Done, decisions(p))
	}
	f.node(1, "wwn-10")
	if p := f.round(t); !contains(decisions(p, api.VerdictRefuse), "device wwn-10 on host h1 is divided by DriveGroup g") {
		t.Errorf("a StorageNode that names the disk: %v", decisions(p))
	}
}

// With osdsPerDevice changed, disks keep what they have.
func TestGroup_dividesOthersOtherwise(t *testing.T) {
	f := dividedWorld()
	f.settle(t)
	was := f.osdPlaces()
	f.groups[0].Spec.OSDsPerDevice = 4
	p := f.settle(t)
	if f.osdPlaces() != was || !contains(decisions(p, api.VerdictSkip), "osdsPerDevice applies only to new disks") {
		t.Errorf("%s, and then %s: %v", was, f.osdPlaces(), decisions(p))
	}
}

// One of the OSDs of a disk leaves: the other one keeps its place, and the part is taken again by a word.
func TestGroup_onePartLeaves(t *testing.T) {
	f := dividedWorld()
	f.cluster.Spec.DeletionPolicy = api.DeletionWipe
	f.settle(t)
	both := strings.Fields(f.on(t, "wwn-10"))
	part := placeOf(f.daemons["c-osd-"+both[1]]).device
	f.groups[0].Spec.Exclude = []string{part}
	f.settle(t)
	if got := f.on(t, "wwn-10"); got != both[0] || f.there(part) || len(f.ceph.OSDs()) != 11 {
		t.Fatalf("OSDs %s are on the disk that had %v", got, both)
	}
	f.groups[0].Spec.Exclude = nil
	f.settle(t)
	if got := f.on(t, "wwn-10"); got != both[0] || f.groups[0].Status.Waiting != 1 {
		t.Fatalf("OSDs %s are on the disk, nobody having said a word: %+v", got, f.groups[0].Status.Candidates)
	}
	f.groups[0].Spec.Take = []string{part}
	f.settle(t)
	if got := f.on(t, "wwn-10"); got != strings.Join(both, " ") || placeOf(f.daemons["c-osd-"+both[1]]).device != part {
		t.Errorf("OSDs %s are on the disk that had %v", got, both)
	}
	f.groups[0].Spec.Exclude, f.groups[0].Spec.Take = []string{"Swwn-10"}, nil
	f.settle(t)
	if got := f.on(t, "wwn-10"); got != "" || f.device("wwn-10").Availability != api.DeviceAvailable {
		t.Errorf("OSDs %s are on the disk: %+v", got, f.device("wwn-10"))
	}
}

// A disk that is divided fails and is replaced: its OSDs are missed by its name, and those on the new one have their numbers.
func TestGroup_dividedDiskIsReplaced(t *testing.T) {
	f := dividedWorld()
	f.settle(t)
	both := f.on(t, "wwn-10")
	h := &f.hosts[0]
	h.Status.Devices = slices.DeleteFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == "wwn-10" || d.Parent == "wwn-10" })
	for _, id := range strings.Fields(both) {
		f.broken["c-osd-"+id] = true
	}
	f.agents()
	p := f.round(t)
	for _, id := range strings.Fields(both) {
		if !contains(decisions(p, api.VerdictWait), "osd."+id+": its block is on disk wwn-10, which is missing on host h1") ||
			!contains(decisions(p, api.VerdictRefuse), "disk wwn-10 Swwn-10 with "+placeOf(f.daemons["c-osd-"+id]).device+" is missing on host h1") {
			t.Errorf("osd.%s: %s", id, strings.Join(decisions(p), "\n"))
		}
	}
	h.Status.Devices = append(h.Status.Devices, api.Device{ID: "wwn-1x", Model: "hdd", Size: resource.MustParse("100Gi"), Availability: api.DeviceAvailable})
	f.groups[0].Spec.Exclude, f.groups[0].Spec.Take = []string{"Swwn-10"}, []string{"wwn-1x"}
	if p := f.settle(t); !p.Done || f.on(t, "wwn-1x") != both || len(f.ceph.OSDs()) != 12 {
		t.Errorf("osd %s were on the old one, and %s are on the new one: %v", both, f.on(t, "wwn-1x"), decisions(p))
	}
}

// A disk that is divided is in another host: its OSDs follow it when its partitions are named there.
func TestGroup_dividedDiskMoves(t *testing.T) {
	f := dividedWorld()
	f.groups[0].Spec.DBDevices = nil
	f.settle(t)
	numbers := map[string]string{}
	from, to := &f.hosts[0], &f.hosts[1]
	var names []string
	for _, d := range slices.Clone(from.Status.Devices) {
		if d.ID != "wwn-10" && d.Parent != "wwn-10" {
			continue
		}
		from.Status.Devices = slices.DeleteFunc(from.Status.Devices, func(x api.Device) bool { return x.ID == d.ID })
		to.Status.Devices = append(to.Status.Devices, d)
		if o := f.taken(d.ID); o != nil {
			numbers[d.ID], f.broken[o.Name] = o.Name, true
			names = append(names, d.ID)
		}
	}
	f.agents()
	if p := f.round(t); len(names) != 2 || !contains(decisions(p, api.VerdictWait), "its disk is in host h2 now, as "+names[0]) {
		t.Fatalf("%v: %v", names, decisions(p))
	}
	f.groups[0].Spec.Exclude = []string{"Swwn-10"}
	f.node(2, names...)
	f.settle(t)
	for id, name := range numbers {
		if o := f.taken(id); o == nil || o.Name != name || o.Spec.Host != "h2" {
			t.Errorf("%s was on %s, which now has %+v", name, id, o)
		}
	}
}

func TestGroup_dividesEncrypted(t *testing.T) {
	f := dividedWorld()
	f.groups[0].Spec.Encrypted = true
	f.canEncrypt(metav1.ConditionTrue)
	f.settle(t)
	f.on(t, "wwn-10")
	for i := range 12 {
		for _, x := range f.daemons[fmt.Sprint("c-osd-", i)].Spec.Devices {
			if x.KeySecret != fmt.Sprint("c-key-osd.", i) || x.Of == "" {
				t.Errorf("osd.%d: %+v", i, x)
			}
		}
	}
}
