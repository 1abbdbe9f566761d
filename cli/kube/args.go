package kube

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// Named are the objects that arguments name: KIND NAME..., KIND/NAME..., or KIND with a label selector.
// Of an object that is named nothing is read but its name.
func Named(from *Getter, selector string, args ...string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	err := resource.NewBuilder(from).Unstructured().ContinueOnError().
		NamespaceParam(from.Namespace).DefaultNamespace().LabelSelectorParam(selector).
		ResourceTypeOrNameArgs(false, args...).RequireObject(false).Flatten().Do().
		Visit(func(info *resource.Info, err error) error {
			if err != nil {
				return err
			}
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(info.Mapping.GroupVersionKind)
			u.SetName(info.Name)
			if info.Mapping.Scope.Name() == meta.RESTScopeNameNamespace {
				u.SetNamespace(info.Namespace)
			}
			all = append(all, u)
			return nil
		})
	return all, err
}
