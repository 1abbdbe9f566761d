package doctor

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A host whose mode is refused is no fault of the cluster's spec, and a resource that is refused is no fault of the cluster at all.
func TestCluster_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		accepted, ready metav1.ConditionStatus
		refused         []string
		want            *Finding
	}{
		"a host":              {"True", "False", []string{"host/h2"}, &Finding{Level: Warn, Remedy: "run 'holdfast why host/h2' for the next step"}},
		"a host and a pool":   {"True", "False", []string{"pool/p", "host/h2"}, &Finding{Level: Warn, Remedy: "run 'holdfast why host/h2' for the next step"}},
		"a host and a node":   {"True", "False", []string{"host/h2", "node/n"}, &Finding{Level: Warn, Remedy: "holdfast status"}},
		"a pool":              {"True", "True", []string{"pool/p"}, nil},
		"the cluster's spec":  {"False", "False", []string{"mons"}, &Finding{Level: Fail, Remedy: "change its spec: "}},
		"a pool and the spec": {"False", "False", []string{"pool/p", "mons"}, &Finding{Level: Fail, Remedy: "change its spec: "}},
	} {
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "ceph"}}
		c.Status.Conditions = []metav1.Condition{
			{Type: api.ClusterAccepted, Status: tt.accepted, Message: "no"}, {Type: api.ClusterReady, Status: tt.ready, Message: "no"},
		}
		c.Status.Report = &api.OrchestrationReport{}
		for _, object := range tt.refused {
			c.Status.Report.Decisions = append(c.Status.Report.Decisions, api.Decision{Object: object, Verdict: api.VerdictRefuse, Message: "no"})
		}
		got := cluster(&Facts{}, c)
		if (got == nil) != (tt.want == nil) || got != nil && (got.Level != tt.want.Level || !strings.HasPrefix(got.Remedy, tt.want.Remedy)) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What cannot be used, or not as it is declared, is found; what is on its way is not.
func TestResources(t *testing.T) {
	for name, tt := range map[string]struct {
		state   api.ResourceState
		stalled metav1.ConditionStatus
		want    Level
	}{
		"it is there":                 {api.ResourceOnline, "", ""},
		"it is being created":         {api.ResourceCreating, "", ""},
		"it waits":                    {api.ResourcePending, "False", ""},
		"it is refused":               {api.ResourcePending, "True", Fail},
		"it serves, and not as said":  {api.ResourceOnline, "True", Fail},
		"it is out of reach":          {api.ResourceOffline, "", Fail},
		"it serves, and is not whole": {api.ResourceDegraded, "", Warn},
	} {
		p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}}
		if p.Status.State, p.Status.Message = tt.state, "so it is"; tt.stalled != "" {
			p.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: tt.stalled, Message: "nine copies"}}
		}
		found := checkResources(&Facts{Resources: []api.Resource{p}})
		if tt.want == "" && found[0].Level != OK || tt.want != "" && (found[0].Level != tt.want || found[0].Remedy != "run 'holdfast why pool/p -n default' for the next step") {
			t.Errorf("%s: %+v", name, found)
		}
	}
}
