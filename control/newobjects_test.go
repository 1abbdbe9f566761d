package control_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/crd"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

// least is what the spec of an object of each kind needs at least.
var least = map[string]string{
	"StorageCluster":  "spec: {type: ceph, ceph: {}}",
	"StorageNode":     "spec: {type: ceph, nodeSelector: {a: b}}",
	"Host":            "spec: {}",
	"Daemon":          "spec: {cluster: a, type: t, id: a, host: nowhere, state: Running, command: ['true']}",
	"Pool":            "spec: {cluster: a, replicated: {size: 3}}",
	"Client":          "spec: {cluster: a, caps: {mon: allow r}}",
	"Filesystem":      "spec: {cluster: a}",
	"ObjectStore":     "spec: {cluster: a}",
	"ObjectStoreUser": "spec: {cluster: a, store: s}",
	"NFSExport":       "spec: {cluster: a, volume: v}",
	"RBDMirror":       "spec: {cluster: a}",
	"DriveGroup":      "spec: {cluster: a, placement: {pattern: x}, dataDevices: [{rotational: true}]}",
	"Volume":          "spec: {cluster: a, size: 1Gi}",
	"Action":          "spec: {kind: cluster.test, target: t}",
	"StorageStatus":   "{}",
	"Plan":            "spec: {manifest: e30=}",
	"ClusterEvent":    "{cluster: a, sequence: 1, code: X, object: cluster/a, message: m, time: '2026-01-02T03:04:05.000000Z'}",
}

// TestAPI_newObjects: an object that nobody has looked at yet is not taken for one that is as it is declared.
func TestAPI_newObjects(t *testing.T) {
	s, _ := sharedServer(t)
	c := newClient(t, s.Config())
	ns := newNamespace(t, c)
	all, err := crd.All()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range all {
		kind := d.Spec.Names.Kind
		o := object(t, ns, least[kind])
		o.SetKind(kind)
		o.SetName("new-and-unseen")
		if kind != "Host" {
			o.SetNamespace(ns)
		} else {
			o.SetNamespace("")
		}
		if err := c.Create(t.Context(), o); err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		got := &unstructured.Unstructured{}
		got.SetGroupVersionKind(o.GroupVersionKind())
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
		kstatus.Check(t, kstatus.New, got)
	}
}
