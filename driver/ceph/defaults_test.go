package ceph

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// oneHost is a world of one host that was brought up, with its first so many disks.
func oneHost(t *testing.T, disks int) *fakeWorld {
	t.Helper()
	w := newWorld(1, 1)
	w.host(1, 3)
	w.node(1, []string{"wwn-10", "wwn-11", "wwn-12"}[:disks]...)
	f := withFake(w)
	if p := f.settle(t); !p.Done {
		t.Fatalf("%v", p.Status.Reasons)
	}
	return f
}

// more adds hosts with one disk each.
func (f *fakeWorld) more(hosts ...int) {
	for _, i := range hosts {
		f.host(i, 1)
		f.node(i)
		f.nodes[len(f.nodes)-1].Spec.Devices = []string{f.hosts[len(f.hosts)-1].Status.Devices[0].ID}
	}
}

// redundant is the condition Redundant of a plan, as "Status Reason: message".
func redundant(p *engine.Plan) string {
	c := meta.FindStatusCondition(p.Conditions, api.ClusterRedundant)
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason + ": " + c.Message
}

const ownPoolName = "device_health_metrics"

// A cluster that begins with one disk, and becomes one of three hosts, keeps as many copies as one that began so, in its
// own pool and in new ones; pools that a person made are told of, and left alone.
func TestDefaults_oneDiskGrows(t *testing.T) {
	f := oneHost(t, 1)
	if got := f.ceph.Pool(ownPoolName); got != "size 1/1 over osds, rule replicated_rule" {
		t.Fatalf("at first: %s", got)
	}
	if got := redundant(f.settle(t)); !strings.HasPrefix(got, "True "+api.RedundancyAsRoom+": new pools keep 1 copy, because there is 1 OSD") {
		t.Errorf("at first: %s", got)
	}
	f.ceph.CreatePool("old")
	f.settle(t)
	f.more(2, 3)
	p := f.settle(t)
	if got := f.ceph.Pool(ownPoolName); got != "size 3/2 over hosts, rule holdfast-host" {
		t.Errorf("Ceph's own pool: %s", got)
	}
	want := map[string]string{"global osd_pool_default_crush_rule": "1"}
	if diff := cmp.Diff(want, f.ceph.Stored()); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	f.ceph.CreatePool("new")
	if got := f.ceph.Pool("new"); got != "size 3/2 over hosts, rule holdfast-host" {
		t.Errorf("a pool made by hand: %s", got)
	}
	if got := f.ceph.Pool("old"); got != "size 1/1 over osds, rule replicated_rule" {
		t.Errorf("the pool of a person was changed: %s", got)
	}
	if !p.Done || !strings.HasPrefix(redundant(p), "False "+api.RedundancyOneCopy+": pool old keeps 1 copy") ||
		!strings.Contains(redundant(p), "'holdfast ceph shell -- ceph osd pool set old size 3'") {
		t.Errorf("done %v, %s", p.Done, redundant(p))
	}
}

