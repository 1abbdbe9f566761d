package ceph

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// fiveSingle has an OSD on each of five hosts, and one mon and mgr.
func fiveSingle() *world {
	w := newWorld(1, 1)
	for i := 1; i <= 5; i++ {
		w.host(i, 1)
		w.node(i, fmt.Sprintf("wwn-%d0", i))
	}
	return w
}

// fill has OSDs 0, 1, … be so full, in percent.
func (f *fakeWorld) fill(percent ...int64) {
	for id, x := range percent {
		f.ceph.Use(id, x*f.ceph.Size()/100)
	}
}

// Of two hosts that are drained at one time, and of which one fits on the others, the first goes, and the other one is refused as long as it does.
func TestDrain_oneOfTwoFits(t *testing.T) {
	f := withFake(fiveSingle())
	f.settle(t)
	f.fill(55, 55, 55, 55, 55)
	f.ceph.Stick(3, true)
	f.mode(4, api.HostDrain)
	f.mode(5, api.HostDrain)
	p := f.settle(t)
	if w := hostWord(p, "h4"); w != "Wait: data moves from osd.3 to other hosts" {
		t.Errorf("h4: %q", w)
	}
	w := hostWord(p, "h5")
	if !strings.HasPrefix(w, "Refuse: its data does not fit on the other hosts: their OSDs would be 91 % full") || !strings.HasSuffix(w, "(already being removed: osd.3)") {
		t.Errorf("h5: %q", w)
	}
	if drains(f.daemons["c-osd-4"]) || f.ceph.Weight(4) == 0 {
		t.Error("osd.4 was told to leave")
	}
}

// The same holds for disks that are withdrawn from two hosts.
func TestWithdraw_oneOfTwoFits(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.fill(70, 70, 70, 70, 70, 70, 70, 70)
	f.ceph.Stick(5, true)
	f.nodes[2].Spec.Devices, f.nodes[3].Spec.Devices = f.nodes[2].Spec.Devices[:1], f.nodes[3].Spec.Devices[:1]
	p := f.settle(t)
	if !drains(f.daemons["c-osd-5"]) || drains(f.daemons["c-osd-7"]) {
		t.Errorf("%v", decisions(p))
	}
	if w := word(decisions(p, api.VerdictRefuse), "osd.7"); !strings.Contains(w, "would be 93 % full") || !strings.Contains(w, "(already being removed: osd.5)") {
		t.Errorf("%q of %v", w, decisions(p))
	}
}

// A host is judged as a whole when it is drained, also when one of its OSDs is on its way out already.
func TestDrain_judgedAfterWithdrawal(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.fill(70, 70, 70, 70, 70, 70, 70, 70)
	f.ceph.Stick(7, true)
	f.withdraw()
	f.settle(t)
	f.mode(4, api.HostDrain)
	p := f.settle(t)
	if w := hostWord(p, "h4"); !strings.HasPrefix(w, "Refuse: its data does not fit on the other hosts: their OSDs would be 93 % full") || drains(f.daemons["c-osd-6"]) {
		t.Errorf("%q", w)
	}
}

// There may be enough space as a whole, and still too little where the data would go.
func TestDrain_oneWouldBeTooFull(t *testing.T) {
	for name, tt := range map[string]struct {
		fill []int64
		want string
	}{
		"fuller than the others": {[]int64{85, 60, 60, 55, 0}, "osd.0 on host h1, 85 % full now, would be about 99 % full"},
		"full already":           {[]int64{91, 10, 10, 10, 10}, "osd.0 on host h1, 91 % full now, would be about 93 % full"},
		"fits":                   {[]int64{70, 60, 60, 55, 0}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(fiveSingle())
			f.settle(t)
			f.fill(tt.fill...)
			f.ceph.Stick(3, true)
			f.mode(4, api.HostDrain)
			p := f.settle(t)
			if w := hostWord(p, "h4"); strings.HasPrefix(w, "Refuse: the data does not fit: CRUSH") != (tt.want != "") || !strings.Contains(w, tt.want) || drains(f.daemons["c-osd-3"]) != (tt.want == "") {
				t.Errorf("%q", w)
			}
		})
	}
}

// placedOSDs has OSDs in these racks and hosts, with a weight each.
func placedOSDs(weights []float64, at ...string) []placedOSD {
	var all []placedOSD
	for i, place := range racks(at...) {
		place.Weight = weights[i]
		all = append(all, placedOSD{i, place})
	}
	return all
}

