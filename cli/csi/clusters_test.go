package csi

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/controller"
)

// A cluster is OFFLINE by its StorageStatus alone, in the words of that.
func TestOffline(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for name, state := range map[string]api.StorageState{
		"off": api.StorageOffline, "degraded": api.StorageDegraded, "on": api.StorageOnline, "new": "",
	} {
		s := &api.StorageStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}}
		s.Status.Status, s.Status.Message = state, "osd.1 is down"
		b.WithObjects(s)
	}
	all := statuses{b.Build()}
	for name, want := range map[string]string{"off": "osd.1 is down", "degraded": "", "on": "", "new": ""} {
		if said, err := all.Offline(t.Context(), "storage", name); err != nil || said != want {
			t.Errorf("%s: %q, %v; want %q", name, said, err, want)
		}
	}
	if _, err := all.Offline(t.Context(), "storage", "gone"); !errors.Is(err, controller.ErrNoCluster) {
		t.Errorf("a cluster that is gone: %v", err)
	}
}
