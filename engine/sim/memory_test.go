package sim_test

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/engine/storetest"
)

// world shows a Memory as the suite wants to see it.
type world struct{ *sim.Memory }

func (w world) Create(ctx context.Context, o storetest.Object) error { return w.Memory.Create(ctx, o) }

func (w world) Update(ctx context.Context, o storetest.Object) error { return w.Memory.Update(ctx, o) }

func (w world) Delete(ctx context.Context, o storetest.Object) error { return w.Memory.Delete(ctx, o) }
func (w world) Get(ctx context.Context, o storetest.Object) error    { return w.Memory.Get(ctx, o) }

func (w world) UpdateStatus(ctx context.Context, o storetest.Object) error {
	return w.Memory.UpdateStatus(ctx, o)
}

// Lead does nothing: a lock that TakeLock gave away is that of one cluster.
func (w world) Lead(context.Context) error { return nil }

func (w world) TakeLock(_ context.Context, cluster types.NamespacedName, holder string) error {
	w.Hold(cluster, holder)
	return nil
}

// Serve makes perform the agent of a host. The suite has one at a time.
func (w world) Serve(_ context.Context, host string, perform storetest.Perform) error {
	w.Carry = func(ctx context.Context, d *api.Daemon, cmd engine.Command) (string, error) {
		if d.Spec.Host != host {
			<-ctx.Done()
			return "", context.Cause(ctx)
		}
		return perform(d.Name, cmd)
	}
	return nil
}

func TestMemory(t *testing.T) {
	m := sim.NewMemory()
	storetest.Run(t, storetest.Backend{Store: m, World: world{m}})
}
