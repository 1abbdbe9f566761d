package spec

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// fields are a part of an object, as unstructured objects have them: int64, string, bool, lists and
// maps.
type fields map[string]any

// put sets what is not empty.
func (f fields) put(name string, value any) {
	switch v := value.(type) {
	case fields:
		value = map[string]any(v)
	case int64:
		if v == 0 {
			return
		}
	}
	if !isEmpty(value) {
		f[name] = value
	}
}

func listOf(texts []string) (list []any) {
	for _, text := range texts {
		list = append(list, text)
	}
	return list
}

func mapOf(texts map[string]string) map[string]any {
	all := make(map[string]any, len(texts))
	for key, text := range texts {
		all[key] = text
	}
	return all
}

// object is an object with a spec, in a namespace.
func (c *call) object(kind, name string, spec fields) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion(api.GroupVersion.String())
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(c.view.Cluster.Namespace)
	if len(spec) > 0 {
		o.Object["spec"] = map[string]any(spec)
	}
	return o
}
