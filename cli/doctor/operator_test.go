package doctor

import (
	"slices"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// TestCheckOperator: in Kubernetes a Lease that nobody renews is a failure, and quorum, tokens and
// backups are not asked for.
func TestCheckOperator(t *testing.T) {
	lease := func(holder string, ago time.Duration) *coordinationv1.Lease {
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &holder, LeaseDurationSeconds: ptr.To(int32(15)),
			RenewTime: ptr.To(metav1.NewMicroTime(now.Add(-ago))),
		}}
	}
	leases := schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}
	for _, test := range []struct {
		name  string
		lease *coordinationv1.Lease
		err   error
		want  Level
	}{
		{"leads", lease("a", time.Second), nil, OK},
		{"clocks differ", lease("a", time.Minute), nil, OK},
		{"does not renew it", lease("a", 2*time.Minute), nil, Fail},
		{"released", lease("", time.Second), nil, Fail},
		{"never led", nil, apierrors.NewNotFound(leases, "leader"), Fail},
		{"may not be read", nil, apierrors.NewForbidden(leases, "leader", nil), Skipped},
		{"not known", nil, apierrors.NewServiceUnavailable("no"), Fail},
	} {
		f := healthy()
		f.Kubernetes, f.Lease, f.LeaseErr, f.Quorum, f.Servers = true, test.lease, test.err, nil, nil
		for _, found := range Examine(f) {
			switch {
			case slices.Contains([]string{"quorum", "database", "tokens", "snapshots"}, found.Check):
				t.Errorf("%s: %+v", test.name, found)
			case found.Check == "operator" && (found.Level != test.want || found.Level == Fail && found.Remedy == ""):
				t.Errorf("%s: %+v, want %s", test.name, found, test.want)
			}
		}
	}
}
