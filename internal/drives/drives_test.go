package drives

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func disk(id, size string, more ...func(*api.Device)) api.Device {
	d := api.Device{
		ID: id, Path: "/dev/" + id, Serial: "S-" + id, Model: "ACME HDD", Vendor: "ACME", Size: resource.MustParse(size), Kind: api.DeviceDisk,
		Media: api.MediaRotational, Availability: api.DeviceAvailable,
	}
	for _, change := range more {
		change(&d)
	}
	return d
}

func flash(d *api.Device) { d.Model, d.Media = "FAST SSD", api.MediaSolidState }

func mounted(d *api.Device) {
	d.Availability, d.Reasons = api.DeviceUnavailable, []string{"it is mounted at /"}
}

func testHost(name string, devices ...api.Device) api.Host {
	h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"rack": name[:1]}}}
	h.Status.BootID, h.Status.Devices = "boot", devices
	return h
}

func TestSize(t *testing.T) {
	const tera = int64(1e12)
	for _, tt := range []struct {
		text      string
		low, high int64
		err       string
	}{
		{"1T:2T", tera, 2 * tera, ""},
		{"1T:", tera, 1 << 62, ""},
		{":2Ti", 0, 2 << 40, ""},
		{"4T", 4*tera - 4*tera/100, 4*tera + 4*tera/100, ""},
		{"2T:1T", 0, 0, "has an end below its start"},
		{"many", 0, 0, "is invalid"},
	} {
		low, high, err := Size(tt.text)
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v", tt.text, err)
			}
			continue
		}
		if err != nil || low != tt.low || high != tt.high {
			t.Errorf("%s: %d to %d, %v", tt.text, low, high, err)
		}
	}
}

func TestMatch(t *testing.T) {
	yes, no := true, false
	h := testHost("h1", disk("a", "4T"), disk("b", "1T", flash), disk("c", "1T", mounted), disk("d", "1T"),
		disk("p", "100G", func(d *api.Device) { d.Kind, d.Parent = api.DevicePartition, "a" }))
	for _, tt := range []struct {
		name    string
		filters []api.DriveFilter
		held    string
		want    []string
	}{
		{"all", []api.DriveFilter{{All: true}}, "", []string{"a", "b", "-c: it is mounted at /", "d"}},
		{"that spin", []api.DriveFilter{{Rotational: &yes}}, "", []string{"a", "-b: it does not spin", "-c: it is mounted at /", "d"}},
		{"and", []api.DriveFilter{{Rotational: &no, Size: "2T:"}}, "", []string{"-a: it spins", "-b: its size is 1 TB, not 2T:", "b.c", "b.d"}},
		{"or", []api.DriveFilter{{Size: "4T"}, {Model: "ssd"}}, "", []string{"a", "b", "-c: its size is 1 TB, not 4T", "-d: its size is 1 TB, not 4T"}},
		{"limit", []api.DriveFilter{{All: true, Limit: 2}}, "", []string{"a", "b", "-c: it is mounted at /", "-d: the limit of 2 on a host is reached"}},
		{"limit with one that is held", []api.DriveFilter{{All: true, Limit: 2}}, "d", []string{"a", "-b: the limit of 2 on a host is reached", "-c: it is mounted at /"}},
		{"serial number", []api.DriveFilter{{Paths: []string{"S-d"}}}, "", []string{
			"-a: none of its paths is in the filter", "-b: none of its paths is in the filter",
			"-c: none of its paths is in the filter", "d",
		}},
		{"a partition by its path", []api.DriveFilter{{Paths: []string{"/dev/p"}}}, "a.b.c.d", []string{"p"}},
		{"vendor", []api.DriveFilter{{Vendor: "other"}}, "b.c.d", []string{`-a: its vendor is "ACME", not "other"`}},
	} {
		var got []string
		for _, v := range Match(tt.filters, &h, nil, func(id string) bool { return slices.Contains(strings.Split(tt.held, "."), id) }) {
			switch {
			case v.Matches:
				got = append(got, v.Device.ID)
			case v.Near:
				got = append(got, "-"+v.Device.ID+": "+v.Why)
			default:
				got = append(got, "b."+v.Device.ID)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}

func group(name string, change func(*api.DriveGroup)) *api.DriveGroup {
	g := &api.DriveGroup{ObjectMeta: metav1.ObjectMeta{Name: name}}
	g.Spec.Cluster, g.Spec.NewDevices = "c", api.NewDevicesReport
	g.Spec.Placement.Pattern, g.Spec.DataDevices = "h*", []api.DriveFilter{{All: true}}
	if change != nil {
		change(g)
	}
	return g
}

// settled carries an outcome out.
func settled(o *Outcome) *api.DriveGroup {
	g := o.Group.DeepCopy()
	g.Status.Selection, g.Status.Unseen, g.Status.Devices = o.Selection, o.Unseen, o.Devices
	return g
}

func nobody(Place) string { return "" }

func env(claimed func(Place) string) *Env {
	return &Env{
		Claimed:   claimed,
		Partition: func(at Place, part Part) string { return fmt.Sprintf("%s of %s", part, at.ID) },
		Share:     func(at Place, n int) string { return fmt.Sprintf("%s.%d", at.ID, n) },
		Leaving:   func(at Place) bool { return strings.HasSuffix(at.ID, "leaving") },
	}
}

func names(devices []api.GroupDevice) string {
	var all []string
	for _, d := range devices {
		all = append(all, d.Host+"/"+d.ID)
	}
	return strings.Join(all, " ")
}

// A disk that comes later is taken by a word alone.
func TestDecide_laterDisks(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "1T"))}
	o := Decide([]*api.DriveGroup{group("g", nil)}, hosts, env(nobody))[0]
	if names(o.Devices) != "h1/a" || len(o.Problems) > 0 {
		t.Fatalf("%v %v", names(o.Devices), o.Problems)
	}
	g := settled(o)
	hosts[0].Status.Devices = append(hosts[0].Status.Devices, disk("b", "1T"))
	hosts = append(hosts, testHost("h2", disk("c", "1T")))
	for _, tt := range []struct {
		name             string
		change           func(*api.DriveGroup)
		taken, candidate string
	}{
		{"nothing said", func(*api.DriveGroup) {}, "h1/a", "h1/b h2/c"},
		{"named", func(g *api.DriveGroup) { g.Spec.Take = []string{"S-b"} }, "h1/a h1/b", "h2/c"},
		{"policy", func(g *api.DriveGroup) { g.Spec.NewDevices = api.NewDevicesTake }, "h1/a h1/b h2/c", ""},
		{"another selection", func(g *api.DriveGroup) { g.Spec.DataDevices[0].Limit = 5 }, "h1/a h1/b h2/c", ""},
		{"excluded", func(g *api.DriveGroup) { g.Spec.Exclude = []string{"a", "S-c"} }, "", "h1/b"},
		{"replaced", func(g *api.DriveGroup) { g.Spec.Exclude, g.Spec.Take = []string{"S-a"}, []string{"b"} }, "h1/b", "h2/c"},
	} {
		x := g.DeepCopy()
		tt.change(x)
		if o := Decide([]*api.DriveGroup{x}, hosts, env(nobody))[0]; names(o.Devices) != tt.taken || names(o.Candidates) != tt.candidate || len(o.Problems) > 0 {
			t.Errorf("%s: %q, candidates %q, %v", tt.name, names(o.Devices), names(o.Candidates), o.Problems)
		}
	}
}

