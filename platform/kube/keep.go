package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// LabelProtected is on each namespace that holds a StorageCluster: the policy holdfast-keep refuses
// to delete it.
const LabelProtected = "holdfast.io/protected"

// parallelWrites is how many writes of one look are under way at once.
const parallelWrites = 16

// world is what one look goes by.
type world struct {
	nodes      []corev1.Node
	namespaces []corev1.Namespace
	hosts      []api.Host
	daemons    []api.Daemon
	actions    []api.Action
	clusters   []api.StorageCluster
	// agents are the pods of agents.
	agents []corev1.Pod
	have   identities
}

func (k *Keeper) read(ctx context.Context) (*world, error) {
	var (
		w     world
		nodes corev1.NodeList
		names corev1.NamespaceList
		hosts api.HostList
		ds    api.DaemonList
		as    api.ActionList
		cs    api.StorageClusterList
		sas   corev1.ServiceAccountList
		roles rbacv1.RoleList
		binds rbacv1.RoleBindingList
		pods  corev1.PodList
	)
	for _, list := range []client.ObjectList{&nodes, &names, &hosts, &ds, &as, &cs, &sas, &roles, &binds, &pods} {
		if err := k.cache.List(ctx, list); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	w.agents = pods.Items
	w.nodes, w.namespaces, w.hosts = nodes.Items, names.Items, hosts.Items
	w.daemons, w.actions, w.clusters = ds.Items, as.Items, cs.Items
	w.have = identities{sas.Items, roles.Items, binds.Items}
	return &w, nil
}

// keep writes what differs. It returns all errors, and does the rest. Bindings come after the Roles
// that they bind: the API lets nobody bind a Role that is not there.
func (k *Keeper) keep(ctx context.Context, w *world) error {
	want := identitiesOf(w.hosts, w.daemons, w.actions, w.clusters)
	first := k.keepHosts(ctx, w)
	first = append(first, keepAll(ctx, k.client, pointers(w.have.accounts), pointers(want.accounts), sameAccount)...)
	first = append(first, keepAll(ctx, k.client, pointers(w.have.roles), pointers(want.roles), sameRole)...)
	first = append(first, k.keepNamespaces(ctx, w)...)
	bindings := keepAll(ctx, k.client, pointers(w.have.bindings), pointers(want.bindings), sameBinding)
	return errors.Join(writeAll(first), writeAll(bindings))
}

// writeAll does writes, some at once.
func writeAll(writes []func() error) error {
	errs := make([]error, len(writes))
	var group errgroup.Group
	group.SetLimit(parallelWrites)
	for i, write := range writes {
		group.Go(func() error {
			errs[i] = write()
			return nil
		})
	}
	_ = group.Wait() // The functions return no error; they leave it in errs.
	return errors.Join(errs...)
}

func (k *Keeper) keepHosts(ctx context.Context, w *world) (writes []func() error) {
	wanted, refused := hostsOf(w.nodes, k.nodes)
	writes = append(writes, k.tellRefused(ctx, w.nodes, refused)...)
	have := map[string]*api.Host{}
	for i := range w.hosts {
		have[w.hosts[i].Name] = &w.hosts[i]
	}
	for _, want := range wanted {
		h := have[want.name]
		delete(have, want.name)
		if c, silent := agentPod(h, want.conditions[0], w.agents); silent {
			want.conditions = append(want.conditions, c)
		}
		labels, said := h == nil || labelsDiffer(h, want), h != nil && !conditionsDiffer(h, want.conditions)
		if labels || !said {
			writes = append(writes, func() error { return k.writeHost(ctx, h, want, labels, !said) })
		}
	}
	for name, h := range have {
		// A Host that no agent of Kubernetes' nodes made, as that of a restored cluster, has no
		// node either.
		if gone := []metav1.Condition{nodeGone()}; conditionsDiffer(h, gone) {
			writes = append(writes, func() error { return k.applyConditions(ctx, name, h, gone) })
		}
	}
	return writes
}

// writeHost creates a Host, or writes what differs.
func (k *Keeper) writeHost(ctx context.Context, have *api.Host, want hostOf, labels, conditions bool) error {
	if labels {
		if err := k.applyHost(ctx, want); err != nil {
			return err
		}
	}
	if conditions {
		return k.applyConditions(ctx, want.name, have, want.conditions)
	}
	return nil
}

// applyHost writes by server-side apply: people have labels of their own on Hosts.
func (k *Keeper) applyHost(ctx context.Context, want hostOf) error {
	return k.apply(ctx, want.name, "labels", map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Host", "metadata": map[string]any{
			"name":   want.name,
			"labels": want.labels,
		},
	})
}

