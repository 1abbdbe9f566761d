package storetest

import (
	"errors"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// testMemory: the leader's memory of a daemon is written with the spec, also when the daemon is
// made, and is of no generation. What others wrote stays.
func testMemory(b *bench) {
	change := b.change("m1", api.WantRunning)
	leadermemory.Set(&change.Daemon, "flaps", "41")
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
	b.wantMemory("made", 1, "flaps", "41", "")
	d := b.daemon("m1")
	d.Annotations[api.AnnotationStart] = "now"
	b.must(b.World.Update(b.ctx, d))
	d.Status = api.DaemonStatus{State: api.DaemonRunning}
	b.must(b.World.UpdateStatus(b.ctx, d))

	change.New = false
	leadermemory.Set(&change.Daemon, "flaps", "41 57")
	put := func() string {
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
		return b.daemon("m1").ResourceVersion
	}
	if first, second := put(), put(); first != second {
		b.Errorf("versions before and after the same memory is written: %s and %s", first, second)
	}
	b.wantMemory("of another memory", 1, "flaps", "41 57", "now")
	change.Daemon.Spec.State = api.WantStopped
	leadermemory.Drop(&change.Daemon, "flaps")
	leadermemory.Set(&change.Daemon, "heldSince", "then")
	put()
	b.wantMemory("of another spec and memory", 2, "heldSince", "then", "now")
	if state := b.daemon("m1").Status.State; state != api.DaemonRunning {
		b.Errorf("its status says %s", state)
	}
	leadermemory.Drop(&change.Daemon, "heldSince")
	put()
	b.wantMemory("without memory", 2, "heldSince", "", "now")
}

// testAnnotations: what a person asks of a daemon is written, and nothing else of it. What others wrote
// stays, and the memory stays with it.
func testAnnotations(b *bench) {
	change := b.change("m1", api.WantRunning)
	leadermemory.Set(&change.Daemon, "flaps", "41")
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, change))
	key := types.NamespacedName{Namespace: b.cluster.Namespace, Name: change.Daemon.Name}
	annotate := func(value string) string {
		b.must(b.Store.AnnotateDaemon(b.ctx, key, func(all map[string]string) {
			if delete(all, api.AnnotationStart); value != "" {
				all[api.AnnotationStart] = value
			}
		}))
		b.wantMemory("annotated", 1, "flaps", "41", value)
		return b.daemon("m1").ResourceVersion
	}
	if first, second := annotate("now"), annotate("now"); first != second {
		b.Errorf("versions before and after the same annotation is written: %s and %s", first, second)
	}
	annotate("")
	key.Name += "-none"
	if err := b.Store.AnnotateDaemon(b.ctx, key, func(map[string]string) {}); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("of a daemon that is not there: %v", err)
	}
}

// wantMemory checks that daemon m1 has nothing in its memory but one value, if that, and that
// others find what they wrote. The Store's own view is of the same.
func (b *bench) wantMemory(when string, generation int64, name, value, start string) {
	b.Helper()
	seen := b.view().DaemonsByName()[b.name+"-m1"]
	for _, d := range []*api.Daemon{b.daemon("m1"), seen} {
		want := &api.Daemon{}
		if value != "" {
			leadermemory.Set(want, name, value)
		}
		if !leadermemory.Same(d, want) || d.Generation != generation || d.Annotations[api.AnnotationStart] != start {
			b.Errorf("%s: generation %d, annotations %v; want %d, and %s=%q in its memory",
				when, d.Generation, d.Annotations, generation, name, value)
		}
	}
}
