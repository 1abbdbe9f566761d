package ceph

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// grouped is a world of three hosts with two disks each, all of which a group selects.
func grouped(change func(*api.DriveGroup)) *fakeWorld {
	w := newWorld(3, 2)
	for i := 1; i <= 3; i++ {
		w.host(i, 2)
	}
	g := &api.DriveGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "g", Generation: 1}}
	g.Spec.Cluster, g.Spec.NewDevices, g.Spec.Placement.Pattern = "c", api.NewDevicesReport, "h*"
	g.Spec.DataDevices = []api.DriveFilter{{All: true}}
	if change != nil {
		change(g)
	}
	w.groups = append(w.groups, g)
	return withFake(w)
}

func (f *fakeWorld) osdPlaces() string {
	var all []string
	for name, d := range f.daemons {
		if d.Spec.Type == TypeOSD {
			all = append(all, strings.TrimPrefix(name, "c-")+"@"+placeOf(d).device)
		}
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

func TestGroup_bringsUp(t *testing.T) {
	f := grouped(func(g *api.DriveGroup) { g.Spec.DeviceClass = "cold" })
	f.settle(t)
	if got := f.osdPlaces(); got != "osd-0@wwn-10 osd-1@wwn-11 osd-2@wwn-20 osd-3@wwn-21 osd-4@wwn-30 osd-5@wwn-31" {
		t.Error(got)
	}
	s := f.groups[0].Status
	if s.Taken != 6 || s.State != api.ResourceOnline || s.Message != "6 of 6 OSDs up" || s.ObservedGeneration != 1 {
		t.Errorf("%+v", s)
	}
	if class := f.daemons["c-osd-0"].Spec.Parameters[ParamDeviceClass]; class != "cold" {
		t.Errorf("device class %q", class)
	}
	f.writes = 0
	if p := f.round(t); f.writes > 0 || !p.Done {
		t.Errorf("%d writes, done %v: %v", f.writes, p.Done, p.Status.Reasons)
	}
}

// A group takes the disks of a host whose label is not its name, as that of a Kubernetes node may be.
func TestGroup_otherHostname(t *testing.T) {
	f := grouped(nil)
	f.hosts[0].Labels[api.LabelHostname] = "elsewhere"
	f.settle(t)
	if got := f.osdPlaces(); !strings.Contains(got, "@wwn-10") || !strings.Contains(got, "@wwn-11") {
		t.Error(got)
	}
}

// A disk that comes later is told of, and taken when it is named.
func TestGroup_laterDisk(t *testing.T) {
	f := grouped(nil)
	f.settle(t)
	f.hosts[0].Status.Devices = append(f.hosts[0].Status.Devices, api.Device{ID: "wwn-1x", Serial: "S1", Size: resource.MustParse("1T"), Availability: api.DeviceAvailable})
	p := f.round(t)
	if !p.Done || len(p.Daemons) > 0 || !contains(decisions(p, api.VerdictSkip), "drivegroup/g: disk wwn-1x (S1 1 TB) of host h1: it matches, but was added or emptied later") {
		t.Errorf("%v %v", daemonNames(p), decisions(p))
	}
	if s := f.groups[0].Status; s.Waiting != 1 || !strings.Contains(s.Message, "1 disk matching that came later") {
		t.Errorf("%+v", s)
	}
	f.groups[0].Spec.Take = []string{"S1"}
	f.settle(t)
	if f.daemons["c-osd-6"] == nil || f.groups[0].Status.Taken != 7 || f.groups[0].Status.Waiting != 0 {
		t.Errorf("%s %+v", f.osdPlaces(), f.groups[0].Status)
	}
}

// An OSD whose disk is excluded leaves; the group does not take the disk again.
func TestGroup_excludes(t *testing.T) {
	f := grouped(nil)
	f.settle(t)
	f.groups[0].Spec.Exclude = []string{"wwn-31"}
	f.settle(t)
	if f.daemons["c-osd-5"] != nil || f.groups[0].Status.Taken != 5 {
		t.Errorf("%s %+v", f.osdPlaces(), f.groups[0].Status)
	}
}

// A group that is deleted stays while it has OSDs that nobody else names.
func TestGroup_deleted(t *testing.T) {
	f := grouped(nil)
	f.settle(t)
	now := metav1.NewTime(f.now)
	f.groups[0].DeletionTimestamp = &now
	p := f.round(t)
	if len(f.groups) != 1 || len(p.Remove)+len(p.Commands)+len(p.Daemons) > 0 || !contains(decisions(p, api.VerdictSkip), "the group still has osd.0, osd.1") {
		t.Fatalf("%v", decisions(p))
	}
	for i := 1; i <= 3; i++ {
		f.node(i, f.hosts[i-1].Status.Devices[0].ID, f.hosts[i-1].Status.Devices[1].ID)
	}
	f.settle(t)
	if len(f.groups) != 0 || len(f.daemons) != 11 {
		t.Errorf("%d groups, %d daemons", len(f.groups), len(f.daemons))
	}
}

func TestGroup_refused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*api.DriveGroup)
		want   string
	}{
		{"no host", func(g *api.DriveGroup) { g.Spec.Placement.Pattern = "x*" }, "its placement selects no host"},
		{"no disk", func(g *api.DriveGroup) { g.Spec.DataDevices[0] = api.DriveFilter{Size: "1T:"} }, "closest: disk wwn-10"},
	} {
		f := grouped(tt.change)
		p := f.plan()
		if !p.Refused || !contains(decisions(p, api.VerdictRefuse), tt.want) {
			t.Errorf("%s: %v", tt.name, decisions(p))
		}
		for _, c := range p.Resources {
			if g := c.Resource.(*api.DriveGroup); g.Status.Selection != "" || len(g.Status.Devices) > 0 {
				t.Errorf("%s: %+v", tt.name, g.Status)
			}
		}
	}
	f := grouped(nil)
	other := f.groups[0].DeepCopy()
	other.Name = "h"
	f.groups = append(f.groups, other)
	if p := f.plan(); !p.Refused || !contains(decisions(p, api.VerdictRefuse), "drivegroup/g: disk wwn-10 (0 B) of host h1 is matched by DriveGroup h, too") {
		t.Errorf("%v", decisions(p))
	}
}

