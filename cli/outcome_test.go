package cli

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestOutcome_driveGroup: a DriveGroup that was applied is waited for like any other resource.
func TestOutcome_driveGroup(t *testing.T) {
	for want, standing := range map[outcome]kstatus.Standing{
		ready:    {Ready: true, Reason: api.ReasonReady},
		underWay: {Reason: api.ReasonNotReady, Message: "0 of 1 OSD up"},
		refused:  {Stalled: true, Reason: api.ReasonInvalidSpec, Message: "it selects no disk"},
	} {
		g := &api.DriveGroup{ObjectMeta: metav1.ObjectMeta{Name: "g", Generation: 1}}
		g.Status.ObservedGeneration = 1
		kstatus.Set(&g.Status.Conditions, 1, standing, time.Now())
		s := snapshot{
			Cluster: &api.StorageCluster{}, Resources: []api.Resource{g},
			applied: &applied{resources: map[string]bool{"drivegroup/g": true}},
		}
		if got := s.outcome(); got != want {
			t.Errorf("%+v: outcome %d, want %d", standing, got, want)
		}
	}
}
