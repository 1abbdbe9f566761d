package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// planToMake starts, stops and removes daemons.
func planToMake() *Plan {
	change := func(name string, isNew bool, want api.WantedState) DaemonChange {
		c := DaemonChange{New: isNew}
		c.Daemon.Name, c.Daemon.Spec.State = name, want
		return c
	}
	return &Plan{
		Secrets: []SecretWant{{Name: "key"}}, Commands: []Command{{Verb: "osd new"}}, Remove: []Removal{{Name: "gone"}},
		Daemons: []DaemonChange{
			change("new", true, api.WantRunning), change("changed", false, api.WantRunning), change("stopped", false, api.WantStopped),
		},
		Decisions: []api.Decision{{Object: "daemon/new", Verdict: api.VerdictDo}},
		Status:    api.StorageStatusStatus{Status: api.StorageOffline, Message: "no mon", Reasons: []string{"no mon"}},
		Done:      true,
	}
}

// TestForbidden_plan: while the platform forbids daemons, none is started, and the cluster says why; what stops and goes does so.
func TestForbidden_plan(t *testing.T) {
	v := &View{Cluster: &api.StorageCluster{}, Daemons: make([]api.Daemon, 1), Forbidden: &Prohibition{"R", "label it"}}
	v.Cluster.Name = "c"
	p := planToMake()
	awaitPlatform(v, p)
	if len(p.Daemons) != 1 || p.Daemons[0].Daemon.Name != "stopped" || len(p.Remove) != 1 || len(p.Secrets) != 1 || len(p.Commands) != 1 || p.Done {
		t.Errorf("plan %+v", p)
	}
	if d := p.Decisions[0]; d.Object != "cluster/c" || d.Verdict != api.VerdictWait || d.Reason != api.ReasonDaemonsForbidden || d.Message != "label it" {
		t.Errorf("decision %+v", d)
	}
	if p.Status.Message != "label it" || len(p.Status.Reasons) != 2 {
		t.Errorf("status %+v", p.Status)
	}
	if !api.ReasonDaemonsForbidden.NeedsPerson() {
		t.Error("it ends by itself")
	}
	v.Daemons, p = nil, planToMake()
	p.Daemons, p.Remove = p.Daemons[:2], nil
	awaitPlatform(v, p)
	if !p.Empty() || len(p.Decisions) != 1 {
		t.Errorf("of a cluster without daemons something is made: %+v", p)
	}
	v.Cluster.DeletionTimestamp, p = &metav1.Time{}, planToMake()
	awaitPlatform(v, p)
	if len(p.Daemons) != 3 || len(p.Decisions) != 1 {
		t.Errorf("the deletion of a cluster is held back: %+v", p)
	}
}

// TestForbidden_condition: the condition is there for as long as daemons are forbidden.
func TestForbidden_condition(t *testing.T) {
	s := &api.StorageClusterStatus{}
	putAllowed(s, &Prohibition{"R", "label it"}, time.Now())
	if c := meta.FindStatusCondition(s.Conditions, api.ClusterDaemonsAllowed); c == nil || c.Status != metav1.ConditionFalse || c.Message != "label it" {
		t.Errorf("condition %+v", c)
	}
	putAllowed(s, nil, time.Now())
	if len(s.Conditions) != 0 {
		t.Errorf("conditions %+v", s.Conditions)
	}
}
