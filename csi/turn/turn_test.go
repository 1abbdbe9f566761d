package turn

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// A call that hangs keeps its turn after its caller has given up.
func TestTurns(t *testing.T) {
	var turns Turns
	hangs, end := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	first := make(chan error)
	over := make(chan struct{})
	go func() {
		first <- turns.Do(ctx, "v", func() error { close(hangs); <-end; close(over); return nil })
	}()
	<-hangs
	none := func() error { return nil }
	if err := turns.Do(t.Context(), "v", none); status.Code(err) != codes.Aborted {
		t.Errorf("a second call: %v", err)
	}
	if err := turns.Do(t.Context(), "w", none); err != nil {
		t.Errorf("another volume: %v", err)
	}
	cancel()
	if err := <-first; status.Code(err) != codes.Canceled {
		t.Errorf("the call that was given up: %v", err)
	}
	if err := turns.Do(t.Context(), "v", none); status.Code(err) != codes.Aborted {
		t.Errorf("while it hangs: %v", err)
	}
	close(end)
	<-over
	for turns.Do(t.Context(), "v", none) != nil { // its turn ends a moment after the call
		if t.Context().Err() != nil {
			t.Fatal("the turn does not end")
		}
	}
}
