package drives

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func divided(n int32, change func(*api.DriveGroup)) *api.DriveGroup {
	return group("g", func(g *api.DriveGroup) {
		g.Spec.OSDsPerDevice, g.Spec.DataDevices = n, []api.DriveFilter{{Model: "hdd"}}
		if change != nil {
			change(g)
		}
	})
}

func TestDivide(t *testing.T) {
	for _, tt := range []struct {
		name    string
		count   int32
		change  func(*api.DriveGroup)
		devices []api.Device
		want    string
		problem string
	}{
		{"one is the whole disk", 1, nil, []api.Device{disk("a", "4T")}, "h1/a", ""},
		{"two", 2, nil, []api.Device{disk("a", "100Gi")}, "h1/a.0 data:a+51199, h1/a.1 data:a+51199", ""},
		{"three, not even", 3, nil, []api.Device{disk("a", "100Gi")}, "h1/a.0 data:a+34132, h1/a.1 data:a+34132, h1/a.2 data:a+34132", ""},
		{
			"the limit counts disks", 2, func(g *api.DriveGroup) { g.Spec.DataDevices[0].Limit = 1 },
			[]api.Device{disk("a", "100Gi"), disk("b", "100Gi")},
			"h1/a.0 data:a+51199, h1/a.1 data:a+51199", "",
		},
		{"but for one part", 2, func(g *api.DriveGroup) { g.Spec.Exclude = []string{"a.0"} }, []api.Device{disk("a", "100Gi")}, "h1/a.1 data:a+51199", ""},
		{
			"each its own database", 2, func(g *api.DriveGroup) { g.Spec.DBDevices = []api.DriveFilter{{Model: "ssd"}} },
			[]api.Device{disk("a", "100Gi"), disk("s", "10Gi", flash)},
			"h1/a.0 data:a+51199 db:s+5119, h1/a.1 data:a+51199 db:s+5119", "",
		},
		{
			"too small", 16, nil,
			[]api.Device{disk("a", "60Gi")},
			"",
			"disk a (ACME HDD S-a 64.4 GB) of host h1 is too small for 16 OSDs: each would have 4 GB, but needs 5 GB; lower osdsPerDevice",
		},
		{
			"a partition", 2, func(g *api.DriveGroup) { g.Spec.DataDevices = []api.DriveFilter{{Paths: []string{"/dev/p"}}} },
			[]api.Device{disk("a", "100Gi", mounted), disk("p", "50Gi", func(d *api.Device) { d.Kind, d.Parent = api.DevicePartition, "a" })},
			"",
			"disk p (ACME HDD S-p 53.7 GB) of host h1 is a partition, but osdsPerDevice divides only disks",
		},
		{
			"databases too small", 2, func(g *api.DriveGroup) { g.Spec.DBDevices = []api.DriveFilter{{Model: "ssd"}} },
			[]api.Device{disk("a", "100Gi"), disk("s", "1Gi", flash)},
			"",
			"is too small for the databases of 2 OSDs: each would have 535.8 MB",
		},
	} {
		o := Decide([]*api.DriveGroup{divided(tt.count, tt.change)}, []api.Host{testHost("h1", tt.devices...)}, env(nobody))[0]
		if got := slots(o.Devices); got != tt.want || (tt.problem == "") != (len(o.Problems) == 0) || !strings.Contains(strings.Join(o.Problems, "\n"), tt.problem) {
			t.Errorf("%s: %s\n%v\n%v", tt.name, got, o.Problems, o.Others)
		}
		if says := "disk a (ACME HDD S-a 107.4 GB) of host h1 is divided for"; strings.Contains(strings.Join(o.Serves, "\n"), says) != strings.Contains(tt.want, "data") {
			t.Errorf("%s: it says %q", tt.name, o.Serves)
		}
	}
}

// cut is a host whose disk a is divided for two OSDs, and has an empty disk b.
func cut(parts ...string) api.Host {
	h := testHost("h1", disk("a", "100Gi", mounted), disk("b", "100Gi"))
	for _, id := range parts {
		h.Status.Devices = append(h.Status.Devices, part(id, "a", "50Gi"))
	}
	return h
}

// grown is cut with a disk a that is larger by one part's size.
func grown(parts ...string) api.Host {
	h := cut(parts...)
	h.Status.Devices[0].Size = resource.MustParse("150Gi")
	return h
}

