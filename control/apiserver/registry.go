package apiserver

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/names"
)

// kind describes one of the core kinds to the generic registry.
type kind struct {
	gr         schema.GroupResource
	singular   string
	shortNames []string
	namespaced bool
	new        func() runtime.Object
	newList    func() runtime.Object
	fields     func(runtime.Object) fields.Set
	validate   func(obj, old runtime.Object) field.ErrorList
	prepare    func(obj runtime.Object)
	columns    []column
}

var namespaceKind = kind{
	gr: corev1.Resource("namespaces"), singular: "namespace", shortNames: []string{"ns"},
	new:     func() runtime.Object { return &corev1.Namespace{} },
	newList: func() runtime.Object { return &corev1.NamespaceList{} },
	// Clients select by this label; Kubernetes sets it as well.
	prepare: func(obj runtime.Object) {
		ns := obj.(*corev1.Namespace)
		if ns.Labels == nil {
			ns.Labels = map[string]string{}
		}
		ns.Labels[corev1.LabelMetadataName] = ns.Name
		ns.Status.Phase = corev1.NamespaceActive
	},
	columns: namespaceColumns,
}

var secretKind = kind{
	gr: corev1.Resource("secrets"), singular: "secret", namespaced: true,
	new:     func() runtime.Object { return &corev1.Secret{} },
	newList: func() runtime.Object { return &corev1.SecretList{} },
	fields:  func(obj runtime.Object) fields.Set { return secretFields(obj.(*corev1.Secret)) },
	prepare: func(obj runtime.Object) {
		secret := obj.(*corev1.Secret)
		for key, value := range secret.StringData {
			if secret.Data == nil {
				secret.Data = map[string][]byte{}
			}
			secret.Data[key] = []byte(value)
		}
		secret.StringData = nil
	},
	validate: validateSecret,
	columns:  secretColumns,
}

var configMapKind = kind{
	gr: corev1.Resource("configmaps"), singular: "configmap", shortNames: []string{"cm"}, namespaced: true,
	new:     func() runtime.Object { return &corev1.ConfigMap{} },
	newList: func() runtime.Object { return &corev1.ConfigMapList{} },
	columns: configMapColumns,
}

var leaseKind = kind{
	gr: coordinationv1.Resource("leases"), singular: "lease", namespaced: true,
	new:     func() runtime.Object { return &coordinationv1.Lease{} },
	newList: func() runtime.Object { return &coordinationv1.LeaseList{} },
	columns: leaseColumns,
}

func validateSecret(obj, old runtime.Object) field.ErrorList {
	if old == nil {
		return nil
	}
	secret, before := obj.(*corev1.Secret), old.(*corev1.Secret)
	var errs field.ErrorList
	if secret.Type != before.Type {
		errs = append(errs, field.Invalid(field.NewPath("type"), secret.Type, "cannot be changed"))
	}
	if before.Immutable != nil && *before.Immutable && !apiequality.Semantic.DeepEqual(secret.Data, before.Data) {
		errs = append(errs, field.Forbidden(field.NewPath("data"), "the secret is immutable"))
	}
	return errs
}

// store is the generic registry of one kind.
type store struct {
	*genericregistry.Store
	kind *kind
}

var (
	_ rest.StandardStorage    = &store{}
	_ rest.ShortNamesProvider = &store{}
)

func newStore(k *kind, options generic.RESTOptionsGetter) (*store, error) {
	strategy := strategy{ObjectTyper: coreScheme, NameGenerator: names.SimpleNameGenerator, kind: k}
	s := &genericregistry.Store{
		NewFunc: k.new, NewListFunc: k.newList,
		DefaultQualifiedResource:  k.gr,
		SingularQualifiedResource: schema.GroupResource{Group: k.gr.Group, Resource: k.singular},
		CreateStrategy:            strategy, UpdateStrategy: strategy, DeleteStrategy: strategy,
		TableConvertor: newTable(k.gr, k.columns),
		PredicateFunc: func(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
			return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: k.attributes}
		},
	}
	err := s.CompleteWithOptions(&generic.StoreOptions{RESTOptions: options, AttrFunc: k.attributes})
	if err != nil {
		return nil, fmt.Errorf("while setting up %s: %w", k.gr, err)
	}
	return &store{s, k}, nil
}

// ShortNames are what kubectl lets one type instead of the resource's name.
func (s *store) ShortNames() []string { return s.kind.shortNames }

func (k *kind) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil, nil, err
	}
	set := fields.Set{}
	if k.fields != nil {
		set = k.fields(obj)
	}
	set["metadata.name"] = accessor.GetName()
	if k.namespaced {
		set["metadata.namespace"] = accessor.GetNamespace()
	}
	return accessor.GetLabels(), set, nil
}

// strategy is what the core kinds need beyond the generic registry: almost nothing.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
	kind *kind
}

var (
	_ rest.RESTCreateStrategy = strategy{}
	_ rest.RESTUpdateStrategy = strategy{}
	_ rest.RESTDeleteStrategy = strategy{}
)

func (s strategy) NamespaceScoped() bool          { return s.kind.namespaced }
func (s strategy) AllowCreateOnUpdate() bool      { return false }
func (s strategy) AllowUnconditionalUpdate() bool { return true }
func (s strategy) Canonicalize(runtime.Object)    {}

func (s strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	if s.kind.prepare != nil {
		s.kind.prepare(obj)
	}
}

func (s strategy) PrepareForUpdate(_ context.Context, obj, _ runtime.Object) {
	if s.kind.prepare != nil {
		s.kind.prepare(obj)
	}
}

func (s strategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return s.validate(obj, nil)
}

func (s strategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	return s.validate(obj, old)
}

func (s strategy) validate(obj, old runtime.Object) field.ErrorList {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	name := validation.NameIsDNSSubdomain
	if s.kind.gr == namespaceKind.gr {
		name = validation.NameIsDNSLabel
	}
	errs := validation.ValidateObjectMetaAccessor(accessor, s.kind.namespaced, name, field.NewPath("metadata"))
	if s.kind.validate != nil {
		errs = append(errs, s.kind.validate(obj, old)...)
	}
	return errs
}

func (s strategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (s strategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }
