package storetest

import (
	"context"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (b *bench) newAction(name, cluster string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-" + name},
		Spec:       api.ActionSpec{Kind: "test.suite", Target: "none/x", Cluster: cluster, Want: api.WantDone},
	}
}

// testActions: a view has the cluster's own actions, and not those of another cluster; a cluster is told of a new action and
// of one that comes into another state.
func testActions(b *bench) {
	other := newCluster(b.name + "-other")
	b.must(b.World.Create(b.ctx, other))
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	var told atomic.Int32
	b.Store.Notify(ctx, func(c engine.Change) {
		if c.Kind == engine.KindAction && c.Cluster == b.key && c.Object == "action/"+b.name+"-mine" {
			told.Add(1)
		}
	})
	mine := b.newAction("mine", b.name)
	b.must(b.World.Create(b.ctx, mine))
	b.must(b.World.Create(b.ctx, b.newAction("theirs", other.Name)))
	b.eventually("the action is told", func() bool { return told.Load() == 1 })
	b.eventually("the action is seen", func() bool { return len(b.ownActions()) == 1 && b.ownActions()[0].Name == mine.Name })
	for _, state := range []api.ActionState{api.ActionNew, api.ActionRunning} {
		mine.Status.State = state
		b.must(b.World.UpdateStatus(b.ctx, mine))
	}
	b.eventually("its states are told", func() bool { return told.Load() == 3 })
	mine.Status.Message = "one of two is done"
	b.must(b.World.UpdateStatus(b.ctx, mine))
	b.eventually("its progress is seen", func() bool { return b.ownActions()[0].Status.Message == mine.Status.Message })
	if n := told.Load(); n != 3 {
		b.Errorf("the cluster was told %d times", n)
	}
}

// ownActions are the actions in the view that belong to some cluster.
func (b *bench) ownActions() []api.Action {
	b.Helper()
	var own []api.Action
	for _, a := range b.view().Actions {
		if a.Spec.Cluster != "" {
			own = append(own, a)
		}
	}
	return own
}