// What becomes of a disk that is divided when the group changes, or one of its OSDs leaves.
func TestDivide_later(t *testing.T) {
	const both = "h1/a.0 data:a+51199, h1/a.1 data:a+51199"
	first := settled(Decide([]*api.DriveGroup{divided(2, nil)}, []api.Host{testHost("h1", disk("a", "100Gi"))}, env(nobody))[0])
	for _, tt := range []struct {
		name      string
		change    func(*api.DriveGroup)
		host      api.Host
		want      string
		candidate string
		says      string
	}{
		{"nothing", func(*api.DriveGroup) {}, cut("a.0", "a.1"), both, "h1/b", ""},
		{"the disk grows by one part", func(*api.DriveGroup) {}, grown("a.0", "a.1"), both, "h1/b", ""},
		{
			"and all that matches is taken", func(g *api.DriveGroup) { g.Spec.NewDevices = api.NewDevicesTake }, grown("a.0", "a.1"),
			both + ", h1/b.0 data:b+51199, h1/b.1 data:b+51199", "", "",
		},
		{"before the parts are there", func(*api.DriveGroup) {}, cut(), both, "h1/b", ""},
		{
			"another number", func(g *api.DriveGroup) { g.Spec.OSDsPerDevice, g.Spec.Take = 4, []string{"b"} }, cut("a.0", "a.1"),
			both + ", h1/b.0 data:b+25599, h1/b.1 data:b+25599, h1/b.2 data:b+25599, h1/b.3 data:b+25599", "",
			"osdsPerDevice applies only to new disks: disk a (ACME HDD S-a 107.4 GB) of host h1",
		},
		{"none any more", func(g *api.DriveGroup) { g.Spec.OSDsPerDevice, g.Spec.Take = 0, []string{"b"} }, cut("a.0", "a.1"), both + ", h1/b", "", "applies only to new disks: disk a"},
		{"one OSD leaves", func(g *api.DriveGroup) { g.Spec.Exclude = []string{"a.1"} }, cut("a.0", "a.1"), "h1/a.0 data:a+51199", "h1/b", ""},
		{"the disk leaves", func(g *api.DriveGroup) { g.Spec.Exclude = []string{"S-a"} }, cut("a.0", "a.1"), "", "h1/b", "spec.exclude lists it"},
		{"the disk is gone", func(*api.DriveGroup) {}, testHost("h1"), both, "", ""},
	} {
		g := first.DeepCopy()
		tt.change(g)
		o := Decide([]*api.DriveGroup{g}, []api.Host{tt.host}, env(nobody))[0]
		if got := slots(o.Devices); got != tt.want || names(o.Candidates) != tt.candidate || len(o.Problems) > 0 || !strings.Contains(strings.Join(o.Others, "\n"), tt.says) {
			t.Errorf("%s: %s, candidates %s\n%v\n%v", tt.name, got, names(o.Candidates), o.Problems, o.Others)
		}
	}
}

// The part of an OSD that left is taken again by a word, when nothing is on it and nobody has it any more.
func TestDivide_gap(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "100Gi"))}
	g := settled(Decide([]*api.DriveGroup{divided(2, nil)}, hosts, env(nobody))[0])
	g.Spec.Exclude = []string{"a.1"}
	g = settled(Decide([]*api.DriveGroup{g}, []api.Host{cut("a.0")}, env(nobody))[0])
	g.Spec.Exclude = nil
	leaving := func(at Place) string { return map[string]string{"a.1": "daemon c-osd-1"}[at.ID] }
	for _, tt := range []struct {
		name            string
		take            []string
		host            api.Host
		claimed         func(Place) string
		want, candidate string
	}{
		{"no word", nil, cut("a.0"), nobody, "h1/a.0", "h1/a.1 h1/b"},
		{"by its name", []string{"a.1"}, cut("a.0"), nobody, "h1/a.0 h1/a.1", "h1/b"},
		{"by that of the disk", []string{"S-a"}, cut("a.0"), nobody, "h1/a.0 h1/a.1", "h1/b"},
		{"the disk grew", nil, grown("a.0"), nobody, "h1/a.0", "h1/a.1 h1/b"},
		{"the disk grew, by its name", []string{"S-a"}, grown("a.0"), nobody, "h1/a.0 h1/a.1", "h1/b"},
		{"its data is kept", []string{"a.1"}, cut("a.0", "a.1"), nobody, "h1/a.0", "h1/b"},
		{"its OSD is leaving", []string{"a.1"}, cut("a.0"), leaving, "h1/a.0", "h1/b"},
	} {
		x := g.DeepCopy()
		x.Spec.Take = tt.take
		if o := Decide([]*api.DriveGroup{x}, []api.Host{tt.host}, env(tt.claimed))[0]; names(o.Devices) != tt.want || names(o.Candidates) != tt.candidate {
			t.Errorf("%s: %s, candidates %s\n%v", tt.name, names(o.Devices), names(o.Candidates), o.Others)
		}
	}
}