// A cluster that begins with three disks on one host comes to have its copies on distinct hosts.
func TestDefaults_oneHostGrows(t *testing.T) {
	f := oneHost(t, 3)
	f.ceph.CreatePool("old")
	if got := f.ceph.Pool("old"); got != "size 3/2 over osds, rule replicated_rule" || len(f.ceph.Stored()) != 0 {
		t.Fatalf("at first: %s, %v", got, f.ceph.Stored())
	}
	f.more(2)
	if p := f.settle(t); f.ceph.Pool(ownPoolName) != "size 3/2 over osds, rule replicated_rule" || !strings.HasPrefix(redundant(p), "True") {
		t.Errorf("on two hosts: %s, %s", f.ceph.Pool(ownPoolName), redundant(p))
	}
	f.more(3)
	p := f.settle(t)
	if got := f.ceph.Pool(ownPoolName); got != "size 3/2 over hosts, rule holdfast-host" {
		t.Errorf("Ceph's own pool: %s", got)
	}
	f.ceph.CreatePool("new")
	if got := f.ceph.Pool("new"); got != "size 3/2 over hosts, rule holdfast-host" {
		t.Errorf("a pool made by hand: %s", got)
	}
	if !p.Done || !strings.HasPrefix(redundant(p), "False "+api.RedundancyOneHost+": copies of pool old may share a host") ||
		!strings.Contains(redundant(p), "'holdfast ceph shell -- ceph osd pool set old crush_rule holdfast-host'") {
		t.Errorf("done %v, %s", p.Done, redundant(p))
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
}

// Ceph's own pool grows by one step after another, and by none while data lacks copies.
func TestDefaults_ownPoolWaits(t *testing.T) {
	f := oneHost(t, 1)
	f.more(2, 3)
	var steps []string
	for range 40 {
		f.agents()
		p := f.round(t)
		f.now = f.now.Add(recheckLater)
		n := 0
		for _, c := range p.Commands {
			if c.Object == "pool/"+ownPoolName {
				steps = append(steps, c.Params[paramOption]+"="+c.Params[paramValue])
				n++
			}
		}
		seen, _ := f.view().System.(*Observation)
		if n > 1 || n == 1 && seen != nil && seen.PGsClean < seen.PGs {
			t.Errorf("%d steps at once: %v", n, steps)
		}
		if len(steps) == 1 {
			f.powerOff(3, 0) // its OSD is down: copies are missing
			f.agents()
			p := f.settle(t)
			if !strings.Contains(redundant(p), api.RedundancyGrowing+": Ceph's own pool device_health_metrics grows with the cluster, when ") {
				t.Errorf("while an OSD is down: %s", redundant(p))
			}
			if got := f.ceph.Pool(ownPoolName); !strings.HasPrefix(got, "size 3/1 over osds") {
				t.Errorf("while an OSD is down: %s", got)
			}
			f.powerOn(3)
			steps = append(steps, "power")
		}
	}
	want := []string{"size=3", "power", "min_size=2", "crush_rule=holdfast-host"}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// With fewer OSDs nothing is lowered, and it is told.
func TestDefaults_shrink(t *testing.T) {
	f := oneHost(t, 1)
	f.more(2, 3)
	f.settle(t)
	before := f.ceph.Pool(ownPoolName)
	f.ceph.Forget(2)
	f.nodes, f.hosts = f.nodes[:2], f.hosts[:2]
	delete(f.daemons, "c-osd-2")
	p := f.settle(t)
	if got := f.ceph.Pool(ownPoolName); got != before {
		t.Errorf("%s, before %s", got, before)
	}
	f.ceph.CreatePool("new")
	if got := f.ceph.Pool("new"); !strings.HasPrefix(got, "size 3/2") {
		t.Errorf("a pool made by hand: %s", got)
	}
	if got := redundant(p); !strings.HasPrefix(got, "False "+api.RedundancyTooFewPlaces+": pool "+ownPoolName+" keeps more copies than there is room for") {
		t.Errorf("%s", got)
	}
}

// What the spec or an administrator says of the defaults stays, and is what Ceph's own pool comes to.
func TestDefaults_chosen(t *testing.T) {
	t.Run("spec", func(t *testing.T) {
		f := oneHost(t, 1)
		f.config("global", api.CephOptions{optionDefaultSize: "2"})
		f.more(2, 3)
		f.settle(t)
		if got := f.ceph.Pool(ownPoolName); got != "size 2/1 over hosts, rule holdfast-host" || f.ceph.Stored()["global osd_pool_default_size"] != "2" {
			t.Errorf("%s, %v", got, f.ceph.Stored())
		}
		f.cluster.Spec.Ceph.Config = nil
		if f.settle(t); !strings.HasPrefix(f.ceph.Pool(ownPoolName), "size 3/2 over hosts") || f.ceph.Stored()["global osd_pool_default_size"] != "" {
			t.Errorf("after it was taken out of the spec: %s, %v", f.ceph.Pool(ownPoolName), f.ceph.Stored())
		}
	})
	t.Run("administrator", func(t *testing.T) {
		f := oneHost(t, 1)
		f.ceph.SetOption("global", optionDefaultSize, "2")
		f.more(2, 3)
		f.settle(t)
		if got := f.ceph.Pool(ownPoolName); !strings.HasPrefix(got, "size 2/1 over hosts") || f.ceph.Stored()["global osd_pool_default_size"] != "2" {
			t.Errorf("%s, %v", got, f.ceph.Stored())
		}
	})
	t.Run("Pool", func(t *testing.T) {
		f := oneHost(t, 1)
		f.pools = append(f.pools, *replicated(ownPoolName, 1))
		f.more(2, 3)
		if f.settle(t); !strings.HasPrefix(f.ceph.Pool(ownPoolName), "size 1/1") {
			t.Errorf("the Pool says one copy: %s", f.ceph.Pool(ownPoolName))
		}
	})
}

// A run that is cut off between any two commands leaves nothing that the next one does not finish.
func TestDefaults_cutOff(t *testing.T) {
	for cut := range 12 {
		f := oneHost(t, 1)
		f.more(2, 3)
		f.agents()
		f.round(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.ceph.CutAfter(cut*3, cancel)
		for range 4 {
			f.agents()
			if v, p, err := f.observed(ctx); err == nil {
				_ = f.apply(ctx, v, p)
			}
		}
		cancel()
		if p := f.settle(t); !p.Done || f.ceph.Pool(ownPoolName) != "size 3/2 over hosts, rule holdfast-host" || len(f.ceph.Stored()) != 1 {
			t.Errorf("cut at %d: done %v, %s, %v", cut, p.Done, f.ceph.Pool(ownPoolName), f.ceph.Stored())
		}
	}
}

// A host that Ceph does not let stop is refused with the pool that is why.
func TestDefaults_maintenanceSaysWhy(t *testing.T) {
	f := oneHost(t, 1)
	f.pools = append(f.pools, *replicated(ownPoolName, 1))
	f.more(2, 3)
	f.settle(t)
	f.mode(2, api.HostMaintenance)
	f.agents()
	f.round(t)
	f.agents()
	if got := hostWord(f.round(t), "h2"); !strings.Contains(got, "(pool device_health_metrics keeps 1 copy and stops serving if one is missing)") {
		t.Errorf("%q", got)
	}
}

// In a cluster that did not begin small, the default that an administrator has set holds, too.
func TestDefaults_chosenLater(t *testing.T) {
	f := poolsOn(3)
	f.ceph.SetOption("global", optionDefaultSize, "2")
	f.settle(t)
	before := f.ceph.Pool(ownPoolName)
	f.ceph.CreatePool("old")
	f.settle(t)
	p := f.settle(t)
	if after := f.ceph.Pool(ownPoolName); after != before || !strings.Contains(after, "size 2/") {
		t.Errorf("Ceph's own pool went from %s to %s", before, after)
	}
	if got := redundant(p); strings.Contains(got, api.RedundancyFewerCopies) {
		t.Errorf("two copies are wanted: %s", got)
	}
}
