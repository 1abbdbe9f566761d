package cli

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestDelete_kept: what the server lets nobody delete is refused with exit code 3, and the plan for it, too.
func TestDelete_kept(t *testing.T) {
	t.Parallel()
	p := newHome(t, "kept")
	meta := metav1.ObjectMeta{Namespace: p.namespace, Name: "c-mon-a", Labels: map[string]string{api.LabelCluster: "c"}}
	p.must(t, exitOK, "apiVersion: holdfast.io/v1alpha1\nkind: StorageCluster\nmetadata: {name: c}\nspec: {type: ceph, mode: Active, ceph: {}}\n",
		[]string{"apply", "-f", "-"})
	d := &api.Daemon{ObjectMeta: meta, Spec: api.DaemonSpec{
		Cluster: "c", Type: "ceph-mon", ID: "a", Host: "kept-1", State: api.WantRunning, Command: []string{"true"},
	}}
	if err := p.Create(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	meta.Name, meta.Annotations = "c-key-client.admin", map[string]string{"holdfast.io/ceph-entity": "client.admin"}
	if err := p.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"key": []byte("k")}}); err != nil {
		t.Fatal(err)
	}
	for object, says := range map[[2]string]string{
		{"secret", "c-key-client.admin"}: "there is no other copy of them",
		{"daemon", "c-mon-a"}:            "'holdfast daemon restart c-mon-a'",
		{"host", "kept-1"}:               "'holdfast host remove kept-1'",
	} {
		p.must(t, exitRefused, "", []string{"delete", object[0], object[1]}, says)
		p.must(t, exitRefused, "", []string{"plan", "--delete", object[0] + "/" + object[1]}, says)
		p.must(t, exitOK, "", []string{"get", object[0], object[1]})
	}
}