func TestDecide_unseenHosts(t *testing.T) {
	silent := testHost("h1")
	silent.Status.BootID = ""
	o := Decide([]*api.DriveGroup{group("g", func(g *api.DriveGroup) { g.Spec.Placement = api.HostSelection{Hosts: []string{"h1", "h2"}} })}, []api.Host{silent}, env(nobody))[0]
	if len(o.Problems) > 0 || !slices.Equal(o.Unseen, []string{"h1", "h2"}) || len(o.Waits) != 2 {
		t.Fatalf("%v %v %v", o.Problems, o.Unseen, o.Waits)
	}
	o = Decide([]*api.DriveGroup{settled(o)}, []api.Host{testHost("h1", disk("a", "1T")), testHost("h2", disk("b", "1T"))}, env(nobody))[0]
	if names(o.Devices) != "h1/a h2/b" {
		t.Errorf("%v", o.Devices)
	}
}

func TestDecide_refuses(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "1T"), disk("b", "2T", mounted))}
	for _, tt := range []struct {
		name   string
		groups []*api.DriveGroup
		want   string
	}{
		{"no host", []*api.DriveGroup{group("g", func(g *api.DriveGroup) { g.Spec.Placement.Pattern = "x*" })}, "its placement selects no host"},
		{
			"no disk",
			[]*api.DriveGroup{group("g", func(g *api.DriveGroup) { g.Spec.DataDevices[0] = api.DriveFilter{Size: "2T:"} })},
			"it selects no disk; closest: disk a (ACME HDD S-a 1 TB) of host h1: its size is 1 TB, not 2T:, disk b (ACME HDD S-b 2 TB) of host h1: it is mounted at /",
		},
		{"not near", []*api.DriveGroup{group("g", func(g *api.DriveGroup) { g.Spec.DataDevices[0] = api.DriveFilter{Size: "8T", Model: "x", Vendor: "y"} })}, "it selects no disk of 1 host"},
		{"two groups", []*api.DriveGroup{group("g", nil), group("h", nil)}, "disk a (ACME HDD S-a 1 TB) of host h1 is matched by DriveGroup h, too, so neither uses it"},
		{
			"one in use",
			[]*api.DriveGroup{group("g", func(g *api.DriveGroup) { g.Spec.Take = []string{"S-b"} })},
			"cannot use disk b (ACME HDD S-b 2 TB) of host h1 of spec.take: it is mounted at /",
		},
	} {
		o := Decide(tt.groups, hosts, env(nobody))[0]
		if len(o.Problems) != 1 || !strings.HasPrefix(o.Problems[0], tt.want) {
			t.Errorf("%s: %q", tt.name, o.Problems)
		}
	}
	last := settled(Decide([]*api.DriveGroup{group("g", nil)}, hosts[:1], env(nobody))[0])
	last.Spec.Exclude = []string{"a"}
	if o := Decide([]*api.DriveGroup{last}, hosts, env(nobody))[0]; len(o.Devices)+len(o.Problems) > 0 {
		t.Errorf("the only disk is excluded: %v %v", o.Devices, o.Problems)
	}
	claimed := Decide([]*api.DriveGroup{group("g", nil)}, hosts, env(func(Place) string { return "StorageNode n" }))[0]
	if len(claimed.Devices) > 0 || !strings.Contains(claimed.Others[0], "StorageNode n uses it") {
		t.Errorf("%v %v", claimed.Devices, claimed.Others)
	}
}

