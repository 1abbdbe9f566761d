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

// split is a group of disks that spin with their databases on those that do not.
func split(change func(*api.DriveGroup)) *api.DriveGroup {
	return group("g", func(g *api.DriveGroup) {
		yes, no := true, false
		g.Spec.DataDevices, g.Spec.DBDevices = []api.DriveFilter{{Rotational: &yes}}, []api.DriveFilter{{Rotational: &no}}
		if change != nil {
			change(g)
		}
	})
}

// slots are where the databases and logs of disks are: "h1/a=db:s+100G".
func slots(devices []api.GroupDevice) string {
	var all []string
	for i := range devices {
		text := devices[i].Host + "/" + devices[i].ID
		for _, part := range Parts {
			if s := Slot(&devices[i], part); s != nil {
				text += fmt.Sprintf(" %s:%s+%d", part, s.ID, s.Size.Value()>>20)
			}
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func size(text string) *resource.Quantity {
	q := resource.MustParse(text)
	return &q
}

func part(id, of, size string) api.Device {
	return disk(id, size, mounted, func(d *api.Device) { d.Kind, d.Parent = api.DevicePartition, of })
}

func TestSlots(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(*api.DriveGroup)
		devices []api.Device
		want    string
		problem string
	}{
		{"evenly", nil, []api.Device{disk("a", "4T"), disk("b", "4T"), disk("s", "100Gi", flash)}, "h1/a db:s+51199, h1/b db:s+51199", ""},
		{
			"on two", nil,
			[]api.Device{disk("a", "4T"), disk("b", "4T"), disk("c", "4T"), disk("s", "100Gi", flash), disk("t", "100Gi", flash)},
			"h1/a db:s+51199, h1/b db:t+51199, h1/c db:s+51199", "",
		},
		{"a size", func(g *api.DriveGroup) { g.Spec.DBSize = size("10Gi") }, []api.Device{disk("a", "4T"), disk("s", "100Gi", flash)}, "h1/a db:s+10240", ""},
		{"slots", func(g *api.DriveGroup) { g.Spec.DBSlots = 4 }, []api.Device{disk("a", "4T"), disk("s", "100Gi", flash)}, "h1/a db:s+25599", ""},
		{"logs, too", func(g *api.DriveGroup) {
			g.Spec.DBDevices = []api.DriveFilter{{Paths: []string{"s"}}}
			g.Spec.WALDevices, g.Spec.WALSize = []api.DriveFilter{{Paths: []string{"t"}}}, size("1Gi")
		}, []api.Device{disk("a", "4T"), disk("s", "100Gi", flash), disk("t", "100Gi", flash)}, "h1/a db:s+102398 wal:t+1024", ""},
		{"none", nil, []api.Device{disk("a", "4T")}, "", "no disk of host h1 is used, because it has none for the databases of its OSDs: dbDevices selects no empty disk"},
		{
			"none that is empty", nil,
			[]api.Device{disk("a", "4T"), disk("s", "1T", flash, mounted)},
			"",
			"dbDevices selects no disk; closest: disk s (FAST SSD S-s 1 TB) of host h1: it is mounted at /",
		},
		{
			"too small", nil,
			[]api.Device{disk("a", "4T"), disk("b", "4T"), disk("s", "1Gi", flash)},
			"",
			"disk s (FAST SSD S-s 1.1 GB) of host h1 is too small for the databases of 2 OSDs: each would have 535.8 MB, but needs 1.1 GB",
		},
		{
			"too small for the size", func(g *api.DriveGroup) { g.Spec.DBSize = size("60Gi") },
			[]api.Device{disk("a", "4T"), disk("b", "4T"), disk("s", "100Gi", flash)},
			"",
			"no disk for 2 new OSDs of host h1 is used, because there is no space for the databases (disk s serves 0 OSDs and has 107.4 GB left)",
		},
		{"too few slots", func(g *api.DriveGroup) { g.Spec.DBSlots = 1 }, []api.Device{disk("a", "4T"), disk("b", "4T"), disk("s", "100Gi", flash)}, "", "make dbSize smaller or dbSlots larger"},
		{
			"one disk for both", func(g *api.DriveGroup) { g.Spec.DataDevices[0] = api.DriveFilter{All: true} },
			[]api.Device{disk("a", "4T"), disk("s", "100Gi", flash)},
			"",
			"disk s (FAST SSD S-s 107.4 GB) of host h1 is matched by dataDevices and by dbDevices, so neither uses it",
		},
		{"excluded", func(g *api.DriveGroup) { g.Spec.Exclude = []string{"S-s"} }, []api.Device{disk("a", "4T"), disk("s", "1T", flash), disk("t", "100Gi", flash)}, "h1/a db:t+102398", ""},
	} {
		o := Decide([]*api.DriveGroup{split(tt.change)}, []api.Host{testHost("h1", tt.devices...)}, env(nobody))[0]
		if got := slots(o.Devices); got != tt.want || (tt.problem == "") != (len(o.Problems) == 0) || !strings.Contains(strings.Join(o.Problems, "\n"), tt.problem) {
			t.Errorf("%s: %s\n%v\n%v", tt.name, got, o.Problems, o.Others)
		}
		if tt.problem == "" && len(o.Serves) == 0 {
			t.Errorf("%s: it does not say what serves", tt.name)
		}
	}
}

// The daemons that have parts of a disk claim it: of a disk that serves the group itself nothing is said, whatever else selects it now.
func TestSlots_ownDaemons(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "4T"), disk("s", "100Gi", flash))}
	g := settled(Decide([]*api.DriveGroup{split(nil)}, hosts, env(nobody))[0])
	g.Spec.DataDevices = []api.DriveFilter{{All: true}}
	o := Decide([]*api.DriveGroup{g}, hosts, env(func(at Place) string { return "daemon osd-0" }))[0]
	if slots(o.Devices) != "h1/a db:s+102398" || len(o.Others)+len(o.Problems) > 0 {
		t.Errorf("%s: %v %v", slots(o.Devices), o.Others, o.Problems)
	}
}

