package storetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (b *bench) newVolume(name, cluster string) *api.Volume {
	return &api.Volume{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-" + name},
		Spec:       api.VolumeSpec{Cluster: cluster, Size: resource.MustParse("1Gi"), DeletionPolicy: api.DeletionRetain},
	}
}

func (b *bench) volume(name string) *api.Volume {
	b.Helper()
	v := &api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-" + name}}
	b.must(b.World.Get(b.ctx, v))
	return v
}

func (b *bench) putVolume(seen *api.Volume, state api.ResourceState) error {
	next := seen.DeepCopy()
	next.Status = api.VolumeStatus{ResourceStatus: api.ResourceStatus{State: state, ObservedGeneration: seen.Generation}}
	return b.Store.PutResource(b.ctx, engine.ResourceChange{Resource: next, Seen: seen})
}

// volumes are those of the view.
func (b *bench) volumes() []*api.Volume {
	b.Helper()
	return engine.OfKind[*api.Volume](b.view().Resources)
}

func (b *bench) volumeNames() string {
	b.Helper()
	var all []string
	for _, v := range b.volumes() {
		all = append(all, v.Name)
	}
	return strings.Join(all, " ")
}

// testResources: a view has the volumes of its cluster in order; a volume is adopted with its first status, stays when it is deleted until
// it is let go, and its cluster is told when its spec changes, it is deleted or it is gone, and not of what the engine writes.
func testResources(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var told atomic.Int32
	b.Store.Notify(ctx, func(c engine.Change) {
		if c.Kind == "Volume" && c.Cluster == b.key && c.Object == "volume/"+b.name+"-a" {
			told.Add(1)
		}
	})
	for _, v := range []*api.Volume{b.newVolume("b", b.name), b.newVolume("a", b.name), b.newVolume("x", "another")} {
		b.must(b.World.Create(b.ctx, v))
	}
	b.eventually("the volumes are seen", func() bool { return b.volumeNames() == b.name+"-a "+b.name+"-b" })
	b.eventually("a volume is told", func() bool { return told.Load() == 1 })
	b.eventually("all volumes are listed", func() bool {
		all, err := b.Store.Resources(b.ctx)
		b.must(err)
		return slices.ContainsFunc(all, func(r api.Resource) bool { return r.GetName() == b.name+"-x" && r.ClusterName() == "another" })
	})
	first := b.volumes()[0]
	pending := first.DeepCopy()
	pending.Status.State = api.ResourcePending
	b.must(b.Store.PutResource(b.ctx, engine.ResourceChange{Resource: pending, Unadopted: true, Seen: first}))
	if got := b.volume("a"); got.Status.State != api.ResourcePending || len(got.Finalizers) > 0 {
		b.Errorf("an unadopted volume is %s, kept by %v", got.Status.State, got.Finalizers)
	}
	b.eventually("the status is seen", func() bool { return b.volumes()[0].Status.State == api.ResourcePending })
	for range 2 {
		b.must(b.putVolume(b.volumes()[0], api.ResourceCreating))
		if got := b.volumes()[0]; got.Status.State != api.ResourceCreating || !slices.Contains(got.Finalizers, api.FinalizerResource) {
			b.Errorf("the view has %s, kept by %v", got.Status.State, got.Finalizers)
		}
	}
	version := b.volume("a").ResourceVersion
	b.must(b.putVolume(b.volumes()[0], api.ResourceCreating))
	v := b.volume("a")
	if v.ResourceVersion != version {
		b.Error("an equal status was written")
	}
	v.Spec.Size = resource.MustParse("2Gi")
	b.must(b.World.Update(b.ctx, v))
	b.eventually("a change of the spec is told", func() bool { return told.Load() == 2 })
	b.must(b.Store.PutResource(b.ctx, engine.ResourceChange{Resource: v, Gone: true, Seen: v}))
	if !slices.Contains(b.volume("a").Finalizers, api.FinalizerResource) {
		b.Error("a volume that nobody deleted was let go")
	}
	b.must(b.World.Delete(b.ctx, b.volume("a")))
	b.eventually("the deletion is told", func() bool { return told.Load() == 3 })
	b.eventually("the deletion is seen", func() bool { return b.volumes()[0].DeletionTimestamp != nil })
	b.must(b.putVolume(b.volumes()[0], api.ResourceDeleting))
	for range 2 {
		b.must(b.Store.PutResource(b.ctx, engine.ResourceChange{Resource: v, Gone: true, Seen: v}))
		if got := b.volumeNames(); got != b.name+"-b" {
			b.Errorf("after it was let go the view has %s", got)
		}
	}
	b.eventually("that it is gone is told", func() bool { return told.Load() == 4 })
	if n := len(b.volume("x").Finalizers); n != 0 {
		b.Errorf("the volume of another cluster has %d finalizers", n)
	}
}

// testStaleResource: a status is not written, and nothing is adopted, when the volume is another one by now than it was made from.
func testStaleResource(b *bench) {
	b.must(b.World.Create(b.ctx, b.newVolume("a", b.name)))
	seen := b.volume("a")
	changed := seen.DeepCopy()
	changed.Spec.Size = resource.MustParse("2Gi")
	b.must(b.World.Update(b.ctx, changed))
	stale := func(what string, seen *api.Volume) {
		b.Helper()
		if err := b.putVolume(seen, api.ResourceCreating); !errors.Is(err, engine.ErrStale) {
			b.Errorf("%s: %v", what, err)
		}
	}
	b.eventually("the change is seen", func() bool {
		v := b.volumes()
		return len(v) == 1 && v[0].Generation == changed.Generation
	})
	stale("a spec that changed", seen)
	if v := b.volume("a"); len(v.Finalizers) > 0 || v.Status.State != "" {
		b.Errorf("it was written: %+v, kept by %v", v.Status, v.Finalizers)
	}
	now := b.volume("a")
	b.must(b.World.Delete(b.ctx, now))
	b.eventually("it is gone", func() bool { return len(b.volumes()) == 0 })
	stale("one that is gone", now)
	b.must(b.World.Create(b.ctx, b.newVolume("a", b.name)))
	b.eventually("the new one is seen", func() bool { return len(b.volumes()) == 1 })
	stale("another one of the same name", now)
}

// testResourcesOutlive: when a cluster goes its volumes stay, and nobody is waited for when they are deleted.
func testResourcesOutlive(b *bench) {
	b.must(b.Store.Adopt(b.ctx, b.key))
	for _, name := range []string{"a", "deleted"} {
		b.must(b.World.Create(b.ctx, b.newVolume(name, b.name)))
		b.must(b.putVolume(b.volume(name), api.ResourceOnline))
	}
	b.must(b.World.Delete(b.ctx, b.volume("deleted")))
	b.must(b.World.Delete(b.ctx, b.cluster))
	b.must(b.Store.Finish(b.ctx, b.cluster))
	if v := b.volume("a"); len(v.Finalizers) > 0 || v.Status.State != "" || !strings.Contains(v.Status.Message, "does not exist in namespace") {
		b.Errorf("it is %q, %q, kept by %v", v.Status.State, v.Status.Message, v.Finalizers)
	}
	if err := b.World.Get(b.ctx, b.newVolume("deleted", b.name)); err == nil {
		b.Error("the volume that was deleted is kept")
	}
}
