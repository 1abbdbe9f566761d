package engine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A resource that was served is told to be Offline when it has been out of reach for a while, and at once when the storage system lost it.
func TestPatience(t *testing.T) {
	start := time.Unix(1000, 0)
	type look struct {
		after time.Duration
		seen  api.ResourceState
		want  api.ResourceState
	}
	online, degraded, offline, creating := api.ResourceOnline, api.ResourceDegraded, api.ResourceOffline, api.ResourceCreating
	for name, tt := range map[string]struct {
		was   api.ResourceState
		lost  bool
		looks []look
	}{
		"an OSD restarts":            {online, false, []look{{0, offline, online}, {2 * time.Second, degraded, degraded}, {time.Minute, online, online}}},
		"it stays out of reach":      {online, false, []look{{0, offline, online}, {9 * time.Second, offline, online}, {10 * time.Second, offline, offline}, {time.Minute, offline, offline}}},
		"it was degraded":            {degraded, false, []look{{0, offline, degraded}, {11 * time.Second, offline, offline}}},
		"it comes back between":      {online, false, []look{{0, offline, online}, {5 * time.Second, online, online}, {11 * time.Second, offline, online}, {22 * time.Second, offline, offline}}},
		"it is lost":                 {online, true, []look{{0, offline, offline}}},
		"it was never served":        {creating, false, []look{{0, offline, offline}}},
		"it was Offline before that": {offline, false, []look{{0, offline, offline}}},
	} {
		pool := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Status: api.PoolStatus{ResourceStatus: api.ResourceStatus{State: tt.was, Message: "before"}}}
		o := outages{}
		for _, l := range tt.looks {
			next := pool.DeepCopy()
			if next.Status.State, next.Status.Message = l.seen, "now"; tt.lost {
				next.Status.Conditions = []metav1.Condition{{Type: api.ResourcePresent, Status: metav1.ConditionFalse}}
			}
			p := &Plan{Recheck: time.Hour, Resources: []ResourceChange{{Resource: next}}}
			o.patient(&View{Resources: []api.Resource{pool}}, p, start.Add(l.after))
			kept := l.seen != l.want
			if next.Status.State != l.want || (next.Status.Message == "before") != kept || (p.Recheck <= offlinePatience) != kept {
				t.Errorf("%s, after %s: %s (%s), recheck %s", name, l.after, next.Status.State, next.Status.Message, p.Recheck)
			}
			pool = next
			pool.Status.Message = "before"
		}
	}
	changed := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	changed.Status.State, changed.Status.ObservedGeneration = online, 1
	next := changed.DeepCopy()
	next.Status.State, next.Status.ObservedGeneration = offline, 2
	p := &Plan{Resources: []ResourceChange{{Resource: next}}}
	if (outages{}).patient(&View{Resources: []api.Resource{changed}}, p, start); next.Status.State != offline {
		t.Errorf("with another spec it is told to be %s", next.Status.State)
	}
	o := outages{"pool/gone": start}
	if o.patient(&View{}, &Plan{}, start); len(o) > 0 {
		t.Errorf("a resource that is gone is remembered: %v", o)
	}
}