// A host that lacks a disk for databases keeps nobody else back, and is looked at again when it has one.
func TestSlots_later(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "4T"), disk("s", "100Gi", flash)), testHost("h2", disk("b", "4T"))}
	o := Decide([]*api.DriveGroup{split(nil)}, hosts, env(nobody))[0]
	if names(o.Devices) != "h1/a" || !slices.Equal(o.Unseen, []string{"h2"}) || len(o.Problems) != 1 {
		t.Fatalf("%s %v %v", names(o.Devices), o.Unseen, o.Problems)
	}
	hosts[1].Status.Devices = append(hosts[1].Status.Devices, disk("t", "10Gi", flash))
	o = Decide([]*api.DriveGroup{settled(o)}, hosts, env(nobody))[0]
	if slots(o.Devices) != "h1/a db:s+102398, h2/b db:t+10238" || len(o.Problems)+len(o.Unseen) > 0 {
		t.Errorf("%s %v %v", slots(o.Devices), o.Unseen, o.Problems)
	}
}

// A disk that is taken later has its database where there is room for one of the size that the others have, or where that of one is that leaves.
func TestSlots_replaced(t *testing.T) {
	used := disk("s", "100Gi", flash, mounted)
	for _, tt := range []struct {
		name    string
		change  func(*api.DriveGroup)
		parts   []api.Device
		want    string
		problem string
	}{
		{
			"the slot of the old one", func(g *api.DriveGroup) { g.Spec.Exclude, g.Spec.Take = []string{"a"}, []string{"c"} },
			[]api.Device{part("leaving", "s", "40Gi"), part("db of b", "s", "40Gi")},
			"h1/b db:s+40960, h1/c db:s+40960", "",
		},
		{
			"which is kept", func(g *api.DriveGroup) { g.Spec.Exclude, g.Spec.Take = []string{"a"}, []string{"c"} },
			[]api.Device{part("kept", "s", "40Gi"), part("db of b", "s", "40Gi")},
			"h1/b db:s+40960", "free the space of removed OSDs there",
		},
		{
			"no room", func(g *api.DriveGroup) { g.Spec.Take = []string{"c"} },
			[]api.Device{part("db of a", "s", "40Gi"), part("db of b", "s", "40Gi")},
			"h1/a db:s+40960, h1/b db:s+40960", "disk s serves 2 OSDs and has 21.5 GB left",
		},
		{
			"room", func(g *api.DriveGroup) { g.Spec.Take, g.Spec.DBSize = []string{"c"}, size("19Gi") },
			[]api.Device{part("db of a", "s", "40Gi"), part("db of b", "s", "40Gi")},
			"h1/a db:s+40960, h1/b db:s+40960, h1/c db:s+19456", "",
		},
		{
			"the disk is excluded", func(g *api.DriveGroup) { g.Spec.Exclude = []string{"S-s"} },
			[]api.Device{part("db of a", "s", "40Gi"), part("db of b", "s", "40Gi")},
			"", "",
		},
	} {
		g := split(func(g *api.DriveGroup) {
			for _, id := range []string{"a", "b"} {
				g.Status.Devices = append(g.Status.Devices, api.GroupDevice{Host: "h1", ID: id, Serial: "S-" + id, DB: &api.DeviceSlot{ID: "s", Serial: "S-s", Size: *size("40Gi")}})
			}
		})
		g.Status.Selection = selection(&g.Spec)
		tt.change(g)
		h := testHost("h1", append([]api.Device{disk("a", "4T", mounted), disk("b", "4T", mounted), disk("c", "4T"), used}, tt.parts...)...)
		o := Decide([]*api.DriveGroup{g}, []api.Host{h}, env(nobody))[0]
		if got := slots(o.Devices); got != tt.want || !strings.Contains(strings.Join(o.Problems, "\n"), tt.problem) || (tt.problem == "") != (len(o.Problems) == 0) {
			t.Errorf("%s: %s\n%v", tt.name, got, o.Problems)
		}
	}
}

