package apiserver

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/storage"
)

// TestSharedAttributes: versions of an object have one set of labels, and another one once a label is another.
func TestSharedAttributes(t *testing.T) {
	s := &sharedAttributes{attributes: storage.DefaultNamespaceScopedAttr}
	sets := func(name, cluster string) (any, any) {
		t.Helper()
		o := &unstructured.Unstructured{}
		o.SetNamespace("default")
		o.SetName(name)
		o.SetLabels(map[string]string{"cluster": cluster})
		l, f, err := s.of(o)
		if err != nil || l["cluster"] != cluster || f["metadata.name"] != name || f["metadata.namespace"] != "default" {
			t.Fatalf("%v, %v: %v", l, f, err)
		}
		return l, f
	}
	labels, fields := sets("a", "one")
	sets("b", "one")
	again, fieldsAgain := sets("a", "one")
	if !same(labels, again) || !same(fields, fieldsAgain) {
		t.Error("two versions have each their own")
	}
	other, fieldsAgain := sets("a", "two")
	if same(labels, other) || !same(fields, fieldsAgain) {
		t.Error("a version with another label has not its own, or it has its own fields")
	}
}
