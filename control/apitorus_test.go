package control_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestAPI_torus: a cluster and a node of Torus apply, with Torus's own defaults.
func TestAPI_torus(t *testing.T) {
	s, _ := sharedServer(t)
	c := client.WithFieldValidation(newClient(t, s.Config()), metav1.FieldValidationStrict)
	ns := newNamespace(t, c)
	cluster := object(t, ns, "kind: StorageCluster\nmetadata: {name: t}\nspec: {type: torus, torus: {endpoints: ['http://10.0.0.1:2379', 'http://[::1]:2379'], blockSize: 256Ki}}")
	node := object(t, ns, "kind: StorageNode\nmetadata: {name: n1}\nspec: {type: torus, nodeSelector: {a: b}, directories: [/srv/torus], torus: {size: 50%}}")
	for _, o := range []client.Object{cluster, node} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var gotCluster api.StorageCluster
	var gotNode api.StorageNode
	for o, got := range map[client.Object]client.Object{cluster: &gotCluster, node: &gotNode} {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), got); err != nil {
			t.Fatal(err)
		}
	}
	if gotCluster.Spec.Torus.Replication != 2 || gotNode.Spec.Torus.Port != 40000 {
		t.Errorf("replication %d, port %d: want 2 and 40000", gotCluster.Spec.Torus.Replication, gotNode.Spec.Torus.Port)
	}
	gotCluster.Spec.Torus.Endpoints = nil
	gotNode.Spec.Torus.Size = "20Gi"
	for o, want := range map[client.Object]string{&gotCluster: "endpoints cannot be changed", &gotNode: "size cannot be changed"} {
		if err := c.Update(t.Context(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want a refusal with %q", err, want)
		}
	}
}

// TestAPI_torusMessages: what is wrong is refused, in words that say what to do.
func TestAPI_torusMessages(t *testing.T) {
	s, _ := sharedServer(t)
	c := client.WithFieldValidation(newClient(t, s.Config()), metav1.FieldValidationStrict)
	ns := newNamespace(t, c)
	cluster := func(spec string) string {
		return "kind: StorageCluster\nmetadata: {name: b}\nspec: {type: torus, " + spec + "}"
	}
	node := func(spec string) string {
		return "kind: StorageNode\nmetadata: {name: n1}\nspec: {nodeSelector: {a: b}, " + spec + "}"
	}
	for _, test := range []struct{ name, object, want string }{
		{"no part of its own", "kind: StorageCluster\nmetadata: {name: b}\nspec: {type: torus}", "at least 'torus: {}'"},
		{"endpoint without http", cluster("torus: {endpoints: ['10.0.0.1:2379']}"), "http://ADDRESS:PORT"},
		{"endpoint with https", cluster("torus: {endpoints: ['https://10.0.0.1:2379']}"), "gives it no certificates"},
		{"no copy", cluster("torus: {replication: -1}"), "greater than or equal to 1"},
		{"tiny blocks", cluster("torus: {blockSize: 1Ki}"), "between 4Ki and 64Mi"},
		{"part of another type", "kind: StorageCluster\nmetadata: {name: b}\nspec: {type: ceph, ceph: {}, torus: {}}", "spec.torus is for clusters of type torus"},
		{"node without a size", node("type: torus"), "must say how large"},
		{"node with a device", node("type: torus, devices: [/dev/sdb], torus: {size: 1Gi}"), "in a directory, not on devices"},
		{"two directories", node("type: torus, directories: [/a, /b], torus: {size: 1Gi}"), "name one directory"},
		{"more than all", node("type: torus, torus: {size: 120%}"), "as 20Gi or as 50%"},
		{"size without a unit", node("type: torus, torus: {size: '20'}"), "as 20Gi or as 50%"},
		{"part of another type in a node", node("type: ceph, torus: {size: 1Gi}"), "spec.torus is for nodes of type torus"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := c.Create(t.Context(), object(t, ns, test.object))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got error %v, want one with %q", err, test.want)
			}
		})
	}
}
