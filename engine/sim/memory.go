package sim

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

// Memory is an engine.Store in memory, and the API that administrators and agents use beside it. Like the API server it
// numbers versions and generations, keeps status and spec apart, and honours finalizers. It is safe for concurrent use.
type Memory struct {
	// Fail, when set, is asked before each write of the engine; its error is the write's result. Set it before use.
	Fail func(operation, object string) error
	// Carry is the agents' part of Ask: it carries out a command on the host of a daemon. Set it before use.
	Carry func(ctx context.Context, d *api.Daemon, cmd engine.Command) (message string, err error)

	mu       sync.Mutex
	version  int64
	objects  map[id]Object
	secrets  map[types.NamespacedName]*secret
	locks    map[types.NamespacedName]*lock
	watchers map[*watcher]bool
	writes   int
	sequence map[types.NamespacedName]int64
	told     map[types.NamespacedName]engine.Told
}

type secret struct {
	cluster     string
	annotations map[string]string
	data        map[string][]byte
}

type watcher struct{ f func(engine.Change) }

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		objects: map[id]Object{}, secrets: map[types.NamespacedName]*secret{}, locks: map[types.NamespacedName]*lock{},
		watchers: map[*watcher]bool{}, sequence: map[types.NamespacedName]int64{}, told: map[types.NamespacedName]engine.Told{},
	}
}

// Writes counts the writes that the engine did through the Store's methods.
func (m *Memory) Writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// Create stores a new object, as an administrator or agent does.
func (m *Memory) Create(_ context.Context, o Object) error {
	return m.change(func() ([]engine.Change, error) { return m.create(o) })
}

// Update stores the metadata and the spec of an object that is there.
func (m *Memory) Update(_ context.Context, o Object) error {
	return m.change(func() ([]engine.Change, error) { return m.update(o) })
}

// UpdateStatus stores the status of an object that is there, as its agent does.
func (m *Memory) UpdateStatus(_ context.Context, o Object) error {
	return m.change(func() ([]engine.Change, error) { return m.updateStatus(o) })
}

// Delete removes an object, or marks it as deleted while it has finalizers.
func (m *Memory) Delete(_ context.Context, o Object) error {
	return m.change(func() ([]engine.Change, error) { return m.remove(idOf(o)) })
}

// Get fills in the object of this name.
func (m *Memory) Get(_ context.Context, o Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	have, ok := m.objects[idOf(o)]
	if !ok {
		return idOf(o).notFound()
	}
	assign(o, have)
	return nil
}

// Events returns the events of a cluster in their order.
func (m *Memory) Events(_ context.Context, cluster types.NamespacedName) ([]api.ClusterEvent, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return list(m, func(e *api.ClusterEvent) bool { return e.Namespace == cluster.Namespace && e.Cluster == cluster.Name }), nil
}

// change does one write and tells of it when the lock is free again, so that whoever is told may read at once.
func (m *Memory) change(do func() ([]engine.Change, error)) error {
	m.mu.Lock()
	changes, err := do()
	watchers := make([]*watcher, 0, len(m.watchers))
	for w := range m.watchers {
		watchers = append(watchers, w)
	}
	m.mu.Unlock()
	for _, c := range changes {
		for _, w := range watchers {
			w.f(c)
		}
	}
	return err
}

func (m *Memory) create(o Object) ([]engine.Change, error) {
	if _, ok := m.objects[idOf(o)]; ok {
		return nil, apierrors.NewAlreadyExists(schema.GroupResource{Group: api.Group, Resource: kindOf(o)}, o.GetName())
	}
	stored := clone(o)
	stored.SetGeneration(1)
	unseen(stored)
	stored.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	m.put(stored)
	stored.SetUID(types.UID("uid-" + stored.GetResourceVersion()))
	assign(o, stored)
	return m.changesOf(stored, nil), nil
}

func (m *Memory) update(o Object) ([]engine.Change, error) {
	was, ok := m.objects[idOf(o)]
	if !ok {
		return nil, idOf(o).notFound()
	}
	if d, ok := o.(*api.Daemon); ok && d.Spec.Host != was.(*api.Daemon).Spec.Host {
		return nil, fmt.Errorf("daemon %s: the host of a Daemon cannot be changed", d.Name)
	}
	stored := clone(o)
	keepStatus(stored, was)
	stored.SetUID(was.GetUID())
	stored.SetCreationTimestamp(was.GetCreationTimestamp())
	stored.SetDeletionTimestamp(was.GetDeletionTimestamp())
	stored.SetGeneration(was.GetGeneration())
	if !equality.Semantic.DeepEqual(specOf(stored), specOf(was)) {
		stored.SetGeneration(was.GetGeneration() + 1)
	}
	if stored.GetDeletionTimestamp() != nil && len(stored.GetFinalizers()) == 0 {
		delete(m.objects, idOf(o))
		return m.changesOf(was, was), nil
	}
	m.put(stored)
	assign(o, stored)
	return m.changesOf(stored, was), nil
}

