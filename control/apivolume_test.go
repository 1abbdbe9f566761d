package control_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestAPI_quarterMaster: the example of QuarterMaster's document applies unchanged but for the API group, and a zone that is
// missing is 1.
func TestAPI_quarterMaster(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	for name, zone := range map[string]string{"storage-node1": "zone: 1", "storage-node2": "cluster: cluster1"} {
		node := object(t, ns, `
kind: StorageNode
metadata:
  name: `+name+`
spec:
  type: glusterfs
  nodeSelector:
    'kubernetes.io/hostname': storage-node1
  storageNetwork:
    ips:
      - 10.10.10.100
  devices:
    - /dev/vdb
    - /dev/vdc
    - /dev/vdd
  directories:
    - /srv/bricks
  glusterfs:
    `+zone+`
`)
		if err := strict.Create(t.Context(), node); err != nil {
			t.Fatal(err)
		}
		var got api.StorageNode
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), &got); err != nil {
			t.Fatal(err)
		}
		if want := map[string]string{"storage-node2": "cluster1"}[name]; got.ClusterName() != want {
			t.Errorf("%s belongs to %q, want %q", name, got.ClusterName(), want)
		}
		if got.Spec.GlusterFS.Zone != 1 {
			t.Errorf("%s lies in zone %d, want 1", name, got.Spec.GlusterFS.Zone)
		}
	}
}

const validVolume = `
kind: Volume
metadata: {name: vol1}
spec:
  cluster: a
  size: 100Gi
  durability: {replicate: {}}
  options: {performance.cache-size: 64MB, features.shard: "on"}
  auth: {allow: [10.0.0.*, "fd00::1"]}
`

func TestAPI_volume(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	volume := object(t, ns, validVolume)
	if err := client.WithFieldValidation(c, metav1.FieldValidationStrict).Create(t.Context(), volume); err != nil {
		t.Fatal(err)
	}
	var got api.Volume
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(volume), &got); err != nil {
		t.Fatal(err)
	}
	want := &api.VolumeDurability{Replicate: &api.VolumeReplicate{Count: 3}}
	if diff := cmp.Diff(want, got.Spec.Durability); diff != "" || got.Spec.DeletionPolicy != api.DeletionRetain {
		t.Errorf("deletionPolicy %s, durability (-want +got):\n%s", got.Spec.DeletionPolicy, diff)
	}
	for field, value := range map[string]string{"cluster": "b", "durability": ""} {
		changed := volume.DeepCopy()
		if value == "" {
			unstructured.RemoveNestedField(changed.Object, "spec", field)
		} else if err := unstructured.SetNestedField(changed.Object, value, "spec", field); err != nil {
			t.Fatal(err)
		}
		if err := c.Update(t.Context(), changed); err == nil || !strings.Contains(err.Error(), field+" cannot be changed") {
			t.Errorf("changing %s: got %v, want a refusal", field, err)
		}
	}
	larger := volume.DeepCopy()
	if err := unstructured.SetNestedField(larger.Object, "200Gi", "spec", "size"); err != nil {
		t.Fatal(err)
	}
	if err := c.Update(t.Context(), larger); err != nil {
		t.Errorf("a larger size: %v", err)
	}
}

// TestAPI_volumeMessages: what is wrong with one volume or node by itself is refused, in words that say what to do.
func TestAPI_volumeMessages(t *testing.T) {
	s, _ := sharedServer(t)
	c := client.WithFieldValidation(newClient(t, s.Config()), metav1.FieldValidationStrict)
	ns := newNamespace(t, c)
	volume := func(spec string) string {
		return "kind: Volume\nmetadata: {name: v}\nspec: {cluster: a, " + spec + "}"
	}
	node := func(spec string) string {
		return "kind: StorageNode\nmetadata: {name: n1}\nspec: {nodeSelector: {a: b}, " + spec + "}"
	}
	for _, test := range []struct{ name, object, want string }{
		{"no size", volume("durability: {distribute: {}}"), "spec.size: Required"},
		{"size nothing", volume("size: 0"), "size must be more than nothing"},
		{"size of a part of a byte", volume("size: 1500m"), "size must be whole bytes: m stands for thousandths; write 500Mi"},
		{"size below nothing", volume("size: -1Gi"), "size must be more than nothing"},
		{"size that is none", volume("size: large"), "spec.size"},
		{"two durabilities", volume("size: 1Gi, durability: {arbiter: {}, distribute: {}}"), "exactly one of replicate, arbiter"},
		{"no durability in it", volume("size: 1Gi, durability: {}"), "exactly one of replicate, arbiter"},
		{"two copies", volume("size: 1Gi, durability: {replicate: {count: 2}}"), "take count 3, or 'arbiter: {}'"},
		{"too much redundancy", volume("size: 1Gi, durability: {disperse: {data: 2, redundancy: 2}}"), "redundancy must be less than data"},
		{"option in capitals", volume(`size: 1Gi, options: {Cache Size: "1"}`), "such as performance.cache-size"},
		{"auth as an option", volume(`size: 1Gi, options: {auth.allow: "*"}`), "spec.auth.allow of the Volume"},
		{"option of two lines", volume(`size: 1Gi, options: {a.b: "1\n2"}`), "should match"},
		{"address with a space", volume(`size: 1Gi, auth: {allow: ["a b"]}`), "should match"},
		{"name with a dot", "kind: Volume\nmetadata: {name: v.1}\nspec: {cluster: a, size: 1Gi}", "clients mount it by this name"},
		{"node of two clusters", node("type: glusterfs, cluster: a, glusterfs: {cluster: b}"), "a node belongs to one cluster"},
		{"zone by name", node("type: glusterfs, glusterfs: {zone: east}"), "spec.glusterfs.zone"},
		{"zone below one", node("type: glusterfs, glusterfs: {zone: -1}"), "greater than or equal to 1"},
		{"directory that is no whole path", node("type: glusterfs, directories: [srv]"), "should match"},
		{"directory that climbs", node("type: glusterfs, directories: [/srv/../etc]"), "should match"},
		{"directory twice", node("type: glusterfs, directories: [/srv, /srv]"), "Duplicate value"},
		{"directory for Ceph", node("type: ceph, directories: [/srv]"), "Ceph stores data on whole devices"},
		{"part of another type in a node", node("type: ceph, glusterfs: {}"), "spec.glusterfs is for nodes of type glusterfs"},
		{"part of another type", "kind: StorageCluster\nmetadata: {name: b}\nspec: {type: glusterfs, ceph: {}}", "spec.ceph is for clusters of type ceph"},
		{"part of another type, the other way", "kind: StorageCluster\nmetadata: {name: b}\nspec: {type: ceph, ceph: {}, glusterfs: {}}", "spec.glusterfs is for clusters of type glusterfs"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.Create(t.Context(), object(t, ns, test.object))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}
