package gluster

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

const (
	namespace = "files"
	gib       = 1 << 30
)

// world is a real API with a cluster, and a stand-in for the engine: it says of each Volume that it
// is made, or has grown, unless it is larger than room.
type world struct {
	t *testing.T
	// admin may do everything; driver is the one of the driver.
	admin  client.WithWatch
	driver client.WithWatch

	mu sync.Mutex
	// room is what the cluster has, silent says that the engine does nothing.
	room   int64
	silent bool
}

// TestController starts one API for all tests that need one.
func TestController(t *testing.T) {
	config := loopback.Inside(t)
	for name, test := range map[string]func(t *testing.T, w *world){
		"create": testCreate, "volumes of others": testVolumesOfOthers, "servers are silent": testServersAreSilent,
		"grow": testGrow, "publish": testPublish, "cut off": testCutOff,
	} {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t, config)) })
	}
}

// newWorld is a new namespace in an API.
func newWorld(t *testing.T, config *rest.Config) *world {
	t.Helper()
	w := &world{t: t, room: 10 * gib}
	var err error
	w.driver, err = Connect(config)
	w.must(err)
	scheme := runtime.NewScheme()
	w.must(corev1.AddToScheme(scheme), api.AddToScheme(scheme))
	w.admin, err = client.NewWithWatch(config, client.Options{Scheme: scheme})
	w.must(err)
	w.must(client.IgnoreAlreadyExists(w.admin.Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})))
	w.clear()
	w.cluster("gluster", api.StorageGlusterFS, api.StorageOnline)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.engine(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	return w
}

func (w *world) must(errs ...error) {
	w.t.Helper()
	for _, err := range errs {
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// cluster declares a cluster, and says how it is.
func (w *world) cluster(name string, kind api.StorageType, state api.StorageState) {
	w.t.Helper()
	o := metav1.ObjectMeta{Namespace: namespace, Name: name}
	spec := api.StorageClusterSpec{Type: kind, Interval: metav1.Duration{Duration: time.Minute}}
	if kind == api.StorageCeph {
		spec.Ceph = &api.CephSpec{}
	}
	s := &api.StorageStatus{ObjectMeta: o}
	w.must(w.admin.Create(w.t.Context(), &api.StorageCluster{ObjectMeta: o, Spec: spec}),
		w.admin.Create(w.t.Context(), s))
	s.Status.Status, s.Status.Message = state, "two nodes are disconnected"
	w.must(w.admin.Status().Update(w.t.Context(), s))
}

// clear removes what an earlier test has left.
func (w *world) clear() {
	w.t.Helper()
	var all api.VolumeList
	w.must(w.admin.List(w.t.Context(), &all))
	for i := range all.Items {
		v := &all.Items[i]
		v.Finalizers = nil
		w.must(w.admin.Update(w.t.Context(), v), client.IgnoreNotFound(w.admin.Delete(w.t.Context(), v)))
	}
	for _, o := range []client.Object{&api.StorageCluster{}, &api.StorageStatus{}} {
		w.must(w.admin.DeleteAllOf(w.t.Context(), o, client.InNamespace(namespace)))
	}
}

func (w *world) controller() *Controller {
	return &Controller{API: func() (client.WithWatch, error) { return w.driver, nil }}
}

// set changes what the engine does.
func (w *world) set(room int64, silent bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.room, w.silent = room, silent
}

// engine looks at all Volumes until ctx ends.
func (w *world) engine(ctx context.Context) {
	for ctx.Err() == nil {
		var all api.VolumeList
		if err := w.admin.List(ctx, &all); err == nil {
			for i := range all.Items {
				w.look(ctx, &all.Items[i])
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond): // between two looks, as the engine has its interval
		}
	}
}

// look does for a Volume what the engine does. A write that is refused is made again.
func (w *world) look(ctx context.Context, v *api.Volume) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.silent:
	case v.DeletionTimestamp != nil:
		v.Finalizers = nil
		_ = w.admin.Update(ctx, v)
	case len(v.Finalizers) == 0:
		v.Finalizers = []string{api.FinalizerResource}
		_ = w.admin.Update(ctx, v)
	case v.Status.ObservedGeneration != v.Generation:
		w.judge(v)
		_ = w.admin.Status().Update(ctx, v)
	}
}

func (w *world) judge(v *api.Volume) {
	s, standing := &v.Status, kstatus.Standing{Ready: true, Reason: api.ReasonReady}
	s.ObservedGeneration = v.Generation
	if v.Spec.Size.Value() > w.room {
		standing = kstatus.Standing{
			Stalled: true, Reason: api.ReasonInsufficientSpace,
			Message: fmt.Sprintf("there is no room for %d, the emptiest place has %d", v.Spec.Size.Value(), w.room),
		}
		if s.State == "" {
			s.State = api.ResourcePending
		}
	} else {
		size := v.Spec.Size.DeepCopy()
		s.State, s.Served, s.Capacity, s.Limit = api.ResourceOnline, true, &size, &size
		s.Source, s.Backups = "10.0.0.1:/"+v.Name, []string{"10.0.0.2", "10.0.0.3"}
	}
	kstatus.Set(&s.Conditions, v.Generation, standing, time.Now())
}

// volume is a Volume of the API, or nil.
func (w *world) volume(name string) *api.Volume {
	w.t.Helper()
	v, err := find(w.t.Context(), w.admin, backend.Handle{Pool: namespace, Name: name})
	w.must(err)
	return v
}

// stalled says whether a user has to act on a Volume.
func stalled(v *api.Volume) bool {
	return meta.IsStatusConditionTrue(v.Status.Conditions, api.ConditionStalled)
}
