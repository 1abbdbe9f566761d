package apiserver

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	extensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/metadata"
	clientrest "k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// namespaceRules keeps objects and namespaces together: an object is created in a namespace that exists, and a namespace is
// deleted when it is empty. Kubernetes would delete what it holds; here that would be the declaration of a storage cluster.
type namespaceRules struct {
	core        *core
	definitions listers.CustomResourceDefinitionLister
	loopback    *clientrest.Config
}

var _ admission.ValidationInterface = &namespaceRules{}

// Handles says which operations the rules are about.
func (r *namespaceRules) Handles(operation admission.Operation) bool {
	return operation == admission.Create || operation == admission.Delete
}

// Validate refuses what the rules do not allow.
func (r *namespaceRules) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	isNamespace := a.GetResource().GroupResource() == namespaceKind.gr
	switch {
	case isNamespace && a.GetOperation() == admission.Delete:
		return r.mayDelete(ctx, a.GetName())
	case !isNamespace && a.GetOperation() == admission.Create && a.GetNamespace() != "":
		return r.exists(ctx, a.GetNamespace())
	}
	return nil
}

// exists looks into the cache first, and into etcd if the cache does not know the namespace: it may be new.
func (r *namespaceRules) exists(ctx context.Context, name string) error {
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone)
	_, err := r.core.namespaces.Get(ctx, name, &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		_, err = r.core.namespaces.Get(ctx, name, &metav1.GetOptions{})
	}
	if apierrors.IsNotFound(err) {
		missing := apierrors.NewNotFound(namespaceKind.gr, name)
		missing.ErrStatus.Message = fmt.Sprintf("the namespace %q does not exist: create it with 'kubectl create namespace %s'", name, name)
		return missing
	}
	return err
}

func (r *namespaceRules) mayDelete(ctx context.Context, name string) error {
	if name == metav1.NamespaceDefault || name == api.SystemNamespace {
		return refuse(name, "it belongs to Holdfast itself and stays")
	}
	held, err := r.held(ctx, name)
	if err != nil {
		return apierrors.NewInternalError(fmt.Errorf("while looking what the namespace %s holds: %w", name, err))
	}
	if len(held) > 0 {
		return refuse(name, "it holds "+strings.Join(held, ", ")+": delete these first")
	}
	return nil
}

func refuse(namespace, why string) error {
	err := apierrors.NewConflict(namespaceKind.gr, namespace, nil)
	err.ErrStatus.Code = http.StatusConflict
	err.ErrStatus.Message = fmt.Sprintf("the namespace %q cannot be deleted: %s", namespace, why)
	return err
}

// held lists what a namespace holds, such as "2 storagenodes". Leases do not count.
func (r *namespaceRules) held(ctx context.Context, name string) ([]string, error) {
	var held []string
	for _, store := range []*store{r.core.secrets, r.core.configMaps} {
		list, err := store.List(request.WithNamespace(ctx, name), &internalversion.ListOptions{})
		if err != nil {
			return nil, err
		}
		held = count(held, meta.LenList(list), store.kind.gr.Resource)
	}
	client, err := metadata.NewForConfig(r.loopback)
	if err != nil {
		return nil, err
	}
	definitions, err := r.definitions.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	for _, d := range definitions {
		if d.Spec.Scope != extensionsv1.NamespaceScoped {
			continue
		}
		gvr := schema.GroupVersionResource{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Resource: d.Spec.Names.Plural}
		list, err := client.Resource(gvr).Namespace(name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return nil, err
		}
		held = count(held, len(list.Items), gvr.Resource)
	}
	slices.Sort(held)
	return held, nil
}

func count(held []string, n int, resource string) []string {
	if n == 0 {
		return held
	}
	return append(held, fmt.Sprintf("%d %s", n, resource))
}

// sweep removes what a deleted namespace still holds that does not count: else it would be there again with a new
// namespace of the same name.
func (c *core) sweep(obj runtime.Object, options *metav1.DeleteOptions) {
	namespace, ok := obj.(*corev1.Namespace)
	if !ok || len(options.DryRun) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(request.WithNamespace(context.Background(), namespace.Name), time.Minute)
	defer cancel()
	_, err := c.leases.DeleteCollection(
		ctx, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{}, &internalversion.ListOptions{})
	if err != nil {
		slog.Warn("could not remove everything of a deleted namespace", "namespace", namespace.Name, "error", err)
	}
}
