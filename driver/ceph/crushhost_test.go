package ceph

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// restartAll has all daemons end, which Ceph sees, and start again with the files that they have by
// now.
func (f *fakeWorld) restartAll() {
	for _, d := range f.daemons {
		d.Status.State = api.DaemonStopped
	}
	f.ceph.Sync(f.powered())
	f.agents()
}

// whereOSDs are the buckets that CRUSH has the first OSDs in.
func (f *fakeWorld) whereOSDs(n int) (in []string) {
	for id := range n {
		in = append(in, f.ceph.HostOf(id))
	}
	return in
}

// placedReason is the reason of the condition Placed in a plan.
func placedReason(t *testing.T, p *engine.Plan) string {
	t.Helper()
	c := meta.FindStatusCondition(p.Conditions, api.ClusterPlaced)
	if c == nil {
		t.Fatalf("nothing is said of places: %v", decisions(p))
	}
	return c.Reason
}

// renamedHosts names the hosts of a world that was not begun yet.
func (w *world) renamedHosts(names ...string) {
	for i, name := range names {
		w.hosts[i].Name, w.hosts[i].Labels[api.LabelHostname] = name, name
		w.nodes[i].Spec.NodeSelector = map[string]string{api.LabelHostname: name}
	}
}

// fromBefore makes the Daemons of OSDs as an earlier version of Holdfast left them: it told OSDs
// nothing of where they are.
func (f *fakeWorld) fromBefore() {
	for _, d := range f.daemons {
		if d.Spec.Type != TypeOSD {
			continue
		}
		delete(d.Spec.Parameters, ParamCrushHost)
		delete(d.Spec.Parameters, ParamCrushPlaced)
		text := d.Spec.Files[0].Sources[0].Text
		var lines []string
		for line := range strings.Lines(*text) {
			if !strings.Contains(line, "crush_") {
				lines = append(lines, line)
			}
		}
		*text = strings.Join(lines, "")
	}
}

// Where an OSD comes to be in CRUSH is the affair of its Host: what the kernel calls the machine,
// and in which case, has no effect, not at a restart either.
func TestPlaces_kernelNames(t *testing.T) {
	for name, tt := range map[string]struct{ hosts, kernels, want, others []string }{
		"all are called debian":   {[]string{"s1", "s2", "s3"}, []string{"debian", "debian", "debian"}, []string{"s1", "s2", "s3"}, nil},
		"in upper case":           {[]string{"s1", "s2", "s3"}, []string{"S1", "S2", "S3"}, []string{"s1", "s2", "s3"}, nil},
		"full names":              {[]string{"a.x.org", "b.x.org", "c.x.org"}, []string{"a", "b", "c"}, []string{"a", "b", "c"}, nil},
		"full names of two sites": {[]string{"a.x.org", "a.y.org", "b.x.org"}, []string{"a", "a", "b"}, []string{"a.x.org", "a.y.org", "b"}, nil},
		"another host's name":     {[]string{"s1", "s2", "s3"}, []string{"s2", "s3", "s1"}, []string{"s1", "s2", "s3"}, nil},
		"a host without nodes": {
			[]string{"a.x.org", "b.x.org", "c.x.org"}, []string{"a", "b", "c"}, []string{"a", "b", "c"}, []string{"a", "b.y.org"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(3, replicated("p", 3))
			f.renamedHosts(tt.hosts...)
			for i, other := range tt.others {
				f.host(4+i, 1).Name = other
			}
			for i, kernel := range tt.kernels {
				f.ceph.Call(tt.hosts[i], kernel)
				f.at(i+1, fmt.Sprintf("rack=r%d", i+1))
			}
			p := f.settle(t)
			var want []string
			for i, bucket := range tt.want {
				want = append(want, fmt.Sprintf("%s in r%d in default", bucket, i+1))
			}
			for _, when := range []string{"at first", "started again"} {
				if diff := cmp.Diff(want, f.ceph.Locations()); diff != "" || placedReason(t, p) != api.PlacesAsDeclared || !p.Done {
					t.Errorf("%s: %s, %v (-want +got):\n%s", when, placedReason(t, p), decisions(p), diff)
				}
				if diff := cmp.Diff(tt.want, f.whereOSDs(3)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", when, diff)
				}
				f.restartAll()
				p = f.settle(t)
			}
		})
	}
}

// An OSD that a person moved stays there, whoever starts it again, also when Ceph has not answered
// meanwhile.
func TestPlaces_chosen(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.ceph.Put("fast", "root", "")
	f.ceph.Put("mine", "host", "fast")
	f.ceph.Adopt("mine", 1)
	f.restartAll()
	p := f.settle(t)
	if got := f.ceph.HostOf(1); got != "mine" || placedReason(t, p) != api.PlacesElsewhere || !p.Done {
		t.Errorf("osd.1 is in %s, %v", got, decisions(p))
	}
	if got := word(decisions(p, api.VerdictSkip), "crush"); !strings.Contains(got, "CRUSH has OSDs below other hosts than their own: osd.1 (host mine); Holdfast does not move them") {
		t.Errorf("%q", got)
	}
	before := f.confOn("c-osd-1")
	f.powerOff(2, 0)
	f.powerOff(3, 0)
	f.agents()
	if p := f.round(t); meta.FindStatusCondition(p.Conditions, api.ClusterPlaced) != nil || f.confOn("c-osd-1") != before {
		t.Errorf("while Ceph does not answer: %v, %s", p.Conditions, f.confOn("c-osd-1"))
	}
	f.host(4, 1)
	f.node(2, "wwn-21").Name = "more"
	f.powerOn(2)
	f.powerOn(3)
	if f.settle(t); f.ceph.HostOf(3) != "h2" {
		t.Errorf("a new OSD of h2 came to %s", f.ceph.HostOf(3))
	}
}