// A disk that is named in take counts for the limit from the start, and does not keep another group from the one that it would leave.
func TestDecide_namedCounts(t *testing.T) {
	hosts := []api.Host{testHost("h1", disk("a", "1T"), disk("b", "1T"))}
	limited := func(name string, take ...string) *api.DriveGroup {
		return group(name, func(g *api.DriveGroup) {
			g.Spec.DataDevices, g.Spec.Take = []api.DriveFilter{{All: true, Limit: 1}}, take
		})
	}
	all := Decide([]*api.DriveGroup{limited("g"), limited("h", "b")}, hosts, env(nobody))
	if names(all[0].Devices) != "h1/a" || names(all[1].Devices) != "h1/b" || len(all[0].Problems)+len(all[1].Problems) > 0 {
		t.Errorf("%s and %s: %v %v", names(all[0].Devices), names(all[1].Devices), all[0].Problems, all[1].Problems)
	}
	if o := Decide([]*api.DriveGroup{limited("h", "b")}, hosts, env(nobody))[0]; names(o.Devices) != "h1/b" {
		t.Errorf("one group: %s", names(o.Devices))
	}
}

// Whatever is declared, nothing is taken that is not empty, that somebody else has, or that no word was said of; no disk is taken twice; and to
// decide again changes nothing.
func TestDecide_properties(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var hosts []api.Host
		for h := range rapid.IntRange(1, 3).Draw(r, "hosts") {
			host := testHost(fmt.Sprintf("h%d", h))
			for d := range rapid.IntRange(0, 4).Draw(r, "disks") {
				x := disk(fmt.Sprintf("%d%d", h, d), rapid.SampledFrom([]string{"1T", "2T"}).Draw(r, "size"))
				if rapid.Bool().Draw(r, "mounted") {
					mounted(&x)
				}
				host.Status.Devices = append(host.Status.Devices, x)
			}
			hosts = append(hosts, host)
		}
		var groups []*api.DriveGroup
		for i := range rapid.IntRange(1, 3).Draw(r, "groups") {
			groups = append(groups, group(fmt.Sprint(i), func(g *api.DriveGroup) {
				g.Spec.Placement.Pattern = rapid.SampledFrom([]string{"h*", "h0", "h[12]"}).Draw(r, "pattern")
				g.Spec.DataDevices[0] = api.DriveFilter{Size: rapid.SampledFrom([]string{"1T", "2T", "1T:"}).Draw(r, "filter"), Limit: int32(rapid.IntRange(0, 2).Draw(r, "limit"))}
				g.Spec.Take = rapid.SliceOfN(rapid.SampledFrom([]string{"00", "01", "12"}), 0, 2).Draw(r, "take")
				g.Spec.Exclude = rapid.SliceOfN(rapid.SampledFrom([]string{"00", "11", "20"}), 0, 2).Draw(r, "exclude")
			}))
		}
		claimed := func(at Place) string {
			if strings.HasSuffix(at.ID, "3") {
				return "somebody"
			}
			return ""
		}
		taken := map[string]string{}
		for _, o := range Decide(groups, hosts, env(claimed)) {
			for _, d := range o.Devices {
				if other := taken[d.ID]; other != "" {
					r.Fatalf("disk %s is taken by %s and %s", d.ID, other, o.Group.Name)
				}
				taken[d.ID] = o.Group.Name
				h := hosts[d.Host[1]-'0']
				i := slices.IndexFunc(h.Status.Devices, func(x api.Device) bool { return x.ID == d.ID })
				if h.Status.Devices[i].Availability != api.DeviceAvailable || claimed(Place{d.Host, d.ID}) != "" || slices.Contains(o.Group.Spec.Exclude, d.ID) {
					r.Fatalf("disk %s is taken by %s", d.ID, o.Group.Name)
				}
			}
		}
		var again []*api.DriveGroup
		before := Decide(groups, hosts, env(claimed))
		for _, o := range before {
			again = append(again, settled(o))
		}
		for i, o := range Decide(again, hosts, env(claimed)) {
			if names(o.Devices) != names(before[i].Devices) {
				r.Fatalf("group %d has %q, and then %q", i, names(before[i].Devices), names(o.Devices))
			}
		}
	})
}
