package runtime

import (
	"context"
	"errors"
	"sync"
)

// Turns lets calls for one name go on one after the other, and those for different names at one time. The zero value is ready for use.
type Turns struct {
	mu    sync.Mutex
	taken map[string]chan struct{}
}

// Take waits for the turn of a name, until ctx ends or open does, the runtime's own context. The turn is over when done is called.
func (t *Turns) Take(ctx, open context.Context, name string) (done func(), err error) {
	t.mu.Lock()
	if t.taken == nil {
		t.taken = map[string]chan struct{}{}
	}
	turn, ok := t.taken[name]
	if !ok {
		turn = make(chan struct{}, 1)
		t.taken[name] = turn
	}
	t.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, nil
	case <-open.Done():
		return nil, errors.New("the runtime is closed")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
