package engine_test

import (
	"maps"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// TestDaemonFor_labels: a Daemon has what tools group it by, from the start, and what its driver
// wants.
func TestDaemonFor_labels(t *testing.T) {
	cluster := &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "files", Name: "c", UID: "u"},
		Spec:       api.StorageClusterSpec{Type: api.StorageGlusterFS},
	}
	wanted := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: "c-glusterd-h1", Labels: map[string]string{"driver": "own"}}}
	wanted.Spec.Type = "glusterd"
	d := engine.DaemonFor(cluster, engine.DaemonChange{Daemon: *wanted})
	want := map[string]string{
		"driver": "own", api.LabelCluster: "c", "app.kubernetes.io/name": "glusterfs", "app.kubernetes.io/instance": "c",
		"app.kubernetes.io/component": "glusterd", "app.kubernetes.io/managed-by": "holdfast",
	}
	if !maps.Equal(d.Labels, want) {
		t.Errorf("labels %v, want %v", d.Labels, want)
	}
	for key, value := range d.Labels {
		if errs := append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...); len(errs) > 0 {
			t.Errorf("label %s=%s: %v", key, value, errs)
		}
	}
	if len(d.OwnerReferences) != 1 {
		t.Fatalf("owners %+v", d.OwnerReferences)
	}
	owner := d.OwnerReferences[0]
	if owner.UID != "u" || owner.Kind != "StorageCluster" || owner.BlockOwnerDeletion != nil || !*owner.Controller {
		t.Errorf("owner %+v", owner)
	}
}