// The limit counts disks, also when their parts are there.
func TestDivide_limit(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "100Gi"))}
	limited := divided(2, func(g *api.DriveGroup) {
		g.Spec.DataDevices, g.Spec.NewDevices = []api.DriveFilter{{All: true, Limit: 2}}, api.NewDevicesTake
	})
	g := settled(Decide([]*api.DriveGroup{limited}, hosts, env(nobody))[0])
	if o := Decide([]*api.DriveGroup{g}, []api.Host{cut("a.0", "a.1")}, env(nobody))[0]; names(o.Devices) != "h1/a.0 h1/a.1 h1/b.0 h1/b.1" {
		t.Errorf("%s: %v", names(o.Devices), o.Others)
	}
}

// A disk that one group divides is nobody else's.
func TestDivide_twoGroups(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "100Gi"))}
	g := settled(Decide([]*api.DriveGroup{divided(2, nil)}, hosts, env(nobody))[0])
	all := Decide([]*api.DriveGroup{g, group("other", nil)}, hosts, env(nobody))
	if len(all[0].Devices) != 2 || len(all[1].Devices) > 0 || !strings.Contains(strings.Join(all[1].Others, "\n"), "DriveGroup g uses it") {
		t.Errorf("%v %v %v", all[0].Devices, all[1].Devices, all[1].Others)
	}
}

// Whatever the disks are, and whatever is asked for: the parts of each fit on it and are as many as was asked for, none is too small, no name is given
// twice, and to decide again changes nothing, also with another number.
func TestDivide_properties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := testHost("h1")
		for d := range rapid.IntRange(1, 4).Draw(r, "disks") {
			x := disk(fmt.Sprint("d", d), "1T")
			x.Size.Set(rapid.Int64Range(1, 400e9).Draw(r, "size"))
			h.Status.Devices = append(h.Status.Devices, x)
		}
		count := int32(rapid.IntRange(2, 16).Draw(r, "count"))
		g := divided(count, func(g *api.DriveGroup) {
			g.Spec.DataDevices[0].Limit = int32(rapid.IntRange(0, 3).Draw(r, "limit"))
			g.Spec.Exclude = rapid.SliceOfN(rapid.SampledFrom([]string{"d0", "S-d1", "d0.0", "d1.1"}), 0, 2).Draw(r, "exclude")
		})
		o := Decide([]*api.DriveGroup{g}, []api.Host{h}, env(nobody))[0]
		given, number := map[string]int64{}, map[string]int{}
		for _, d := range o.Devices {
			if d.Data.Size.Value() < leastData || d.Data.Size.Value()%grain != 0 || slices.Contains(g.Spec.Exclude, d.ID) || slices.Contains(g.Spec.Exclude, d.Data.ID) {
				r.Fatalf("%+v", d)
			}
			given[d.Data.ID] += d.Data.Size.Value()
			number[d.Data.ID]++
			if number[d.ID]++; number[d.ID] > 1 {
				r.Fatalf("%s is given twice", d.ID)
			}
		}
		for id, n := range given {
			excluded := 0
			for _, e := range slices.Compact(slices.Sorted(slices.Values(g.Spec.Exclude))) {
				if strings.HasPrefix(e, id+".") {
					excluded++
				}
			}
			if size := inventoried(&h, id).Size.Value(); n > Usable(size) || number[id] != int(count)-excluded {
				r.Fatalf("disk %s of %d gives %d to %d", id, size, n, number[id])
			}
		}
		again := settled(o)
		again.Spec.OSDsPerDevice = int32(rapid.IntRange(0, 16).Draw(r, "other count"))
		for i := range h.Status.Devices {
			if given[h.Status.Devices[i].ID] > 0 {
				mounted(&h.Status.Devices[i])
			}
		}
		if then := Decide([]*api.DriveGroup{again}, []api.Host{h}, env(nobody))[0]; slots(then.Devices) != slots(o.Devices) {
			r.Fatalf("%s, and then %s", slots(o.Devices), slots(then.Devices))
		}
	})
}