// unseen has a status that nobody has written say so, as the API does.
func unseen(o Object) {
	status := field(o, "Status")
	if !status.IsValid() || !status.IsZero() {
		return
	}
	if seen := status.FieldByName("ObservedGeneration"); seen.IsValid() {
		seen.SetInt(-1)
	}
}

func (m *Memory) updateStatus(o Object) ([]engine.Change, error) {
	was, ok := m.objects[idOf(o)]
	if !ok {
		return nil, idOf(o).notFound()
	}
	stored := clone(was)
	keepStatus(stored, clone(o))
	if equality.Semantic.DeepEqual(stored, was) {
		return nil, nil
	}
	m.put(stored)
	assign(o, stored)
	return m.changesOf(stored, was), nil
}

func (m *Memory) remove(i id) ([]engine.Change, error) {
	was, ok := m.objects[i]
	if !ok {
		return nil, i.notFound()
	}
	if len(was.GetFinalizers()) == 0 {
		delete(m.objects, i)
		return m.changesOf(was, was), nil
	}
	if was.GetDeletionTimestamp() != nil {
		return nil, nil
	}
	stored := clone(was)
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	stored.SetDeletionTimestamp(&now)
	stored.SetGeneration(was.GetGeneration() + 1)
	m.put(stored)
	return m.changesOf(stored, was), nil
}

func (m *Memory) put(o Object) {
	m.version++
	o.SetResourceVersion(strconv.FormatInt(m.version, 10))
	m.objects[idOf(o)] = o
}

// changesOf says what is told of a change. What was nil is new.
func (m *Memory) changesOf(is, was Object) []engine.Change {
	clusters := list(m, func(*api.StorageCluster) bool { return true })
	var affected []types.NamespacedName
	switch o := is.(type) {
	case *api.StorageCluster:
		before, _ := was.(*api.StorageCluster)
		if before == nil || was.GetGeneration() != is.GetGeneration() || was == is || engine.Requested(before, o) {
			affected = append(affected, types.NamespacedName{Namespace: o.Namespace, Name: o.Name})
		}
	case *api.StorageNode:
		if was == nil || was.GetGeneration() != is.GetGeneration() || was == is {
			affected = append(affected, types.NamespacedName{Namespace: o.Namespace, Name: engine.ClusterOf(o, clusters)})
		}
	case api.Resource:
		if was == nil || was.GetGeneration() != is.GetGeneration() || was == is {
			affected = append(affected, engine.ClusterOfResource(o))
		}
	case *api.Daemon:
		if before, ok := was.(*api.Daemon); ok && serving.Alone(before, o) {
			break
		}
		affected = append(affected, types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Cluster})
	case *api.Action:
		if before, ok := was.(*api.Action); !action.Quiet(o) && (!ok || before.Status.State != o.Status.State) {
			affected = append(affected, types.NamespacedName{Namespace: o.Namespace, Name: o.Spec.Cluster})
		}
	case *api.Host:
		affected = m.clustersOfHost(o, was, clusters)
	}
	var changes []engine.Change
	for _, c := range affected {
		if c.Name != "" {
			object := strings.ToLower(kindOf(is)) + "/" + is.GetName()
			changes = append(changes, engine.Change{Cluster: c, Kind: kindOf(is), Object: object})
		}
	}
	return changes
}

// clustersOfHost returns all clusters for a host that is new or has other labels: it may be what one of them waits for.
func (m *Memory) clustersOfHost(is *api.Host, was Object, clusters []api.StorageCluster) []types.NamespacedName {
	if was != nil && equality.Semantic.DeepEqual(was.GetLabels(), is.GetLabels()) {
		return engine.ClustersOfHost(is, list(m, func(*api.StorageNode) bool { return true }),
			list(m, func(*api.Daemon) bool { return true }), clusters)
	}
	var all []types.NamespacedName
	for i := range clusters {
		all = append(all, types.NamespacedName{Namespace: clusters[i].Namespace, Name: clusters[i].Name})
	}
	return all
}

// list returns copies of the objects of one kind that are wanted, sorted by namespace and name.
func list[T any, P interface {
	*T
	Object
}](m *Memory, wanted func(P) bool) []T {
	var found []T
	for _, o := range m.objects {
		if p, ok := o.(P); ok && wanted(p) {
			found = append(found, *clone(p))
		}
	}
	slices.SortFunc(found, func(a, b T) int {
		x, y := P(&a), P(&b)
		return cmp.Or(strings.Compare(x.GetNamespace(), y.GetNamespace()), strings.Compare(x.GetName(), y.GetName()))
	})
	return found
}
