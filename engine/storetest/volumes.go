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

func (b *bench) putVolume(seen *api.Volume, state api.VolumeState) error {
	return b.Store.PutVolumeStatus(b.ctx, "default", engine.VolumeStatus{
		Name: seen.Name, Status: api.VolumeStatus{State: state, ObservedGeneration: seen.Generation}, Seen: seen,
	})
}

// testVolumes: a view has the volumes of its cluster in order; a volume is adopted with its first status, stays when it is deleted until
// it is let go, and its cluster is told when its spec changes, it is deleted or it is gone, and not of what the engine writes.
func testVolumes(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var told atomic.Int32
	b.Store.Notify(ctx, func(c engine.Change) {
		if c.Kind == engine.KindVolume && c.Cluster == b.key && c.Object == "volume/"+b.name+"-a" {
			told.Add(1)
		}
	})
	for _, v := range []*api.Volume{b.newVolume("b", b.name), b.newVolume("a", b.name), b.newVolume("x", "another")} {
		b.must(b.World.Create(b.ctx, v))
	}
	b.eventually("the volumes are seen", func() bool { return names(b.view().Volumes) == b.name+"-a "+b.name+"-b" })
	b.eventually("a volume is told", func() bool { return told.Load() == 1 })
	b.eventually("all volumes are listed", func() bool {
		all, err := b.Store.Volumes(b.ctx)
		b.must(err)
		return slices.ContainsFunc(all, func(v api.Volume) bool { return v.Name == b.name+"-x" && v.Spec.Cluster == "another" })
	})
	first := b.view().Volumes[0]
	b.must(b.Store.PutVolumeStatus(b.ctx, "default", engine.VolumeStatus{
		Name: first.Name, Status: api.VolumeStatus{State: api.VolumePending}, Unadopted: true, Seen: &first,
	}))
	if got := b.volume("a"); got.Status.State != api.VolumePending || len(got.Finalizers) > 0 {
		b.Errorf("an unadopted volume is %s, kept by %v", got.Status.State, got.Finalizers)
	}
	b.eventually("the status is seen", func() bool { return b.view().Volumes[0].Status.State == api.VolumePending })
	for range 2 {
		b.must(b.putVolume(&b.view().Volumes[0], api.VolumeCreating))
		if got := b.view().Volumes[0]; got.Status.State != api.VolumeCreating || !slices.Contains(got.Finalizers, api.FinalizerVolume) {
			b.Errorf("the view has %s, kept by %v", got.Status.State, got.Finalizers)
		}
	}
	version := b.volume("a").ResourceVersion
	b.must(b.putVolume(&b.view().Volumes[0], api.VolumeCreating))
	v := b.volume("a")
	if v.ResourceVersion != version {
		b.Error("an equal status was written")
	}
	v.Spec.Size = resource.MustParse("2Gi")
	b.must(b.World.Update(b.ctx, v))
	b.eventually("a change of the spec is told", func() bool { return told.Load() == 2 })
	b.must(b.Store.PutVolumeStatus(b.ctx, "default", engine.VolumeStatus{Name: v.Name, Gone: true, Seen: v}))
	if !slices.Contains(b.volume("a").Finalizers, api.FinalizerVolume) {
		b.Error("a volume that nobody deleted was let go")
	}
	b.must(b.World.Delete(b.ctx, b.volume("a")))
	b.eventually("the deletion is told", func() bool { return told.Load() == 3 })
	b.eventually("the deletion is seen", func() bool { return b.view().Volumes[0].DeletionTimestamp != nil })
	b.must(b.putVolume(&b.view().Volumes[0], api.VolumeDeleting))
	for range 2 {
		b.must(b.Store.PutVolumeStatus(b.ctx, "default", engine.VolumeStatus{Name: v.Name, Gone: true, Seen: v}))
		if got := names(b.view().Volumes); got != b.name+"-b" {
			b.Errorf("after it was let go the view has %s", got)
		}
	}
	b.eventually("that it is gone is told", func() bool { return told.Load() == 4 })
	if n := len(b.volume("x").Finalizers); n != 0 {
		b.Errorf("the volume of another cluster has %d finalizers", n)
	}
}

// testStaleVolume: a status is not written, and nothing is adopted, when the volume is another one by now than it was made from.
func testStaleVolume(b *bench) {
	b.must(b.World.Create(b.ctx, b.newVolume("a", b.name)))
	seen := b.volume("a")
	changed := seen.DeepCopy()
	changed.Spec.Size = resource.MustParse("2Gi")
	b.must(b.World.Update(b.ctx, changed))
	stale := func(what string, seen *api.Volume) {
		b.Helper()
		if err := b.putVolume(seen, api.VolumeCreating); !errors.Is(err, engine.ErrStale) {
			b.Errorf("%s: %v", what, err)
		}
	}
	b.eventually("the change is seen", func() bool {
		v := b.view().Volumes
		return len(v) == 1 && v[0].Generation == changed.Generation
	})
	stale("a spec that changed", seen)
	if v := b.volume("a"); len(v.Finalizers) > 0 || v.Status.State != "" {
		b.Errorf("it was written: %+v, kept by %v", v.Status, v.Finalizers)
	}
	now := b.volume("a")
	b.must(b.World.Delete(b.ctx, now))
	b.eventually("it is gone", func() bool { return len(b.view().Volumes) == 0 })
	stale("one that is gone", now)
	b.must(b.World.Create(b.ctx, b.newVolume("a", b.name)))
	b.eventually("the new one is seen", func() bool { return len(b.view().Volumes) == 1 })
	stale("another one of the same name", now)
}

// testVolumesOutlive: when a cluster goes its volumes stay, and nobody is waited for when they are deleted.
func testVolumesOutlive(b *bench) {
	b.must(b.Store.Adopt(b.ctx, b.key))
	for _, name := range []string{"a", "deleted"} {
		b.must(b.World.Create(b.ctx, b.newVolume(name, b.name)))
		b.must(b.putVolume(b.volume(name), api.VolumeOnline))
	}
	b.must(b.World.Delete(b.ctx, b.volume("deleted")))
	b.must(b.World.Delete(b.ctx, b.cluster))
	b.must(b.Store.Finish(b.ctx, b.cluster))
	if v := b.volume("a"); len(v.Finalizers) > 0 || v.Status.State != "" || !strings.Contains(v.Status.Message, "there is no StorageCluster") {
		b.Errorf("it is %q, %q, kept by %v", v.Status.State, v.Status.Message, v.Finalizers)
	}
	if err := b.World.Get(b.ctx, b.newVolume("deleted", b.name)); err == nil {
		b.Error("the volume that was deleted is kept")
	}
}
