package coreevent_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/coreevent"
)

func event(code, object string) *api.ClusterEvent {
	return &api.ClusterEvent{
		ObjectMeta: metav1.ObjectMeta{Namespace: "files", Name: "ceph-0000000007", UID: "u"},
		Cluster:    "ceph", Sequence: 7, Code: code, Object: object, Message: "it happened",
		Time: metav1.NewMicroTime(time.Unix(1, 2000)),
	}
}

func TestFrom_involvedObject(t *testing.T) {
	const group = "holdfast.io/v1alpha1"
	for object, want := range map[string]corev1.ObjectReference{
		"cluster/ceph":       {Kind: "StorageCluster", APIVersion: group, Namespace: "files", Name: "ceph"},
		"check/OSD_DOWN":     {Kind: "StorageCluster", APIVersion: group, Namespace: "files", Name: "ceph"},
		"leader/h1":          {Kind: "StorageCluster", APIVersion: group, Namespace: "files", Name: "ceph"},
		"node/n1":            {Kind: "StorageNode", APIVersion: group, Namespace: "files", Name: "n1"},
		"host/h1":            {Kind: "Host", APIVersion: group, Name: "h1"},
		"host/h1/wwn-1":      {Kind: "Host", APIVersion: group, Name: "h1", FieldPath: "status.devices{wwn-1}"},
		"daemon/ceph-mon-a":  {Kind: "Daemon", APIVersion: group, Namespace: "files", Name: "ceph-mon-a"},
		"action/a1":          {Kind: "Action", APIVersion: group, Namespace: "files", Name: "a1"},
		"pool/images":        {Kind: "Pool", APIVersion: group, Namespace: "files", Name: "images"},
		"nfsexport/home":     {Kind: "NFSExport", APIVersion: group, Namespace: "files", Name: "home"},
		"objectstoreuser/jo": {Kind: "ObjectStoreUser", APIVersion: group, Namespace: "files", Name: "jo"},
	} {
		if got := coreevent.From(event("X", object)).InvolvedObject; got != want {
			t.Errorf("%s: got %+v, want %+v", object, got, want)
		}
	}
}

// TestFrom_controlPlane: it is no object of the API, so that its events are about its namespace.
func TestFrom_controlPlane(t *testing.T) {
	e := event("QUORUM_DEGRADED", "cluster/control-plane")
	e.Namespace, e.Annotations = "holdfast-system", map[string]string{api.AnnotationTold: "{}"}
	got := coreevent.From(e)
	want := corev1.ObjectReference{Kind: "Namespace", APIVersion: "v1", Name: "holdfast-system"}
	if got.InvolvedObject != want {
		t.Errorf("got %+v", got.InvolvedObject)
	}
	if len(got.Annotations) > 0 {
		t.Errorf("the control plane's own notes are shown: %v", got.Annotations)
	}
}

func TestFrom_whatIsTold(t *testing.T) {
	got := coreevent.From(event("HEALTH_CHECK_RAISED", "check/OSD_DOWN"))
	if got.Type != corev1.EventTypeWarning || got.Reason != "HealthCheckRaised" || got.Message != "it happened" ||
		got.Count != 1 {
		t.Errorf("got %+v", got)
	}
	at := time.Unix(1, 2000)
	if !got.EventTime.Time.Equal(at) || !got.LastTimestamp.Time.Equal(at) || !got.FirstTimestamp.Time.Equal(at) {
		t.Errorf("times: %v, %v, %v", got.EventTime, got.FirstTimestamp, got.LastTimestamp)
	}
	if calm := coreevent.From(event("DAEMON_RUNNING", "daemon/a")); calm.Type != corev1.EventTypeNormal {
		t.Errorf("%s is a %s", calm.Reason, calm.Type)
	}
}
