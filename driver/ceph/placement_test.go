package ceph

import (
	"slices"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func byPattern(pattern string) *api.HostSelection { return &api.HostSelection{Pattern: pattern} }

func (f *fakeWorld) mgrHosts() (hosts []string) {
	for _, d := range f.daemonsOf(TypeMgr) {
		if d.DeletionTimestamp == nil {
			hosts = append(hosts, d.Spec.Host)
		}
	}
	slices.Sort(hosts)
	return hosts
}

// New mons and mgrs are made on the hosts that are selected, whether the cluster has nodes there or not.
func TestPlacement_new(t *testing.T) {
	w := newWorld(1, 1)
	w.host(1, 1)
	w.host(2, 0)
	w.node(1, "wwn-10")
	w.cluster.Spec.Ceph.Mon.Placement = &api.HostSelection{Hosts: []string{"h2"}}
	w.cluster.Spec.Ceph.Mgr.Placement = byPattern("*2")
	f := withFake(w)
	f.settle(t)
	f.checkMons(t, "a@h2")
	if got := f.mgrHosts(); !slices.Equal(got, []string{"h2"}) {
		t.Errorf("mgrs are on %v", got)
	}
	v := f.view()
	v.Daemons, v.Nodes = nil, nil
	if used := v.UsedHosts(); !used["h2"] || used["h1"] {
		t.Errorf("the cluster may use %v", used)
	}
}

// A mon or a mgr on a host that is no longer selected moves to one that is, also by labels.
func TestPlacement_moves(t *testing.T) {
	for name, change := range map[string]func(*fakeWorld){
		"placement": func(f *fakeWorld) {
			f.cluster.Spec.Ceph.Mon.Placement, f.cluster.Spec.Ceph.Mgr.Placement = byPattern("h[234]"), byPattern("h[4]")
		},
		"hostSelector": func(f *fakeWorld) {
			for i := range f.hosts {
				f.hosts[i].Labels["mon"] = map[bool]string{true: "no", false: "yes"}[i == 0]
			}
			f.hosts[3].Labels["mgr"] = "yes"
			ceph := f.cluster.Spec.Ceph
			ceph.Mon.HostSelector, ceph.Mgr.HostSelector = byLabel("mon", "yes"), byLabel("mgr", "yes")
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(fourHosts())
			f.settle(t)
			f.checkMons(t, "a@h1", "b@h2", "c@h3")
			f.cluster.Spec.Ceph.Mgr.Count = 1
			change(f)
			if p := f.settle(t); !p.Done {
				t.Errorf("%v", decisions(p))
			}
			f.checkMons(t, "b@h2", "c@h3", "d@h4")
			if got := f.mgrHosts(); !slices.Equal(got, []string{"h4"}) {
				t.Errorf("mgrs are on %v", got)
			}
		})
	}
}

// Where no other host is selected what runs stays.
func TestPlacement_stays(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.cluster.Spec.Ceph.Mon.Placement, f.cluster.Spec.Ceph.Mgr.Placement = byPattern("h[23]"), byPattern("h3")
	f.cluster.Spec.Ceph.Mgr.Count = 2
	had := f.mgrHosts()
	p := f.settle(t)
	f.checkMons(t, "a@h1", "b@h2", "c@h3")
	if got := reasonOf(p, api.VerdictSkip, "mon.a"); got != api.ReasonNoOtherHost {
		t.Errorf("mon.a: %q of %v", got, decisions(p))
	}
	if got := f.mgrHosts(); len(got) != len(had) {
		t.Errorf("mgrs are on %v, and were on %v", got, had)
	}
}

// What cannot be had is refused as a whole in a new cluster.
func TestPlacement_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*api.CephSpec)
		object string
	}{
		"no host for mons": {func(s *api.CephSpec) { s.Mon.Placement = byPattern("x*") }, "mons"},
		"no host for mgrs": {func(s *api.CephSpec) {
			s.Mgr.Placement = &api.HostSelection{Labels: map[string]string{"a": "b"}}
		}, "mgrs"},
		"too few for mons": {func(s *api.CephSpec) { s.Mon.Placement = byPattern("h[12]") }, "mons"},
	} {
		t.Run(name, func(t *testing.T) {
			w := threeHosts()
			tt.change(w.cluster.Spec.Ceph)
			var p *engine.Plan
			if p = w.plan(); !p.Refused || reasonOf(p, api.VerdictRefuse, tt.object) != api.ReasonInsufficientNodes {
				t.Errorf("refused %v: %v", p.Refused, decisions(p))
			}
		})
	}
}
