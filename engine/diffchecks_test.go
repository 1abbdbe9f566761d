package engine

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func viewWithChecks(checks ...api.HealthCheck) *View {
	return &View{
		Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}},
		Status:  &api.StorageStatus{Status: api.StorageStatusStatus{Status: api.StorageDegraded, Health: "WARN", Checks: checks}},
	}
}

// A health check is told once when it appears, once when it gets worse, and once when it is over; also by a leader who has only read
// what was told before.
func TestDiff_checks(t *testing.T) {
	full := api.HealthCheck{Code: "FULL", Severity: "WARN", Message: "1 disk is full", Next: "add a disk"}
	fuller := full
	fuller.Message = "2 disks are full"
	worse := fuller
	worse.Severity = "ERR"
	crash := api.HealthCheck{Code: "CRASH", Severity: "WARN", Message: "1 crash"}
	for _, tt := range []struct {
		name          string
		before, after []api.HealthCheck
		want          []string
	}{
		{"nothing", nil, nil, nil},
		{"one appears", nil, []api.HealthCheck{full}, []string{"HEALTH_CHECK_RAISED check/FULL: WARN: 1 disk is full. Next: add a disk"}},
		{"another number", []api.HealthCheck{full}, []api.HealthCheck{fuller}, nil},
		{"it gets worse", []api.HealthCheck{fuller}, []api.HealthCheck{worse}, []string{"HEALTH_CHECK_RAISED check/FULL: ERR: 2 disks are full. Next: add a disk"}},
		{"one goes, one comes", []api.HealthCheck{full}, []api.HealthCheck{crash}, []string{
			"HEALTH_CHECK_RAISED check/CRASH: WARN: 1 crash", "HEALTH_CHECK_CLEARED check/FULL: FULL is over",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			told := Told{}
			m := memory{view: viewWithChecks(tt.before...), flaps: flaps{}}
			told.Apply(told.changes(&m))
			after := viewWithChecks(tt.after...)
			for who, before := range map[string]*View{"the same leader": m.view, "the next leader": told.view(after.Cluster)} {
				var got []string
				for _, e := range Diff(before, after, metav1.Now().Time) {
					got = append(got, string(e.Code)+" "+e.Object+": "+e.Message)
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", who, diff)
				}
			}
		})
	}
}
