package store_test

import (
	"context"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/storeworld"
)

func TestActions(t *testing.T) {
	actions, err := newStore(t, "s1").Actions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	actiontest.RunStore(t, actions, storeworld.ActionWorld{World: newWorld(t).World})
}

// TestActions_concern: an action on a host concerns the clusters with daemons there, and of a
// server the control plane.
func TestActions_concern(t *testing.T) {
	w := newWorld(t)
	actions, err := newStore(t, "s1").Actions(t.Context())
	must(t, err)
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "concerned", Labels: map[string]string{api.LabelServer: ""}}}
	must(t, w.Create(t.Context(), host))
	daemon := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "concern-mon-a"},
		Spec:       api.DaemonSpec{Cluster: "concern", Type: "ceph-mon", ID: "a", Host: "concerned", State: api.WantRunning, Command: []string{"true"}},
	}
	must(t, w.Create(t.Context(), daemon))
	want := []string{"cluster default/concern", "the control plane"}
	eventually(t, "what the host has a part in", func() bool {
		got, err := actions.Concern(t.Context(), "concerned")
		return err == nil && slices.Equal(got, want)
	})
	if got, err := actions.Concern(t.Context(), "no-such-host"); err != nil || len(got) != 0 {
		t.Errorf("a host that is not there concerns %q, %v", got, err)
	}
	must(t, w.Delete(t.Context(), daemon))
	must(t, w.Delete(t.Context(), host))
}

// TestActions_silentHost: of a host whose agent is silent it is told since when.
func TestActions_silentHost(t *testing.T) {
	w := newWorld(t)
	actions, err := newStore(t, "s1").Actions(t.Context())
	must(t, err)
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "hushed"}}
	must(t, w.Create(t.Context(), host))
	t.Cleanup(func() { must(t, w.Delete(context.Background(), host)) })
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	host.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse, Reason: "Silent", LastTransitionTime: since}}
	must(t, w.Status().Update(t.Context(), host))
	eventually(t, "the host to be known as silent", func() bool {
		all, err := actions.Hosts(t.Context())
		return err == nil && all["hushed"].Silent && all["hushed"].Since.Equal(since.Time)
	})
}