func TestSlots_twoGroups(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "4T"), disk("s", "100Gi", flash))}
	other := group("other", func(g *api.DriveGroup) { g.Spec.DataDevices[0] = api.DriveFilter{Model: "ssd"} })
	all := Decide([]*api.DriveGroup{split(nil), other}, hosts, env(nobody))
	if len(all[0].Devices)+len(all[1].Devices) > 0 || !strings.Contains(all[0].Problems[0], "disk s (FAST SSD S-s 107.4 GB) of host h1 is matched by DriveGroup other, too") {
		t.Errorf("%v %v", all[0].Problems, all[1].Problems)
	}
	first := settled(Decide([]*api.DriveGroup{split(nil)}, hosts, env(nobody))[0])
	all = Decide([]*api.DriveGroup{first, other}, hosts, env(nobody))
	if len(all[0].Problems) > 0 || len(all[1].Devices) > 0 || !strings.Contains(strings.Join(all[1].Others, "\n"), "DriveGroup g uses it") {
		t.Errorf("%v %v", all[0].Problems, all[1].Others)
	}
}

// Whatever disks there are, no disk is given away for more than it holds, none for two purposes, each OSD has all its parts or is not taken, and to
// decide again changes nothing.
func TestSlots_properties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		h := testHost("h1")
		for d := range rapid.IntRange(0, 5).Draw(r, "disks") {
			h.Status.Devices = append(h.Status.Devices, disk(fmt.Sprint("d", d), "1T"))
		}
		for d := range rapid.IntRange(0, 4).Draw(r, "flash") {
			x := disk(fmt.Sprint("s", d), rapid.SampledFrom([]string{"1Gi", "10Gi", "33Gi"}).Draw(r, "size"), flash)
			if rapid.Bool().Draw(r, "mounted") {
				mounted(&x)
			}
			h.Status.Devices = append(h.Status.Devices, x)
		}
		g := split(func(g *api.DriveGroup) {
			g.Spec.DBSlots = int32(rapid.IntRange(0, 3).Draw(r, "slots"))
			g.Spec.DBSize = rapid.SampledFrom([]*resource.Quantity{nil, size("1Gi"), size("7Gi"), size("1500M")}).Draw(r, "dbSize")
			g.Spec.DBDevices[0].Limit = int32(rapid.IntRange(0, 2).Draw(r, "limit"))
			if rapid.Bool().Draw(r, "wal") {
				g.Spec.DBDevices[0].Size, g.Spec.WALDevices = "10Gi:", []api.DriveFilter{{Size: rapid.SampledFrom([]string{":2Gi", ":20Gi"}).Draw(r, "wal size"), Model: "ssd"}}
			}
		})
		o := Decide([]*api.DriveGroup{g}, []api.Host{h}, env(nobody))[0]
		given, purpose := map[string]int64{}, map[string]Part{}
		for i := range o.Devices {
			for _, part := range []Part{DB, WAL} {
				s := Slot(&o.Devices[i], part)
				if wanted := part == DB || len(g.Spec.WALDevices) > 0; wanted != (s != nil) {
					r.Fatalf("the %s of %s: %v", part, o.Devices[i].ID, s)
				}
				if s == nil {
					continue
				}
				if purpose[s.ID] != "" && purpose[s.ID] != part {
					r.Fatalf("disk %s is for %s and %s", s.ID, purpose[s.ID], part)
				}
				purpose[s.ID] = part
				given[s.ID] += s.Size.Value()
			}
		}
		for id, n := range given {
			d := inventoried(&h, id)
			if d.Availability != api.DeviceAvailable || n > Usable(d.Size.Value()) {
				r.Fatalf("disk %s of %d gives %d", id, d.Size.Value(), n)
			}
		}
		if again := Decide([]*api.DriveGroup{settled(o)}, []api.Host{h}, env(nobody))[0]; slots(again.Devices) != slots(o.Devices) {
			r.Fatalf("%s, and then %s", slots(o.Devices), slots(again.Devices))
		}
	})
}
