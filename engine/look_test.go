package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// pending answers each question after so long, if that is within the time of the question.
type pending struct {
	*sim.Toy
	takes func(nth int32) time.Duration
	asked atomic.Int32
}

func (p *pending) Observe(ctx context.Context, _ *engine.View, _ engine.SecretReader) (any, error) {
	select {
	case <-time.After(p.takes(p.asked.Add(1))):
		return &sim.ToyState{}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func lookedAt() *engine.View {
	v := &engine.View{Cluster: toyCluster("t"), Daemons: make([]api.Daemon, 1)}
	v.Cluster.UID, v.Daemons[0].Status.State = types.UID("1"), api.DaemonRunning
	return v
}

// TestLook_turn: the time of a question begins when no one else asks the storage system any more.
func TestLook_turn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &pending{Toy: sim.NewToy(), takes: func(int32) time.Duration { return 4 * time.Second }}
		o := &engine.Orchestrator{Driver: d}
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() {
				system, err := o.Look(t.Context(), lookedAt(), nil, 5*time.Second)
				if system == nil && err == nil {
					err = errors.New("no answer")
				}
				answers <- err
			}()
		}
		for range cap(answers) {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestLook_patience: a storage system that does not answer is asked again within the time that Look
// has, counted from its first turn; whoever waits for a turn can give up.
func TestLook_patience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &pending{Toy: sim.NewToy(), takes: func(nth int32) time.Duration { return []time.Duration{time.Hour, time.Millisecond}[nth-1] }}
		o := &engine.Orchestrator{Driver: d, ObserveTimeout: time.Second}
		system, err := o.Look(t.Context(), lookedAt(), nil, 5*time.Second)
		if system == nil || err != nil || d.asked.Load() != 2 {
			t.Errorf("after %d questions: %v, %v", d.asked.Load(), system, err)
		}
		d.takes = func(int32) time.Duration { return time.Hour }
		began := time.Now()
		go func() { _, _ = o.Look(t.Context(), lookedAt(), nil, 5*time.Second) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err = o.Look(ctx, lookedAt(), nil, 5*time.Second)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 100*time.Millisecond {
			t.Errorf("whoever waits for a turn gave up after %s: %v", time.Since(began), err)
		}
		time.Sleep(time.Minute)
	})
}
