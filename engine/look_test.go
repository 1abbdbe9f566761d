package engine_test

import (
	"context"
	"errors"
	"fmt"
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
	takes time.Duration
}

func (p *pending) Observe(ctx context.Context, _ *engine.View, _ engine.SecretReader) (any, error) {
	select {
	case <-time.After(p.takes):
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

// TestLook_turn: the time of a question begins when no one else asks the storage system any more;
// whoever waits for that can give up.
func TestLook_turn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &engine.Orchestrator{Driver: &pending{Toy: sim.NewToy(), takes: 4 * time.Second}}
		answers := make(chan error, 3)
		for range cap(answers) {
			go func() {
				system, began, err := o.Look(t.Context(), lookedAt(), nil, 5*time.Second)
				if took := time.Since(began); system == nil || took != 4*time.Second {
					err = fmt.Errorf("after %s: %v, %w", took, system, err)
				}
				answers <- err
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, began, err := o.Look(ctx, lookedAt(), nil, 5*time.Second)
		if !began.IsZero() || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("whoever gave up asked at %s: %v", began, err)
		}
		for range cap(answers) {
			if err := <-answers; err != nil {
				t.Error(err)
			}
		}
	})
}