// applyConditions writes the conditions that are the keeper's: one that it does not name any more goes.
func (k *Keeper) applyConditions(ctx context.Context, name string, have *api.Host, want []metav1.Condition) error {
	now := slices.Clone(want)
	for i := range now {
		now[i].LastTransitionTime = metav1.NewTime(time.Now())
		if have == nil {
			continue
		}
		if old := meta.FindStatusCondition(have.Status.Conditions, now[i].Type); old != nil && old.Status == now[i].Status {
			now[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return k.apply(ctx, name, "conditions", map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": "Host", "metadata": map[string]any{"name": name},
		"status": map[string]any{"conditions": now},
	}, "status")
}

func (k *Keeper) apply(ctx context.Context, name, what string, content map[string]any, subresource ...string) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	h, patch := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}, client.RawPatch(types.ApplyPatchType, text)
	if len(subresource) > 0 {
		err = k.client.Status().Patch(ctx, h, patch, client.FieldOwner(nodesManager), client.ForceOwnership)
	} else {
		err = k.client.Patch(ctx, h, patch, client.FieldOwner(nodesManager), client.ForceOwnership)
	}
	if err != nil {
		return fmt.Errorf("while writing the %s of host %s: %w", what, name, err)
	}
	return nil
}

// keepNamespaces marks the namespaces that hold clusters, and no others.
func (k *Keeper) keepNamespaces(ctx context.Context, w *world) (writes []func() error) {
	used := map[string]bool{}
	for i := range w.clusters {
		used[w.clusters[i].Namespace] = true
	}
	for i := range w.namespaces {
		ns := &w.namespaces[i]
		if _, marked := ns.Labels[LabelProtected]; marked == used[ns.Name] {
			continue
		}
		value := ptr.To("")
		if !used[ns.Name] {
			value = nil
		}
		writes = append(writes, func() error {
			labels := map[string]*string{LabelProtected: value}
			text, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
			if err != nil {
				return err
			}
			err = k.client.Patch(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns.Name}},
				client.RawPatch(types.MergePatchType, text))
			if client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("while labelling namespace %s: %w", ns.Name, err)
			}
			return nil
		})
	}
	return writes
}

func sameAccount(_, _ *corev1.ServiceAccount) bool { return true }
func sameRole(a, b *rbacv1.Role) bool              { return equality.Semantic.DeepEqual(a.Rules, b.Rules) }

func sameBinding(a, b *rbacv1.RoleBinding) bool {
	return a.RoleRef == b.RoleRef && equality.Semantic.DeepEqual(a.Subjects, b.Subjects)
}

func pointers[T any](items []T) []*T {
	all := make([]*T, len(items))
	for i := range items {
		all[i] = &items[i]
	}
	return all
}

// keepAll creates, changes and deletes until the objects of a kind are those that are wanted.
func keepAll[O client.Object](ctx context.Context, c client.Client, have, want []O, same func(a,
	b O) bool,
) (writes []func() error) {
	there := map[types.NamespacedName]O{}
	for _, o := range have {
		there[client.ObjectKeyFromObject(o)] = o
	}
	for _, o := range want {
		key := client.ObjectKeyFromObject(o)
		old, found := there[key]
		delete(there, key)
		switch {
		case !found:
			writes = append(writes, func() error { return named("creating", o, create(ctx, c, o)) })
		case !same(old, o):
			writes = append(writes, func() error {
				o.SetResourceVersion(old.GetResourceVersion())
				err := c.Update(ctx, o)
				if apierrors.IsConflict(err) {
					return nil // another version of it is about to come by the watch, and is looked at then
				}
				return named("changing", o, err)
			})
		}
	}
	for _, o := range there {
		writes = append(writes, func() error {
			return named("deleting", o, client.IgnoreNotFound(c.Delete(ctx, o,
				client.Preconditions{UID: ptr.To(o.GetUID())})))
		})
	}
	return writes
}

// create makes an object. One that the keeper has just made, and the watch has not brought yet, is as it should be.
func create[O client.Object](ctx context.Context, c client.Client, o O) error {
	err := c.Create(ctx, o)
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	there := o.DeepCopyObject().(O)
	if gone := c.Get(ctx, client.ObjectKeyFromObject(o), there); gone != nil {
		return errors.Join(err, gone)
	}
	if _, kept := there.GetLabels()[labelKept]; kept {
		return nil
	}
	return fmt.Errorf("%w, and the operator did not make it: delete it", err)
}

func named(doing string, o client.Object, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("while %s %T %s/%s: %w", doing, o, o.GetNamespace(), o.GetName(), err)
}
