// Package turn has a lock that is waited for only until a context ends.
package turn

import (
	"context"
	"fmt"
)

// Turn is such a lock.
type Turn chan struct{}

// New returns a Turn that nobody has.
func New() Turn { return make(Turn, 1) }

// Take waits for the turn, and returns the function that gives it back.
func (t Turn) Take(ctx context.Context) (give func(), err error) {
	select {
	case t <- struct{}{}:
		return func() { <-t }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("while waiting for a turn: %w", context.Cause(ctx))
	}
}
