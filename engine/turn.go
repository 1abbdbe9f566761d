package engine

import (
	"context"
	"fmt"
)

// turn is a lock that is waited for only until a context ends.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn, and returns the function that gives it back.
func (t turn) take(ctx context.Context) (give func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("while waiting for another question to the storage system: %w", context.Cause(ctx))
	}
}