// How much each OSD gets follows from the rule: with as many copies as hosts each host has all of it, whatever its weight.
func TestSharesOf(t *testing.T) {
	over := func(steps ...Choose) Rule { return Rule{Takes: []Take{{Root: "default", Steps: steps}}} }
	for name, tt := range map[string]struct {
		rule Rule
		osds []placedOSD
		size int
		want map[int]float64
	}{
		"by weight":                  {over(Choose{Type: "osd", Num: 0}), placedOSDs([]float64{1, 3}, "r1/h1", "r1/h2"), 1, map[int]float64{0: 0.25, 1: 0.75}},
		"as many copies as hosts":    {over(Choose{Type: "host", Num: 0}), placedOSDs([]float64{1, 4, 4}, "r1/h1", "r1/h2", "r1/h3"), 3, map[int]float64{0: 1. / 3, 1: 1. / 3, 2: 1. / 3}},
		"a large host":               {over(Choose{Type: "host", Num: 0}), placedOSDs([]float64{1, 1, 4}, "r1/h1", "r1/h2", "r1/h3"), 2, map[int]float64{0: 0.25, 1: 0.25, 2: 0.5}},
		"within a host by weight":    {over(Choose{Type: "host", Num: 0}), placedOSDs([]float64{1, 3, 4}, "r1/h1", "r1/h1", "r1/h2"), 2, map[int]float64{0: 0.125, 1: 0.375, 2: 0.5}},
		"racks, and hosts in them":   {over(Choose{Type: "rack", Num: 2}, Choose{Type: "host", Num: 1}), placedOSDs([]float64{1, 1, 2}, "r1/h1", "r1/h2", "r2/h3"), 2, map[int]float64{0: 0.25, 1: 0.25, 2: 0.5}},
		"a device class":             {Rule{Takes: []Take{{Root: "default", Class: "ssd", Steps: []Choose{{Type: "host", Num: 0}}}}}, placedOSDs([]float64{1, 1}, "r1/h1", "r1/s2"), 1, map[int]float64{1: 1}},
		"one on flash, one on disks": {Rule{Takes: []Take{{Root: "default", Class: "ssd", Steps: []Choose{{Type: "host", Num: 1}}}, {Root: "default", Class: "hdd", Steps: []Choose{{Type: "host", Num: -1}}}}}, placedOSDs([]float64{1, 1}, "r1/h1", "r1/s2"), 2, map[int]float64{0: 0.5, 1: 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, sharesOf(tt.rule, tt.osds, tt.size), cmpopts.EquateApprox(0, 1e-9)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// What is drawn is as many as there are, none twice, and a heavier one no less often.
func TestDrawn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := map[string]float64{}
		for i, w := range rapid.SliceOfN(rapid.Float64Range(0.001, 100), 1, 12).Draw(t, "weights") {
			weights[fmt.Sprint(i)] = w
		}
		n := rapid.IntRange(1, 14).Draw(t, "n")
		often, sum := drawn(weights, n), 0.0
		for a := range weights {
			sum += often[a]
			for b := range weights {
				if often[a] < 0 || often[a] > 1 || weights[a] > weights[b] && often[a] < often[b]-1e-9 {
					t.Fatalf("%v: %v", weights, often)
				}
			}
		}
		if math.Abs(sum-float64(min(n, len(weights)))) > 1e-6 {
			t.Fatalf("%d of %v: %v, together %v", n, weights, often, sum)
		}
	})
}

// racks has OSDs in these racks and hosts: "r1/h1" twice is two OSDs on one host. The device class is that of the host's first letter.
func racks(osds ...string) []Place {
	var all []Place
	for i, at := range osds {
		class := map[byte]string{'h': "hdd", 's': "ssd"}[at[3]]
		all = append(all, Place{Class: class, Weight: 1, Buckets: map[string]string{"osd": fmt.Sprint("osd.", i), "host": at[3:], "rack": at[:2], "root": "default"}})
	}
	return all
}

// A host of a rack that has others can be drained where copies are spread over racks.
func TestDrain_notTheLastOfItsRack(t *testing.T) {
	w := fourHosts()
	w.cluster.Spec.Ceph.Mgr.Count = 1
	f := withFake(w)
	f.settle(t)
	f.ceph.SpreadOver(map[string]string{"h1": "r1", "h2": "r2", "h3": "r3", "h4": "r3"})
	f.mode(4, api.HostDrain)
	if p := f.settle(t); hostWord(p, "h4") != "" || len(f.ceph.OSDs()) != 3 {
		t.Errorf("%q, OSDs %v", hostWord(p, "h4"), f.ceph.OSDs())
	}
}
