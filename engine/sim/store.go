package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

var _ engine.Store = (*Memory)(nil)

// lock is one cluster's lock. holder is empty while the store's own engine has it or nobody has.
type lock struct {
	holder string
	lost   []context.CancelCauseFunc
}

// Clusters lists all clusters.
func (m *Memory) Clusters(context.Context) ([]api.StorageCluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m, func(*api.StorageCluster) bool { return true }), nil
}

// Cluster reads one cluster.
func (m *Memory) Cluster(_ context.Context, cluster types.NamespacedName) (*api.StorageCluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cluster(cluster)
}

func (m *Memory) cluster(cluster types.NamespacedName) (*api.StorageCluster, error) {
	o, ok := m.objects[id{"StorageCluster", cluster.Namespace, cluster.Name}]
	if !ok {
		return nil, fmt.Errorf("cluster %s: %w", cluster, engine.ErrNotFound)
	}
	return clone(o.(*api.StorageCluster)), nil
}

// View reads everything of one cluster but View.System.
func (m *Memory) View(_ context.Context, cluster types.NamespacedName) (*engine.View, error) {
	if err := m.failure("View", cluster.Name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	c, err := m.cluster(cluster)
	if err != nil {
		return nil, err
	}
	clusters := list(m, func(*api.StorageCluster) bool { return true })
	nodes := list(m, func(*api.StorageNode) bool { return true })
	daemons := list(m, func(*api.Daemon) bool { return true })
	v := &engine.View{Cluster: c, Hosts: list(m, func(*api.Host) bool { return true })}
	v.Resources = engine.ResourcesOf(resourcesOf(m), cluster)
	v.Actions = engine.ActionsOf(list(m, func(*api.Action) bool { return true }), cluster)
	for i := range nodes {
		if nodes[i].Namespace == c.Namespace && engine.ClusterOf(&nodes[i], clusters) == c.Name {
			v.Nodes = append(v.Nodes, nodes[i])
		}
	}
	var others []*api.Daemon
	for i := range daemons {
		if daemons[i].Namespace == c.Namespace && daemons[i].Spec.Cluster == c.Name {
			v.Daemons = append(v.Daemons, daemons[i])
		} else {
			others = append(others, &daemons[i])
		}
	}
	v.AddNeighbours(nodes, func(map[string]bool) []*api.Daemon { return others }, clusters)
	if o, ok := m.objects[id{"StorageStatus", c.Namespace, c.Name}]; ok {
		v.Status = clone(o.(*api.StorageStatus))
	}
	v.Secrets = m.secretInfos(cluster)
	return v, nil
}

func (m *Memory) secretInfos(cluster types.NamespacedName) []engine.SecretInfo {
	var infos []engine.SecretInfo
	for name, s := range m.secrets {
		if name.Namespace == cluster.Namespace && s.cluster == cluster.Name {
			infos = append(infos, engine.SecretInfo{
				Name: name.Name, Keys: slices.Sorted(maps.Keys(s.data)), Annotations: maps.Clone(s.annotations),
			})
		}
	}
	slices.SortFunc(infos, func(a, b engine.SecretInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// Lock takes the cluster's lock, unless Hold gave it to another holder.
func (m *Memory) Lock(ctx context.Context, cluster types.NamespacedName) (context.Context, func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lock(cluster)
	if l.holder != "" {
		return nil, nil, fmt.Errorf("cluster %s is held by %s: %w", cluster, l.holder, engine.ErrLocked)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	l.lost = append(l.lost, cancel)
	return ctx, func() { cancel(nil) }, nil
}

func (m *Memory) lock(cluster types.NamespacedName) *lock {
	l := m.locks[cluster]
	if l == nil {
		l = &lock{}
		m.locks[cluster] = l
	}
	return l
}

// Hold gives a cluster's lock to another holder; whoever has it loses it. An empty holder lets it go.
func (m *Memory) Hold(cluster types.NamespacedName, holder string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lock(cluster)
	l.holder = holder
	for _, cancel := range l.lost {
		cancel(fmt.Errorf("cluster %s was taken by %s: %w", cluster, holder, engine.ErrLocked))
	}
	l.lost = nil
}

// write does one write of the engine and counts it, if it changed something.
func (m *Memory) write(ctx context.Context, operation, object string, do func() ([]engine.Change, error)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := m.failure(operation, object); err != nil {
		return err
	}
	return m.change(func() ([]engine.Change, error) {
		before := m.version
		changes, err := do()
		if m.version != before || len(changes) > 0 {
			m.writes++
		}
		return changes, err
	})
}

func (m *Memory) failure(operation, object string) error {
	if m.Fail == nil {
		return nil
	}
	return m.Fail(operation, object)
}

// MakeSecret creates the Secret if there is none of this name.
func (m *Memory) MakeSecret(ctx context.Context, cluster *api.StorageCluster, want engine.SecretWant, data func() (map[string][]byte, error)) error {
	return m.write(ctx, "MakeSecret", want.Name, func() ([]engine.Change, error) {
		name := types.NamespacedName{Namespace: cluster.Namespace, Name: want.Name}
		if have := m.secrets[name]; have != nil && have.cluster != cluster.Name {
			return nil, fmt.Errorf("secret %s belongs to cluster %s", want.Name, have.cluster)
		} else if have != nil {
			return nil, nil
		}
		values, err := data()
		if err != nil {
			return nil, err
		}
		m.version++
		m.secrets[name] = &secret{cluster: cluster.Name, annotations: maps.Clone(want.Annotations), data: values}
		return nil, nil
	})
}

// RemoveSecret deletes a Secret of the cluster.
func (m *Memory) RemoveSecret(ctx context.Context, cluster types.NamespacedName, name string) error {
	return m.write(ctx, "RemoveSecret", name, func() ([]engine.Change, error) {
		at := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
		if have := m.secrets[at]; have != nil && have.cluster == cluster.Name {
			m.version++
			delete(m.secrets, at)
		}
		return nil, nil
	})
}

type secretReader struct {
	m       *Memory
	cluster types.NamespacedName
}

// Secrets reads the Secrets of a cluster.
func (m *Memory) Secrets(cluster types.NamespacedName) engine.SecretReader {
	return secretReader{m, cluster}
}

func (r secretReader) Secret(_ context.Context, name string) (map[string][]byte, error) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	s := r.m.secrets[types.NamespacedName{Namespace: r.cluster.Namespace, Name: name}]
	if s == nil || s.cluster != r.cluster.Name {
		return nil, fmt.Errorf("secret %s of cluster %s: %w", name, r.cluster, engine.ErrNotFound)
	}
	return maps.Clone(s.data), nil
}

// PutDaemon creates a new daemon or updates the spec and the memory of one that is there.
func (m *Memory) PutDaemon(ctx context.Context, cluster *api.StorageCluster, change engine.DaemonChange) error {
	return m.write(ctx, "PutDaemon", change.Daemon.Name, func() ([]engine.Change, error) {
		want := engine.DaemonFor(cluster, change)
		was, ok := m.objects[idOf(want)].(*api.Daemon)
		switch {
		case !ok && !change.New:
			return nil, fmt.Errorf("daemon %s is gone: %w", want.Name, engine.ErrStale)
		case !ok:
			return m.create(want)
		}
		next := clone(was)
		if _, changed := leadermemory.Write(next, want); !changed {
			return nil, nil
		}
		return m.update(next)
	})
}

// AnnotateDaemon writes a daemon's annotations, if change makes them differ.
func (m *Memory) AnnotateDaemon(
	ctx context.Context, daemon types.NamespacedName, change func(annotations map[string]string),
) error {
	return m.write(ctx, "AnnotateDaemon", daemon.Name, func() ([]engine.Change, error) {
		have, ok := m.objects[id{"Daemon", daemon.Namespace, daemon.Name}].(*api.Daemon)
		if !ok {
			return nil, fmt.Errorf("daemon %s: %w", daemon, engine.ErrNotFound)
		}
		next := clone(have)
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		if change(next.Annotations); maps.Equal(next.Annotations, have.Annotations) {
			return nil, nil
		}
		return m.update(next)
	})
}

// RemoveDaemon deletes a daemon.
func (m *Memory) RemoveDaemon(ctx context.Context, namespace, name string) error {
	return m.write(ctx, "RemoveDaemon", name, func() ([]engine.Change, error) {
		return ignoreNotFound(m.remove(id{"Daemon", namespace, name}))
	})
}

// Ask has the agent of a daemon carry out a command.
func (m *Memory) Ask(ctx context.Context, daemon *api.Daemon, cmd engine.Command) (string, error) {
	if err := m.failure("Ask", cmd.Verb+" "+cmd.Object); err != nil {
		return "", err
	}
	now := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: daemon.Namespace, Name: daemon.Name}}
	if err := m.Get(ctx, now); err != nil {
		return "", err
	}
	if m.Carry == nil {
		return "", fmt.Errorf("no agent of host %s carries out commands", now.Spec.Host)
	}
	return m.Carry(ctx, now, cmd)
}

// PutNodeStatus writes a StorageNode's status, if it differs.
func (m *Memory) PutNodeStatus(ctx context.Context, namespace string, status engine.NodeStatus) error {
	return m.write(ctx, "PutNodeStatus", status.Name, func() ([]engine.Change, error) {
		o, ok := m.objects[id{"StorageNode", namespace, status.Name}]
		if !ok {
			return nil, nil
		}
		next := clone(o.(*api.StorageNode))
		if status.Stale(next) {
			return nil, fmt.Errorf("node %s: %w", next.Name, engine.ErrStale)
		}
		next.Status = status.Status
		return m.updateStatus(next)
	})
}

// PutService writes what the storage system says of a daemon, if it differs.
func (m *Memory) PutService(ctx context.Context, namespace string, change serving.Change) error {
	return m.write(ctx, "PutService", change.Name, func() ([]engine.Change, error) {
		o, ok := m.objects[id{"Daemon", namespace, change.Name}]
		if !ok {
			return nil, nil
		}
		next := clone(o.(*api.Daemon))
		next.Status.Service = change.Service.DeepCopy()
		return m.updateStatus(next)
	})
}

// Resources lists all resources of all kinds.
func (m *Memory) Resources(context.Context) ([]api.Resource, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return resourcesOf(m), nil
}

func resourcesOf(m *Memory) []api.Resource {
	var all []api.Resource
	for _, o := range m.objects {
		if r, ok := o.(api.Resource); ok {
			all = append(all, engine.CopyResource(r))
		}
	}
	engine.SortResources(all)
	return all
}

// PutResource adopts a resource and writes its status, or lets it go.
func (m *Memory) PutResource(ctx context.Context, change engine.ResourceChange) error {
	return m.write(ctx, "PutResource", change.Object(), func() ([]engine.Change, error) {
		o, ok := m.objects[idOf(change.Resource)]
		if !ok && change.Gone {
			return nil, nil
		}
		if !ok {
			return nil, fmt.Errorf("%s: %w", change.Object(), engine.ErrStale)
		}
		next := engine.CopyResource(o.(api.Resource))
		switch {
		case change.Gone && !change.Same(next):
			return nil, nil
		case change.Gone && engine.ReleaseResource(next):
			return m.update(next)
		case change.Gone:
			return nil, nil
		case change.Stale(next):
			return nil, fmt.Errorf("%s: %w", change.Object(), engine.ErrStale)
		}
		if !change.Unadopted && engine.AdoptResource(next) {
			if _, err := m.update(next); err != nil {
				return nil, err
			}
		}
		next.TakeStatus(change.Resource)
		return m.updateStatus(next)
	})
}

// PutStatus creates the cluster's StorageStatus or writes its status, if it differs.
func (m *Memory) PutStatus(ctx context.Context, cluster *api.StorageCluster, status api.StorageStatusStatus) error {
	return m.write(ctx, "PutStatus", cluster.Name, func() ([]engine.Change, error) {
		want := engine.StatusFor(cluster)
		if _, ok := m.objects[idOf(want)]; !ok {
			if _, err := m.create(clone(want)); err != nil {
				return nil, err
			}
		}
		want.Status = status
		return m.updateStatus(want)
	})
}

// PutClusterStatus writes the StorageCluster's own status, if it differs.
func (m *Memory) PutClusterStatus(ctx context.Context, cluster types.NamespacedName, change func(*api.StorageClusterStatus)) error {
	return m.write(ctx, "PutClusterStatus", cluster.Name, func() ([]engine.Change, error) {
		c, err := m.cluster(cluster)
		if err != nil {
			return nil, err
		}
		change(&c.Status)
		return m.updateStatus(c)
	})
}

// Told reads what Emit recorded.
func (m *Memory) Told(_ context.Context, cluster types.NamespacedName) (engine.Told, error) {
	if err := m.failure("Told", cluster.Name); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	told := maps.Clone(m.told[cluster])
	if told == nil {
		told = engine.Told{}
	}
	return told, nil
}

// Emit appends events to the cluster's log, and records what they tell.
func (m *Memory) Emit(ctx context.Context, cluster *api.StorageCluster, events []engine.Event, told map[string]*string) (int, error) {
	if len(events)+len(told) == 0 {
		return 0, nil
	}
	for _, e := range events {
		if err := m.failure("Emit", string(e.Code)); err != nil {
			return 0, err
		}
	}
	err := m.write(ctx, "Emit", cluster.Name, func() ([]engine.Change, error) {
		// The record is one write, and each event another.
		m.version++
		m.writes += len(events)
		return nil, m.append(cluster, events, told)
	})
	if err != nil {
		return 0, err
	}
	m.trim(cluster)
	return len(events), nil
}

func (m *Memory) append(cluster *api.StorageCluster, events []engine.Event, told map[string]*string) error {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	for _, e := range events {
		if _, err := m.create(engine.EventFor(cluster, m.sequence[name]+1, e)); err != nil {
			return err
		}
		m.sequence[name]++
	}
	if m.told[name] == nil {
		m.told[name] = engine.Told{}
	}
	m.told[name].Apply(told)
	return nil
}

func (m *Memory) trim(cluster *api.StorageCluster) {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := list(m, func(e *api.ClusterEvent) bool { return e.Namespace == cluster.Namespace && e.Cluster == cluster.Name })
	for i := range all {
		if len(all)-i > api.MaxClusterEvents || time.Since(all[i].Time.Time) > api.MaxClusterEventAge {
			delete(m.objects, idOf(&all[i]))
		}
	}
}

// Finish lets a deleted cluster go.
func (m *Memory) Finish(ctx context.Context, cluster *api.StorageCluster) error {
	return m.write(ctx, "Finish", cluster.Name, func() ([]engine.Change, error) {
		m.dropBelongings(cluster)
		if err := m.orphanResources(cluster); err != nil {
			return nil, err
		}
		return ignoreNotFound(withoutFinalizer(m, cluster))
	})
}

func (m *Memory) dropBelongings(cluster *api.StorageCluster) {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}
	delete(m.objects, id{"StorageStatus", cluster.Namespace, cluster.Name})
	delete(m.sequence, name)
	delete(m.told, name)
	maps.DeleteFunc(m.objects, func(_ id, o Object) bool {
		e, ok := o.(*api.ClusterEvent)
		return ok && e.Namespace == name.Namespace && e.Cluster == name.Name
	})
	if cluster.Spec.DeletionPolicy == api.DeletionWipe {
		maps.DeleteFunc(m.secrets, func(k types.NamespacedName, s *secret) bool {
			return k.Namespace == name.Namespace && s.cluster == name.Name
		})
	}
}

func (m *Memory) orphanResources(cluster *api.StorageCluster) error {
	for _, r := range engine.ResourcesOf(resourcesOf(m), types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}) {
		engine.OrphanResource(r)
		if _, err := m.updateStatus(r); err != nil {
			return err
		}
		if engine.ReleaseResource(r) {
			if _, err := m.update(r); err != nil {
				return err
			}
		}
	}
	return nil
}

