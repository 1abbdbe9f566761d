package engine

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The conditions of a cluster tell of no fault of its resources; Accepted tells of its own spec alone.
func TestConditions_scope(t *testing.T) {
	refuse, wait, do := api.VerdictRefuse, api.VerdictWait, api.VerdictDo
	for _, tt := range []struct {
		object          string
		verdict         api.Verdict
		accepted, ready string
	}{
		{"pool/p", refuse, "True", "Ready"},
		{"pool/p", wait, "True", "Ready"},
		{"nfsexport/e", refuse, "True", "Ready"},
		{"client/c", wait, "True", "Ready"},
		{"volume/v", refuse, "True", "Ready"},
		{"pool/p", do, "True", "Ready"},
		{"node/n", refuse, "True", "Refused"},
		{"host/h", refuse, "True", "Refused"},
		{"drivegroup/g", refuse, "True", "Refused"},
		{"node/n", wait, "True", "Waiting"},
		{"mons", refuse, "False", "Refused"},
		{"config", refuse, "False", "Refused"},
		{"pool/", refuse, "False", "Refused"},
		{"pools", wait, "True", "Waiting"},
		{"osd.1", wait, "True", "Waiting"},
	} {
		p := &Plan{Status: api.StorageStatusStatus{Status: api.StorageOnline}}
		p.Decide(tt.verdict, api.ReasonInvalidSpec, tt.object, "no")
		conditions := (&run{view: &View{Cluster: &api.StorageCluster{}}, plan: p}).conditions(nil)
		accepted, ready := meta.FindStatusCondition(conditions, api.ClusterAccepted), meta.FindStatusCondition(conditions, api.ClusterReady)
		if string(accepted.Status) != tt.accepted || ready.Reason != tt.ready || (ready.Status == metav1.ConditionTrue) != (tt.ready == "Ready") {
			t.Errorf("%s %s: Accepted=%s, Ready=%s %s; want %s and %s", tt.verdict, tt.object, accepted.Status, ready.Status, ready.Reason, tt.accepted, tt.ready)
		}
		if d := len(p.Open()); d > 0 != (tt.verdict != do && !OfResource(tt.object)) {
			t.Errorf("%s %s: %d sentences are open", tt.verdict, tt.object, d)
		}
	}
}

// A change that concerns the cluster keeps it from being ready, and one of a resource alone does not.
func TestConditions_changes(t *testing.T) {
	for name, tt := range map[string]struct {
		plan Plan
		want bool
	}{
		"nothing":                  {Plan{}, true},
		"a pool is made":           {Plan{Commands: []Command{{Verb: "osd pool create", Object: "pool/p", Line: "pool/p"}}}, true},
		"a client is made":         {Plan{Commands: []Command{{Verb: "auth import", Object: "client.c", Line: "client/c"}}}, true},
		"the configuration is set": {Plan{Commands: []Command{{Verb: "config set", Object: "config"}}}, false},
		"a daemon is placed":       {Plan{Daemons: []DaemonChange{{New: true}}}, false},
		"a daemon is removed":      {Plan{Remove: []Removal{{Name: "d"}}}, false},
	} {
		tt.plan.Status.Status = api.StorageOnline
		c := (&run{view: &View{Cluster: &api.StorageCluster{}}, plan: &tt.plan}).readyCondition()
		if ready := c.Status == metav1.ConditionTrue; ready != tt.want || !ready && c.Message == "" {
			t.Errorf("%s: %+v", name, c)
		}
	}
}

// A plan is done when each resource can be used, too.
func TestSettle(t *testing.T) {
	for name, tt := range map[string]struct {
		state   api.ResourceState
		deleted bool
		verdict api.Verdict
		want    bool
	}{
		"all is there":    {api.ResourceOnline, false, "", true},
		"a pool is made":  {api.ResourceCreating, false, "", false},
		"a pool is gone":  {api.ResourceDeleting, true, "", true},
		"a pool waits":    {api.ResourceOnline, false, api.VerdictWait, false},
		"a pool is wrong": {api.ResourceOnline, false, api.VerdictRefuse, false},
		"one is skipped":  {api.ResourceOnline, false, api.VerdictSkip, true},
	} {
		pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
		if pool.Status.State = tt.state; tt.deleted {
			pool.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		}
		p := &Plan{Status: api.StorageStatusStatus{Status: api.StorageOnline}}
		if tt.verdict != "" {
			p.Decide(tt.verdict, api.ReasonNotReady, "pool/p", "so it is")
		}
		if p.Settle(&View{Resources: []api.Resource{pool}}); p.Done != tt.want {
			t.Errorf("%s: done %v", name, p.Done)
		}
	}
}
