// Package turn lets one call at a time work on a volume.
package turn

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// lastWords is how long a call has after its deadline to say why it was not in time.
const lastWords = 100 * time.Millisecond

// Turns are those of volumes. The zero value is ready for use.
type Turns struct {
	mu   sync.Mutex
	busy map[string]bool
}

// Do calls f unless a call for the volume is under way: that is an error of the code Aborted, as
// CSI wants it. When ctx ends first, f has a moment to say why it takes so long; then Do returns, and
// the volume's turn lasts until f has returned: f may hang in the kernel.
func (t *Turns) Do(ctx context.Context, volume string, f func() error) error {
	if !t.take(volume) {
		return status.Errorf(codes.Aborted, "an earlier call for volume %s is under way; call again", volume)
	}
	done := make(chan error, 1)
	go func() {
		err := f()
		t.give(volume) // before the caller can call again
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(lastWords):
		return status.FromContextError(ctx.Err()).Err()
	}
}

func (t *Turns) take(volume string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[volume] {
		return false
	}
	if t.busy == nil {
		t.busy = map[string]bool{}
	}
	t.busy[volume] = true
	return true
}

func (t *Turns) give(volume string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.busy, volume)
}