func withoutFinalizer(m *Memory, cluster *api.StorageCluster) ([]engine.Change, error) {
	c, err := m.cluster(types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name})
	if err != nil {
		return nil, err
	}
	c.Finalizers = slices.DeleteFunc(c.Finalizers, func(f string) bool { return f == engine.Finalizer })
	return m.update(c)
}

// Adopt puts the engine's finalizer on a cluster.
func (m *Memory) Adopt(ctx context.Context, cluster types.NamespacedName) error {
	return m.write(ctx, "Adopt", cluster.Name, func() ([]engine.Change, error) {
		c, err := m.cluster(cluster)
		if err != nil || c.DeletionTimestamp != nil || slices.Contains(c.Finalizers, engine.Finalizer) {
			return nil, err
		}
		c.Finalizers = append(c.Finalizers, engine.Finalizer)
		return m.update(c)
	})
}

// Notify calls f with each change that concerns a cluster, until ctx ends.
func (m *Memory) Notify(ctx context.Context, f func(engine.Change)) {
	w := &watcher{f}
	m.mu.Lock()
	m.watchers[w] = true
	m.mu.Unlock()
	context.AfterFunc(ctx, func() {
		m.mu.Lock()
		delete(m.watchers, w)
		m.mu.Unlock()
	})
}

func ignoreNotFound(changes []engine.Change, err error) ([]engine.Change, error) {
	if apierrors.IsNotFound(err) || errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	}
	return changes, err
}
