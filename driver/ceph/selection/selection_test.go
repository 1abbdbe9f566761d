package selection

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestSelection(t *testing.T) {
	h1 := api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1", Labels: map[string]string{"rack": "r1"}}}
	h2 := api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h2"}}
	hosts := []api.Host{h1, h2}
	near := metav1.LabelSelectorRequirement{Key: "rack", Operator: "Near"}
	invalid := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{near}}
	rack := func(name string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"rack": name}}
	}
	for name, tt := range map[string]struct {
		spec                      api.CephMonSpec
		field                     string
		first, second             bool
		none, moves, isUnreadable bool
	}{
		"nothing":      {moves: true},
		"an empty one": {spec: api.CephMonSpec{Placement: &api.HostSelection{}}, moves: true},
		"a selector": {
			api.CephMonSpec{HostSelector: rack("r1")},
			"spec.ceph.mon.hostSelector", true, false, false, true, false,
		},
		"one of no host": {
			api.CephMonSpec{HostSelector: rack("r2")},
			"spec.ceph.mon.hostSelector", false, false, true, false, false,
		},
		"an unreadable one": {
			api.CephMonSpec{HostSelector: invalid},
			"spec.ceph.mon.hostSelector", false, false, false, false, true,
		},
		"names": {
			api.CephMonSpec{Placement: &api.HostSelection{Hosts: []string{"h2"}}},
			"spec.ceph.mon.placement", false, true, false, true, false,
		},
		"a pattern of no host": {
			api.CephMonSpec{Placement: &api.HostSelection{Pattern: "x*"}},
			"spec.ceph.mon.placement", false, false, true, false, false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := Mons(&api.CephSpec{Mon: tt.spec})
			if s.Field != tt.field || s.Given() != (tt.field != "") || (s.Err() != nil) != tt.isUnreadable {
				t.Errorf("%q, %v", s.Field, s.Err())
			}
			if s.Selects(&h1) != tt.first || s.Selects(&h2) != tt.second {
				t.Errorf("h1 %v, h2 %v", s.Selects(&h1), s.Selects(&h2))
			}
			if s.SelectsNone(hosts) != tt.none || s.Moves(hosts) != tt.moves {
				t.Errorf("none %v, moves %v", s.SelectsNone(hosts), s.Moves(hosts))
			}
		})
	}
}
