package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestOptionsAsText(t *testing.T) {
	options := func(values map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"kind": "StorageCluster",
			"spec": map[string]any{"ceph": map[string]any{"config": map[string]any{"osd": values}}},
		}}
	}
	u := options(map[string]any{
		"osd_max_scrubs": int64(2), "osd_recovery_sleep": 0.1, "bluestore_x": true, "osd_y": "3",
		"osd_z": []any{"no option"},
	})
	OptionsAsText(u)
	want := options(map[string]any{
		"osd_max_scrubs": "2", "osd_recovery_sleep": "0.1", "bluestore_x": "true", "osd_y": "3",
		"osd_z": []any{"no option"},
	})
	if diff := cmp.Diff(want.Object, u.Object); diff != "" {
		t.Error(diff)
	}
	for _, other := range []map[string]any{
		{"kind": "Pool", "spec": options(map[string]any{"x": int64(1)}).Object["spec"]},
		{"kind": "StorageCluster", "spec": map[string]any{"ceph": map[string]any{"config": "none"}}},
		{"kind": "StorageCluster"},
	} {
		was := (&unstructured.Unstructured{Object: other}).DeepCopy()
		now := was.DeepCopy()
		OptionsAsText(now)
		if diff := cmp.Diff(was.Object, now.Object); diff != "" {
			t.Error(diff)
		}
	}
}

// TestOptionsAsText_gluster: the options of GlusterFS are texts as well.
func TestOptionsAsText_gluster(t *testing.T) {
	volume := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Volume", "spec": map[string]any{"options": map[string]any{"network.ping-timeout": int64(20)}},
	}}
	cluster := &unstructured.Unstructured{Object: map[string]any{"kind": "StorageCluster", "spec": map[string]any{
		"glusterfs": map[string]any{"options": map[string]any{"nfs.disable": true}},
	}}}
	OptionsAsText(volume)
	OptionsAsText(cluster)
	if got, _, err := unstructured.NestedString(volume.Object, "spec", "options", "network.ping-timeout"); got != "20" {
		t.Error(got, err)
	}
	got, _, err := unstructured.NestedString(cluster.Object, "spec", "glusterfs", "options", "nfs.disable")
	if got != "true" {
		t.Error(got, err)
	}
}
