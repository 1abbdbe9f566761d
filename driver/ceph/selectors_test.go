package ceph

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func byLabel(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

// TestSelectors_selectNone: a new cluster with a hostSelector that no host answers to is refused as a whole, once and with what was meant.
func TestSelectors_selectNone(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*world)
		object string
		want   string
	}{
		"mons": {
			func(w *world) {
				w.cluster.Spec.Ceph.Mon = api.CephMonSpec{Count: 1, HostSelector: byLabel("room", "cellar")}
			}, "mons",
			"spec.ceph.mon.hostSelector selects no host: no host has the labels room=cellar: label a host with 'holdfast host label'",
		},
		"mgrs": {
			func(w *world) { w.cluster.Spec.Ceph.Mgr.HostSelector = byLabel("room", "cellar") }, "mgrs",
			"spec.ceph.mgr.hostSelector selects no host: no host has the labels room=cellar",
		},
		"a slip": {func(w *world) {
			w.hosts[1].Labels[api.LabelRack] = "r2"
			w.cluster.Spec.Ceph.Mon.HostSelector = byLabel("rack", "r2")
		}, "mons", "spec.ceph.mon.hostSelector selects no host: no host has the labels rack=r2: did you mean topology.holdfast.io/rack=r2?"},
		"no host": {func(w *world) {
			w.hosts, w.nodes = nil, nil
			w.cluster.Spec.Ceph.Mon.HostSelector = &metav1.LabelSelector{}
		}, "mons", "spec.ceph.mon.hostSelector selects no host: none has joined yet"},
	} {
		t.Run(name, func(t *testing.T) {
			w := threeHosts()
			tt.change(w)
			p := w.plan()
			all := decisions(p, api.VerdictRefuse)
			if !p.Refused || !p.Empty() || len(all) != 1 || !strings.HasPrefix(word(all, tt.object), tt.want) {
				t.Errorf("refused %v, empty %v:\n%s", p.Refused, p.Empty(), strings.Join(all, "\n"))
			}
		})
	}
}

// TestSelectors_whileItRuns: in a cluster that runs it is refused although nothing is placed by it now. What runs stays, other work goes on, and
// when the selector is mended nothing is left of it.
func TestSelectors_whileItRuns(t *testing.T) {
	f := withFake(twoDisks())
	f.nodes[3].Spec.Devices = f.nodes[3].Spec.Devices[:1]
	f.settle(t)
	had := f.states("h1")
	f.cluster.Spec.Ceph.Mon.HostSelector, f.cluster.Spec.Ceph.Mgr.HostSelector = byLabel("rack", "r9"), byLabel("rack", "r9")
	f.nodes[3].Spec.Devices = append(f.nodes[3].Spec.Devices, "wwn-41")
	p := f.settle(t)
	all := decisions(p, api.VerdictRefuse)
	if len(all) != 2 || !strings.Contains(word(all, "mons"), "selects no host") || !strings.Contains(word(all, "mgrs"), "selects no host") || p.Refused || p.Done {
		t.Errorf("refused %v, done %v:\n%s", p.Refused, p.Done, strings.Join(all, "\n"))
	}
	f.checkMons(t, "a@h1", "b@h2", "c@h3")
	if got := f.states("h1"); strings.Join(got, " ") != strings.Join(had, " ") || len(f.ceph.OSDs()) != 8 {
		t.Errorf("on h1 there is %q, and was %q; OSDs %v", got, had, f.ceph.OSDs())
	}
	f.cluster.Spec.Ceph.Mon.HostSelector, f.cluster.Spec.Ceph.Mgr.HostSelector = nil, nil
	if p = f.settle(t); !p.Done {
		t.Errorf("%v", decisions(p))
	}
}
