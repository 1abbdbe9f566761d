package doctor

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A host whose mode is refused is no fault of the cluster's spec; anything else that is refused is.
func TestCluster_refused(t *testing.T) {
	for object, want := range map[string]Finding{
		"host/h2":    {Level: Warn, Remedy: "run 'holdfast why host/h2' for the next step"},
		"pool/other": {Level: Fail, Remedy: "change its spec: "},
	} {
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "ceph"}}
		c.Status.Conditions = []metav1.Condition{{Type: api.ClusterAccepted, Status: metav1.ConditionFalse, Message: "no"}}
		c.Status.Report = &api.OrchestrationReport{Decisions: []api.Decision{{Object: object, Verdict: api.VerdictRefuse, Message: "no"}}}
		if got := cluster(&Facts{}, c); got == nil || got.Level != want.Level || !strings.HasPrefix(got.Remedy, want.Remedy) {
			t.Errorf("%s: %+v", object, got)
		}
	}
}
