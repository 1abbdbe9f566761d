package cli

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph"
)

// What is Holdfast's by now, or is about to be, is not forgotten: its processes would end with their Daemons.
func TestUndoWords(t *testing.T) {
	adopted := map[string]string{ceph.AnnotationAdopted: "1-2"}
	handOver := func(state api.ActionState) []api.Action {
		return []api.Action{{ObjectMeta: metav1.ObjectMeta{Name: "hand"}, Spec: api.ActionSpec{Kind: ceph.HandOverKind, Cluster: "c"}, Status: api.ActionStatus{State: state}}}
	}
	for _, tt := range []struct {
		annotations map[string]string
		state       api.WantedState
		actions     []api.Action
		refused     string
	}{
		{adopted, api.WantWatched, nil, ""},
		{adopted, api.WantWatched, handOver(api.ActionDone), ""},
		{adopted, api.WantWatched, handOver(api.ActionRunning), "holdfast action cancel hand"},
		{adopted, api.WantWatched, handOver(api.ActionPendingSchedule), "holdfast action cancel hand"},
		{adopted, api.WantRunning, nil, "daemon/c-mon-a was handed over"},
		{nil, api.WantWatched, nil, "was not adopted"},
	} {
		cluster := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Annotations: tt.annotations}}
		daemons := []api.Daemon{{ObjectMeta: metav1.ObjectMeta{Name: "c-mon-a"}, Spec: api.DaemonSpec{State: tt.state}}}
		words, err := undoWords(cluster, daemons, tt.actions)
		if (err == nil) != (tt.refused == "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%+v: %q, %v", tt, words, err)
		}
	}
}
