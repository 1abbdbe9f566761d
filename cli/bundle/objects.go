package bundle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/redact"
	"github.com/holdfast-storage/holdfast/platform/kube"
)

// found is what the API has that other parts ask more about.
type found struct {
	clusters, ceph []types.NamespacedName
	// ill are the names of objects that are not ready, as 'why' takes them, by namespace.
	ill []illObject
}

type illObject struct{ namespace, name string }

// page is how many objects are read at a time.
const page = 500

// core are the kinds beside Holdfast's own, each of the namespaces where Holdfast has objects.
var core = []schema.GroupVersionKind{
	corev1.SchemeGroupVersion.WithKind("Event"),
	{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"},
}

// objects reads all objects. Secrets come first: nothing is written before their values are known.
func (c *collection) objects(ctx context.Context) {
	reader, err := c.Connect()
	if err != nil {
		c.lacks("objects", err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, objectsTimeout)
	defer cancel()
	kinds := holdfastKinds(reader)
	lists := map[string][]unstructured.Unstructured{}
	namespaces := map[string]bool{}
	for _, kind := range kinds {
		items, err := list(ctx, reader, kind, "")
		if err != nil {
			c.lacks("objects/"+kind.Kind+".yaml", err)
			if unanswered(ctx, err) {
				return
			}
			continue
		}
		lists[kind.Kind] = items
		for _, u := range items {
			namespaces[u.GetNamespace()] = true
		}
	}
	c.secrets(ctx, reader, namespaces)
	for _, kind := range kinds {
		if items := lists[kind.Kind]; len(items) > 0 {
			c.object(ctx, kind.Kind, items)
		}
		c.look(kind.Kind, lists[kind.Kind])
	}
	c.coreObjects(ctx, reader, namespaces)
}

// holdfastKinds are the kinds of Holdfast that the client knows.
func holdfastKinds(c client.Client) (kinds []schema.GroupVersionKind) {
	for kind := range c.Scheme().KnownTypes(api.GroupVersion) {
		if strings.HasSuffix(kind, "List") && kind != "TermList" {
			kinds = append(kinds, api.GroupVersion.WithKind(strings.TrimSuffix(kind, "List")))
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.Kind, b.Kind) })
	return kinds
}

// unanswered says whether nobody answered, so that there is no use in asking for the next kind.
func unanswered(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.As(err, new(net.Error))
}

// list reads the objects of a kind, of all namespaces where none is named.
func list(ctx context.Context, c client.Client, kind schema.GroupVersionKind,
	namespace string,
) ([]unstructured.Unstructured, error) {
	var all []unstructured.Unstructured
	next := ""
	for {
		l := &unstructured.UnstructuredList{}
		l.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		short, cancel := context.WithTimeout(ctx, partTimeout)
		err := c.List(short, l, client.InNamespace(namespace), client.Limit(page), client.Continue(next))
		cancel()
		if err != nil {
			return all, fmt.Errorf("while reading objects of kind %s: %w", kind.Kind, err)
		}
		all = append(all, l.Items...)
		if next = l.GetContinue(); next == "" {
			return all, nil
		}
	}
}

// secrets reads the Secrets of the namespaces, learns their values, and writes their names.
func (c *collection) secrets(ctx context.Context, reader client.Client, namespaces map[string]bool) {
	var values []string
	var items []unstructured.Unstructured
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if namespace == "" { // of Hosts
			continue
		}
		var l corev1.SecretList
		if err := reader.List(ctx, &l, client.InNamespace(namespace)); err != nil {
			c.lacks("the names of the Secrets in namespace "+namespace, err)
			continue
		}
		for _, s := range l.Items {
			values = append(values, redact.Values(s.Data)...)
			u := unstructured.Unstructured{}
			u.SetUnstructuredContent(map[string]any{"type": string(s.Type), "data": namesOf(s.Data)})
			u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
			u.SetNamespace(s.Namespace)
			u.SetName(s.Name)
			u.SetAnnotations(s.Annotations)
			u.SetLabels(s.Labels)
			items = append(items, u)
		}
	}
	c.archive.redactor = redact.New(values)
	if len(items) > 0 {
		c.object(ctx, "Secret", items)
	}
}

func namesOf(data map[string][]byte) map[string]any {
	names := map[string]any{}
	for name := range data {
		names[name] = redact.Mark
	}
	return names
}

// coreObjects writes the events and Leases of the namespaces.
func (c *collection) coreObjects(ctx context.Context, reader client.Client, namespaces map[string]bool) {
	if is, err := kube.IsHome(ctx, reader); err == nil && is {
		c.lacks("pods and nodes", errors.New("use 'kubectl cluster-info dump': Kubernetes has them"))
	}
	for _, kind := range core {
		var items []unstructured.Unstructured
		for namespace := range namespaces {
			if namespace == "" {
				continue
			}
			some, err := list(ctx, reader, kind, namespace)
			if err != nil {
				c.lacks("objects/"+kind.Kind+".yaml", err)
				break
			}
			items = append(items, some...)
		}
		if len(items) > 0 {
			c.object(ctx, kind.Kind, items)
		}
	}
}

// object writes the objects of a kind.
func (c *collection) object(ctx context.Context, kind string, items []unstructured.Unstructured) {
	_ = c.part(ctx, "objects/"+kind+".yaml", partTimeout, func(context.Context) (string, error) {
		var b strings.Builder
		for i := range items {
			redact.Object(&items[i])
			text, err := yaml.Marshal(items[i].Object)
			if err != nil {
				return b.String(), err
			}
			b.WriteString("---\n")
			b.Write(text)
		}
		return b.String(), nil
	})
}

// look remembers the clusters, and what is not ready.
func (c *collection) look(kind string, items []unstructured.Unstructured) {
	for _, u := range items {
		key := types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()}
		if kind == "StorageCluster" {
			c.found.clusters = append(c.found.clusters, key)
			if of, _, _ := unstructured.NestedString(u.Object, "spec", "type"); of == string(api.StorageCeph) {
				c.found.ceph = append(c.found.ceph, key)
			}
			continue
		}
		if !isReady(u) && key.Namespace != "" {
			name := strings.TrimPrefix(strings.ToLower(kind), "storage") + "/" + key.Name
			c.found.ill = append(c.found.ill, illObject{key.Namespace, name})
		}
	}
}

// isReady is false for an object with a condition Ready that is not True.
func isReady(u unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok && m["type"] == "Ready" {
			return m["status"] == "True"
		}
	}
	return true
}
