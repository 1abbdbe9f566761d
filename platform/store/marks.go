package store

import (
	"context"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

const (
	// markEvery is how often the leader looks for objects that lack a label or owner of what
	// Holdfast makes.
	markEvery = time.Minute
	// marksAtOnce bounds how many of them it writes in one look, of which there is one each second
	// then.
	marksAtOnce = 64
)

// componentCommand is the component of Actions that ask for a command on a daemon.
const componentCommand = "command"

// commandLabels are those of an Action that asks for a command on a daemon, which has the labels of
// its cluster.
func commandLabels(d *api.Daemon) map[string]string {
	cluster := &api.StorageCluster{Spec: api.StorageClusterSpec{Type: api.StorageType(d.Labels[engine.LabelName])}}
	cluster.Name = d.Spec.Cluster
	return engine.LabelsFor(cluster, componentCommand)
}

// mark gives objects of clusters the labels and the owner that they lack: those that an earlier
// version made, or that somebody took them from. Metadata is no spec: no generation changes, and no
// agent prepares anything. It returns when to look again.
func (s *Store) mark(ctx context.Context) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, judgeTimeout)
	defer cancel()
	var clusters api.StorageClusterList
	if err := s.cache.List(ctx, &clusters); err != nil {
		s.log.Warn("listing clusters", "error", err)
		return markEvery
	}
	written := 0
	for i := range clusters.Items {
		for _, o := range s.owned(ctx, &clusters.Items[i]) {
			next := marked(&clusters.Items[i], o)
			if next == nil {
				continue
			}
			if written++; written > marksAtOnce {
				return look
			}
			if err := client.IgnoreNotFound(s.patch(ctx, o, next)); err != nil && s.life.Err() == nil {
				s.log.Debug("cannot label an object yet; retrying", "kind", kindOf(o), "name", o.GetName(), "error",
					err)
			}
		}
	}
	return markEvery
}

// owned are the objects of a cluster that Holdfast made, as the cache has them. Nobody may write to
// them.
func (s *Store) owned(ctx context.Context, cluster *api.StorageCluster) []client.Object {
	if cluster.DeletionTimestamp != nil {
		return nil
	}
	var all []client.Object
	name := client.ObjectKeyFromObject(cluster)
	for _, d := range s.daemonsBy(byCluster, name.String()) {
		all = append(all, d)
	}
	for _, secret := range listBy[*corev1.Secret](s.secrets, byCluster, name.String()) {
		all = append(all, secret)
	}
	var status api.StorageStatus
	if s.cache.Get(ctx, name, &status) == nil {
		all = append(all, &status)
	}
	return all
}

// marked is an object of a cluster with what it lacks; nil where it lacks nothing.
func marked(cluster *api.StorageCluster, o client.Object) client.Object {
	component, owner := engine.ComponentSecret, []metav1.OwnerReference(nil)
	switch x := o.(type) {
	case *api.Daemon:
		component, owner = x.Spec.Type, engine.Owner(cluster)
	case *api.StorageStatus:
		component = engine.ComponentStatus
	}
	labels := maps.Clone(o.GetLabels())
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, engine.LabelsFor(cluster, component))
	owners := slices.DeleteFunc(slices.Clone(o.GetOwnerReferences()), func(r metav1.OwnerReference) bool {
		return len(owner) > 0 && r.Kind == owner[0].Kind && r.Name == owner[0].Name
	})
	owners = append(owners, owner...)
	if maps.Equal(labels, o.GetLabels()) && slices.EqualFunc(owners, o.GetOwnerReferences(), sameOwner) {
		return nil
	}
	next := o.DeepCopyObject().(client.Object)
	next.SetLabels(labels)
	next.SetOwnerReferences(owners)
	return next
}

func sameOwner(a, b metav1.OwnerReference) bool {
	return a.UID == b.UID && a.APIVersion == b.APIVersion && a.Kind == b.Kind && a.Name == b.Name
}
