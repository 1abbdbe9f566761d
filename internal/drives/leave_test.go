package drives

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A group that holds takes nothing and tells of nothing, and what it did not look at it looks at afterwards.
func TestHold(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "1T"), disk("b", "1T", mounted)), {}}
	hosts[1].Name = "h2" // its disks are not known
	g := group("g", func(g *api.DriveGroup) { g.Spec.NewDevices, g.Spec.Take = api.NewDevicesHold, []string{"a"} })
	says := func(o *Outcome) int { return len(o.Candidates) + len(o.Problems) + len(o.Waits) + len(o.Others) }
	o := Decide([]*api.DriveGroup{g}, hosts, env(nobody))[0]
	if len(o.Devices) > 0 || says(o) > 0 {
		t.Errorf("new: %+v", o)
	}
	g = settled(o)
	other := group("other", nil)
	if o = Decide([]*api.DriveGroup{g, other}, hosts[:1], env(nobody))[1]; names(o.Devices) != "h1/a" {
		t.Errorf("a group that holds stands in the way of another one: %s %v", names(o.Devices), o.Problems)
	}
	g.Spec.NewDevices, g.Spec.Take = api.NewDevicesReport, nil
	if o = Decide([]*api.DriveGroup{g}, hosts, env(nobody))[0]; names(o.Devices) != "h1/a" {
		t.Errorf("it does not hold any more: %s %v", names(o.Devices), o.Others)
	}
	g = settled(o)
	g.Spec.NewDevices, g.Spec.DataDevices[0] = api.NewDevicesHold, api.DriveFilter{Size: "2T:"}
	hosts[0].Status.Devices[0] = disk("a", "1T", mounted)
	hosts[0].Status.Devices = append(hosts[0].Status.Devices, disk("c", "3T"))
	hosts[1] = testHost("h2", disk("d", "3T"))
	if o = Decide([]*api.DriveGroup{g}, hosts, env(nobody))[0]; names(o.Devices) != "h1/a" || says(o) > 0 {
		t.Errorf("its selection changed: %s %+v", names(o.Devices), o)
	}
	g = settled(o)
	g.Spec.NewDevices = api.NewDevicesReport
	if o = Decide([]*api.DriveGroup{g}, hosts, env(nobody))[0]; names(o.Devices) != "h1/a h1/c h2/d" {
		t.Errorf("the new selection, carried out: %s", names(o.Devices))
	}
	g.Spec.NewDevices, g.Spec.Exclude = api.NewDevicesHold, []string{"a"}
	if o = Decide([]*api.DriveGroup{g}, hosts, env(nobody))[0]; len(o.Devices) > 0 {
		t.Errorf("exclude has no effect: %s", names(o.Devices))
	}
}

// What spec.replace names leaves like what spec.exclude names, and both say which entries mean nothing.
func TestReplaces(t *testing.T) {
	h := testHost("h1", disk("a", "1T"), disk("s", "1T", flash))
	g := group("g", func(g *api.DriveGroup) {
		g.Spec.Replace, g.Spec.Exclude = []string{"S-a", "S-gone", "0x5000c", "nothing"}, []string{"partuuid-1", "neither"}
		g.Status.Devices = []api.GroupDevice{
			{Host: "h1", ID: "a", Serial: "S-a"},
			{Host: "h1", ID: "b", Serial: "S-gone"},
			{Host: "h1", ID: "wwn-0x5000c"},
			{Host: "h1", ID: "c", DB: &api.DeviceSlot{ID: "s", Serial: "S-s", Size: resource.MustParse("1G")}},
		}
	})
	for id, want := range map[string]bool{"a": true, "b": true, "wwn-0x5000c": true, "c": false, "s": false} {
		if got := Replaces(g, &h, id); got != want {
			t.Errorf("%s: %v", id, got)
		}
	}
	o := Decide([]*api.DriveGroup{g}, []api.Host{h}, env(nobody))[0]
	if names(o.Devices) != "h1/c" || len(o.Unmatched) != 2 {
		t.Errorf("%s, %v", names(o.Devices), o.Unmatched)
	}
	if !slices.ContainsFunc(o.Others, func(text string) bool { return strings.Contains(text, "spec.replace lists it") }) {
		t.Errorf("%v", o.Others)
	}
	g.Spec.Replace = []string{"S-s"}
	o = Decide([]*api.DriveGroup{g}, []api.Host{h}, env(nobody))[0]
	if strings.Contains(names(o.Devices), "h1/c") || !Replaces(g, &h, "c") {
		t.Errorf("its database is on a disk that is replaced: %s", names(o.Devices))
	}
}

// The plan says where Holdfast's own comparison would come to something else.
func TestMatch_note(t *testing.T) {
	h := testHost("h1", disk("a", "4000787030016"), disk("b", "3500G"))
	for _, tt := range []struct{ size, a, b string }{
		{"4TB:", "- as Holdfast compares it would match", "-"},
		{"3TB:", "+", "+"},
		{":3TB", "-", "-"},
		{"3TB:3TB", "-", "-"},
		{":3999G", "+ it matches as Ceph compares, but not as Holdfast does", "+"},
	} {
		var got []string
		filters := []api.DriveFilter{{Size: tt.size, Match: api.DriveMatchCeph}}
		for _, v := range Match(filters, &h, nil, func(string) bool { return false }) {
			got = append(got, map[bool]string{true: "+ ", false: "- "}[v.Matches]+v.Note+v.Why)
		}
		for i, want := range []string{tt.a, tt.b} {
			if mark, text, _ := strings.Cut(want, " "); !strings.HasPrefix(got[i], mark) || !strings.Contains(got[i], text) ||
				text == "" && strings.Contains(got[i], "Holdfast") {
				t.Errorf("%s: %q, want %q", tt.size, got[i], want)
			}
		}
	}
}
