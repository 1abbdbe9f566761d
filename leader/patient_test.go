package leader

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// mute is a storage system that answers from the nth question on; a question before takes so long.
type mute struct {
	*sim.Toy
	until, asked int
	takes        time.Duration
}

func (m *mute) Observe(ctx context.Context, _ *engine.View, _ engine.SecretReader) (any, error) {
	if m.asked++; m.asked >= m.until {
		return &sim.ToyState{}, nil
	}
	select {
	case <-time.After(m.takes):
		return nil, errors.New("no answer")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestPatient: a storage system is asked until it answers, for five seconds from the first turn on,
// however long others asked before. Plans of one silent cluster are waited for together.
func TestPatient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		view := &engine.View{Cluster: &api.StorageCluster{}, Daemons: make([]api.Daemon, 1)}
		view.Cluster.UID, view.Daemons[0].Status.State = types.UID("1"), api.DaemonRunning
		m := &mute{Toy: sim.NewToy(), until: 3, takes: time.Second}
		o := &engine.Orchestrator{Driver: m}
		if system, err := patient(t.Context(), o, view, nil); system == nil || err != nil || m.asked != 3 {
			t.Errorf("after %d questions: %v, %v", m.asked, system, err)
		}
		m.until, m.takes = 1<<30, 4*time.Second
		go func() { _, _, _ = o.Look(t.Context(), view, nil, time.Minute) }() // a run
		synctest.Wait()
		began, ended := time.Now(), make(chan error, 4)
		m.takes = time.Second
		for range cap(ended) {
			go func() {
				_, err := patient(t.Context(), o, view, nil)
				ended <- err
			}()
		}
		for range cap(ended) {
			if err := <-ended; err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a silent storage system: %v", err)
			}
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("four plans of a silent cluster took %s", took)
		}
	})
}
