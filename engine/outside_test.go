package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/outside"
)

// What was changed in the storage system itself is told once, and once when it is as it was; also by a leader who has
// only read what was told before. The condition InSync names it.
func TestOutside(t *testing.T) {
	p := &Plan{Status: api.StorageStatusStatus{Health: "OK"}}
	p.Decide(api.VerdictDo, api.ReasonChangedOutside, "osd.1", "auth import: key removed")
	p.Decide(api.VerdictWait, api.ReasonChangedOutside, "flag/norecover", "flag norecover is set")
	p.Decide(api.VerdictWait, api.ReasonMovingData, "osd.2", "data moves")
	well := viewWithChecks()
	changed := viewWithChecks()
	changed.Status.Status = Aggregate(well, p, time.Now())
	said := []string{
		"CHANGED_OUTSIDE flag/norecover: flag norecover is set", "CHANGED_OUTSIDE osd.1: auth import: key removed",
	}
	over := []string{
		"AS_SET_AGAIN flag/norecover: flag/norecover is as Holdfast set it again",
		"AS_SET_AGAIN osd.1: osd.1 is as Holdfast set it again",
	}
	for _, tt := range []struct {
		before, after *View
		want          []string
	}{{well, changed, said}, {changed, changed, nil}, {changed, well, over}} {
		told := Told{}
		m := memory{view: tt.before, flaps: flaps{}}
		told.Apply(told.changes(&m))
		for who, before := range map[string]*View{"the same leader": m.view, "the next leader": told.view(tt.after.Cluster)} {
			var got []string
			for _, e := range Diff(before, tt.after, metav1.Now().Time) {
				if e.Code == ChangedOutside || e.Code == AsSetAgain {
					got = append(got, string(e.Code)+" "+e.Object+": "+e.Message)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", who, diff)
			}
		}
	}
	var conditions []metav1.Condition
	for _, tt := range []struct {
		view   *View
		status metav1.ConditionStatus
	}{{well, ""}, {changed, metav1.ConditionFalse}, {well, metav1.ConditionTrue}} {
		for _, c := range outside.Conditions(conditions, tt.view.Status.Status.ChangedOutside) {
			meta.SetStatusCondition(&conditions, c)
		}
		got := metav1.ConditionStatus("")
		if c := meta.FindStatusCondition(conditions, api.ClusterInSync); c != nil {
			got = c.Status
		}
		if got != tt.status {
			t.Errorf("InSync is %q, want %q", got, tt.status)
		}
	}
	silent := &Plan{}
	if s := Aggregate(changed, silent, time.Now()); len(s.ChangedOutside) != 2 {
		t.Errorf("while nobody answers: %v", s.ChangedOutside)
	}
}

// A resource and a node that somebody changed say so, until they are as declared again; not while nobody answers.
func TestOutside_ofObjects(t *testing.T) {
	v := viewWithChecks()
	pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p", Generation: 1}}
	pool.Status.ObservedGeneration = 1
	node := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: "n", Generation: 1}}
	node.Status.ObservedGeneration = 1
	v.Resources, v.Nodes = []api.Resource{pool}, []api.StorageNode{node}
	for _, tt := range []struct {
		health  string
		changed bool
		want    metav1.ConditionStatus
	}{{"ok", false, ""}, {"ok", true, "False"}, {"", false, "False"}, {"ok", false, "True"}} {
		p := &Plan{Status: api.StorageStatusStatus{Health: tt.health}}
		if tt.changed {
			p.Decide(api.VerdictDo, api.ReasonChangedOutside, "pool/p", "set back")
			p.Decide(api.VerdictDo, api.ReasonChangedOutside, "node/n", "taken in again")
		}
		putStandings(v, p, time.Now())
		for _, c := range p.Resources {
			v.Resources[0] = c.Resource
		}
		for _, n := range p.Nodes {
			v.Nodes[0].Status = n.Status
		}
		for what, all := range map[string][]metav1.Condition{
			"pool": v.Resources[0].Common().Conditions, "node": v.Nodes[0].Status.Conditions,
		} {
			got := metav1.ConditionStatus("")
			if c := meta.FindStatusCondition(all, api.ClusterInSync); c != nil {
				got = c.Status
			}
			if got != tt.want {
				t.Errorf("%+v: InSync of the %s is %q", tt, what, got)
			}
		}
	}
}
