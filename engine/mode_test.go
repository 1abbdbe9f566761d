package engine_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (l *lab) setMode(mode api.ClusterMode) {
	l.t.Helper()
	c := l.cluster()
	c.Spec.Mode = mode
	l.must(l.Update(l.t.Context(), c))
}

// TestMode_stopsTheRunThatGoesOn: whoever pauses a cluster wants the hands off it now, also when a command to the storage
// system hangs. A mode that allows as much or more lets the run come to its end.
func TestMode_stopsTheRunThatGoesOn(t *testing.T) {
	for _, tt := range []struct {
		from, to api.ClusterMode
		stopped  bool
	}{
		{api.ClusterActive, api.ClusterPaused, true},
		{api.ClusterActive, api.ClusterObserved, true},
		{api.ClusterObserved, api.ClusterPaused, true},
		{api.ClusterObserved, api.ClusterActive, false},
		{api.ClusterActive, api.ClusterActive, false},
	} {
		t.Run(string(tt.from+"-"+tt.to), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t), &recorder{}
				l.setMode(tt.from)
				stopped := false
				r.do = func(ctx context.Context, _ *engine.RefreshEvent) error {
					select {
					case <-ctx.Done():
						stopped = true
					case <-time.After(time.Minute):
					}
					return ctx.Err()
				}
				stats, stop := runScheduler(t, l, r)
				defer stop()
				l.setMode(tt.to)
				if tt.to == tt.from {
					l.must(l.Create(t.Context(), toyNode("another", "h1")))
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if stopped != tt.stopped {
					t.Errorf("stopped = %v, want %v", stopped, tt.stopped)
				}
				if n := stats.Failed.Load(); n != 0 {
					t.Errorf("%d runs count as failed", n)
				}
			})
		})
	}
}

// TestMode_pausedFromBirth: nothing at all is made, not even by a new leader, until the mode is changed.
func TestMode_pausedFromBirth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(t)
		l.setMode(api.ClusterPaused)
		for leader := range 2 {
			r := &recorder{do: l.orch.HandleRefresh}
			before := l.Writes()
			_, stop := runScheduler(t, l, r)
			l.must(l.Run(t.Context(), time.Second, time.Minute))
			if n := len(r.times()); n != 0 {
				t.Errorf("leader %d: %d runs of a paused cluster", leader, n)
			}
			if n := l.Writes() - before; n != 1-leader {
				t.Errorf("leader %d: %d writes, want one in all, for the condition", leader, n)
			}
			stop()
		}
		if c := l.ready(); c.Reason != engine.ReasonPaused || c.Status != metav1.ConditionUnknown || c.ObservedGeneration != l.cluster().Generation {
			t.Errorf("Ready = %+v", c)
		}
		if len(l.cluster().Finalizers) != 0 || len(l.events()) != 0 {
			t.Errorf("finalizers %v, events %v", l.cluster().Finalizers, l.events())
		}
		r := &recorder{do: l.orch.HandleRefresh}
		_, stop := runScheduler(t, l, r)
		defer stop()
		l.setMode(api.ClusterActive)
		l.must(l.Run(t.Context(), 100*time.Millisecond, 2*time.Second))
		if c := l.ready(); c.Status != metav1.ConditionTrue {
			t.Errorf("Ready after it was made active = %+v", c)
		}
	})
}

// TestMode_deletionNeverGrows: Replicante's rewrite set a mode "delete" that only "observe" was ever compared with, so that
// clusters of a namespace being deleted were still scaled up (replicante.md 14, bug 6). In each mode a cluster that is being
// deleted gets no new daemon.
func TestMode_deletionNeverGrows(t *testing.T) {
	for _, mode := range []api.ClusterMode{api.ClusterActive, api.ClusterObserved, api.ClusterPaused} {
		t.Run(string(mode), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, r := newLab(t), &recorder{}
				r.do = l.orch.HandleRefresh
				_, stop := runScheduler(t, l, r)
				defer stop()
				l.must(l.Run(t.Context(), 100*time.Millisecond, 2*time.Second))
				l.setMode(mode)
				l.must(l.FailHost(t.Context(), "h1")) // keeps the deletion from its end
				l.must(l.Delete(t.Context(), toyCluster("t")))
				l.must(l.AddHost(t.Context(), "h4", []string{"disk-4"}))
				l.must(l.Create(t.Context(), toyNode("n4", "h4", "disk-4")))
				l.must(l.Run(t.Context(), time.Second, time.Minute))
				d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t-toy-n4"}}
				if l.Get(t.Context(), d) == nil {
					t.Error("a daemon was made for a cluster that is being deleted")
				}
			})
		})
	}
}
