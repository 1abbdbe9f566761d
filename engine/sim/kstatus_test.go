package sim_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

// TestKstatus: tools that know none of the kinds see how the objects are that the engine writes, while a cluster comes up,
// changes, and goes.
func TestKstatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newStage(ctx)
		s.Fail = s.refusal
		cluster, node, volume := toyCluster("t", ""), &api.StorageNode{ObjectMeta: meta("n1")}, toyVolume("v1", "t")
		look := func(state kstatus.State, o sim.Object) {
			t.Helper()
			if err := s.Get(ctx, o); err != nil {
				t.Fatal(err)
			}
			kstatus.Check(t, state, o)
		}
		s.lead()
		s.say(t, "add-cluster t", "add-node n1 host=h1 devices=d1")
		look(kstatus.Reconciling, cluster)
		look(kstatus.Reconciling, node) // no host matches
		s.say(t, "add-host h1 disks=d1", "tick 1s")
		look(kstatus.Ready, cluster)
		look(kstatus.Ready, node)
		s.say(t, "refuse v1", "add-volume v1 cluster=t", "tick")
		look(kstatus.Reconciling, volume)
		s.say(t, "allow v1", "tick 30s")
		look(kstatus.Ready, volume)
		look(kstatus.Ready, cluster)

		s.say(t, "add-node n2 host=h1 devices=d1", "tick") // the device is the other node's
		refused := &api.StorageNode{ObjectMeta: meta("n2")}
		look(kstatus.Stalled, refused)
		s.say(t, "delete node=n2", "tick")

		if err := s.standDown(); err != nil {
			t.Fatal(err)
		}
		s.say(t, "mode t Observed", "grow-volume v1")
		look(kstatus.Behind, cluster)
		look(kstatus.Behind, volume)
		s.say(t, "mode t Active")
		s.lead()
		s.say(t, "tick 30s")
		look(kstatus.Ready, cluster)
		look(kstatus.Ready, volume)
		s.say(t, "silence on", "delete volume=v1", "tick 11s")
		look(kstatus.Deleted, volume)
		look(kstatus.Reconciling, cluster) // it does not answer
		s.say(t, "delete cluster=t", "tick")
		look(kstatus.Deleted, cluster)
		if err := s.standDown(); err != nil {
			t.Error(err)
		}
	})
}

// TestKstatus_records: what records how something is, or was, is Current from the beginning, and says so of itself alone.
func TestKstatus_records(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := newStage(ctx)
		s.lead()
		s.say(t, "add-cluster t", "tick")
		status := &api.StorageStatus{ObjectMeta: meta("t")}
		if err := s.Get(ctx, status); err != nil {
			t.Fatal(err)
		}
		kstatus.Check(t, kstatus.Ready, status)
		event := &api.ClusterEvent{ObjectMeta: meta(api.ClusterEventName("t", 1))}
		if err := s.Get(ctx, event); err != nil || !strings.HasPrefix(event.Code, "CLUSTER_") {
			t.Fatal(event, err)
		}
		kstatus.Check(t, kstatus.Ready, event)
		if err := s.standDown(); err != nil {
			t.Error(err)
		}
	})
}