// A StorageNode and a group do not get into each other's way: who named a disk first has it.
func TestGroup_besideNodes(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	g := grouped(nil).groups[0]
	f.groups = append(f.groups, g)
	p := f.round(t)
	if !contains(decisions(p, api.VerdictSkip), "StorageNode default/n1 uses it") {
		t.Errorf("%v", decisions(p))
	}
	f.settle(t)
	if got := f.osdPlaces(); got != "osd-0@wwn-10 osd-1@wwn-20 osd-2@wwn-30 osd-3@wwn-11 osd-4@wwn-21 osd-5@wwn-31" {
		t.Error(got)
	}
}

// What a plan shows of a group that is not there yet.
func TestGroup_projection(t *testing.T) {
	f := grouped(nil)
	p := engine.Project(f.driver, f.view(), f.now)
	if len(p.Steps) == 0 || !p.Last.Done {
		t.Errorf("%d steps, %v", len(p.Steps), decisions(p.Last))
	}
}

// A group that takes no disk, because StorageNodes have all that it selects, is as it is declared.
// One that waits for a host is not.
func TestGroup_withoutDisk(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	g := grouped(nil).groups[0]
	g.Spec.Exclude = []string{"wwn-11", "wwn-21", "wwn-31"}
	f.groups = append(f.groups, g)
	p := f.settle(t)
	if s := f.groups[0].Status; s.State != api.ResourceOnline || s.Message != "it has no disk" || !p.Done {
		t.Errorf("%+v, done %v: %v", s, p.Done, decisions(p))
	}
	f.groups[0].Spec.Placement = api.HostSelection{Hosts: []string{"h1", "h9"}}
	f.round(t)
	if s := f.groups[0].Status; s.State != api.ResourcePending || s.Message != "host h9 does not exist: check that it has joined" {
		t.Errorf("%+v", s)
	}
}