// A cluster that an earlier version made keeps its places, by which the kernel called the machines;
// new OSDs come to those of their host.
func TestPlaces_earlier(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.ceph.Put("store02", "host", "default")
	f.ceph.Adopt("store02", 1)
	f.ask(t, "osd crush rm", "name", "h2")
	f.fromBefore()
	f.ceph.Call("h2", "renamed-since")
	f.at(2, "rack=r2")
	f.settle(t)
	f.restartAll()
	f.node(2, "wwn-21").Name = "more"
	p := f.settle(t)
	if diff := cmp.Diff([]string{"h1", "store02", "h3", "store02"}, f.whereOSDs(4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	said := strings.Join(decisions(p, api.VerdictSkip), "\n")
	for _, want := range []string{"h2 is store02 there", "ceph osd crush rename-bucket store02 h2'", "ceph osd crush move store02 root=default rack=r2'"} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is not in %s", want, said)
		}
	}
	if placedReason(t, p) != api.PlacesElsewhere || !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

// Machines that CRUSH takes for one are told of, and stay; a new OSD comes to its own host, and
// that pools may have copies together on it is told as what degrades the cluster, until a person
// moves the other one.
func TestPlaces_shared(t *testing.T) {
	f := poolsOn(3, replicated("p", 2, func(p *api.Pool) { p.Spec.FailureDomain = "osd" }))
	f.settle(t)
	f.ceph.Put("debian", "host", "default")
	f.ceph.Adopt("debian", 0, 1, 2)
	f.fromBefore()
	f.settle(t)
	f.restartAll()
	p := f.settle(t)
	want := "CRUSH has the OSDs of hosts h1, h2, h3 in one host, debian; moving an OSD moves its data. " +
		"To move one: 'holdfast ceph shell -- ceph osd crush move osd.2 root=default host=h3'"
	if got := word(decisions(p, api.VerdictSkip), "crush"); got != want || placedReason(t, p) != api.PlacesHostsShared {
		t.Errorf("%q", got)
	}
	f.node(1, "wwn-11").Name = "more"
	f.pools = append(f.pools, *replicated("q", 2, func(p *api.Pool) { p.Spec.FailureDomain = "host" }))
	p = f.settle(t)
	if diff := cmp.Diff([]string{"debian", "debian", "debian", "h1"}, f.whereOSDs(4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if placedReason(t, p) != api.PlacesHostSplit || p.Status.Status != api.StorageDegraded ||
		!strings.Contains(strings.Join(p.Status.Reasons, "\n"), "copies of pools device_health_metrics, q may share a machine. Of h1 it has osd.0 in host debian, osd.3 in host h1") {
		t.Errorf("%s, %v", p.Status.Status, p.Status.Reasons)
	}
	for i := range 3 {
		f.ask(t, "osd crush move", "name", osdName(i), "args", []string{"root=default", fmt.Sprintf("host=h%d", i+1)})
	}
	if p = f.settle(t); placedReason(t, p) != api.PlacesAsDeclared || !p.Done {
		t.Errorf("%v", decisions(p))
	}
	f.restartAll()
	f.settle(t)
	if diff := cmp.Diff([]string{"h1", "h2", "h3", "h1"}, f.whereOSDs(4)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// An OSD that follows its disk to another host comes to that in CRUSH.
func TestPlaces_moved(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.carry(3, 2, 4, "wwn-21")
	f.nodes[1].Spec.Devices = []string{"wwn-20"}
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-21")
	f.arrives(t, "h4")
	if p := f.settle(t); f.ceph.HostOf(3) != "h4" || placedReason(t, p) != api.PlacesAsDeclared {
		t.Errorf("osd.3 is in %s: %v", f.ceph.HostOf(3), decisions(p))
	}
}

// One place for all OSDs is refused, and none gets it; one for a single OSD is heeded.
func TestPlaces_declared(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.config("osd", api.CephOptions{optionLocation: "root=default host=h1"})
	f.config("osd.2", api.CephOptions{optionLocation: "root=default host=mine"})
	f.settle(t)
	f.restartAll()
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "config"); !strings.Contains(got, "would put the OSDs of all hosts at one CRUSH location") {
		t.Errorf("%q", got)
	}
	if conf := f.confOn("c-osd-2"); strings.Contains(conf, "host=h") || strings.Contains(conf, optionUpdateOnStart) {
		t.Errorf("osd.2 is told another place than that which Ceph stores for it:\n%s", conf)
	}
	if diff := cmp.Diff([]string{"h1", "h2"}, f.whereOSDs(2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// All disks of a host are carried to another one: its OSDs stand below that, whether or not the host that they came from is still declared,
// or known.
func TestPlaces_carried(t *testing.T) {
	for name, tt := range map[string]struct{ node, host bool }{
		"the node stays": {true, true}, "the node is deleted": {false, true}, "the host is removed": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			f.carry(2, 2, 4, "wwn-20")
			f.carry(3, 2, 4, "wwn-21")
			f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-20", "wwn-21")
			f.nodes[1].Spec.Devices = nil
			if !tt.node {
				f.nodes = slices.Delete(f.nodes, 1, 2)
			}
			moved := func() bool {
				two, three := f.daemons["c-osd-2"], f.daemons["c-osd-3"]
				return two != nil && three != nil && two.Spec.Host == "h4" && three.Spec.Host == "h4"
			}
			for range 400 {
				f.agents()
				p := f.round(t)
				f.now = f.now.Add(recheckLater)
				for _, n := range []string{"c-osd-2", "c-osd-3"} {
					if d := f.daemons[n]; d != nil && d.Spec.Host == "h4" {
						delete(f.broken, n)
					}
				}
				if !tt.host && moved() {
					f.hosts = slices.DeleteFunc(f.hosts, func(h api.Host) bool { return h.Name == "h2" })
				}
				if moved() && p.Done {
					break
				}
			}
			p := f.settle(t)
			in := f.whereOSDs(8)
			if got := []string{in[2], in[3], in[6], in[7]}; !slices.Equal(got, []string{"h4", "h4", "h4", "h4"}) || placedReason(t, p) == api.PlacesHostSplit {
				t.Errorf("the OSDs of h4 are in %v: %s, %v", got, placedReason(t, p), p.Status.Reasons)
			}
		})
	}
}
