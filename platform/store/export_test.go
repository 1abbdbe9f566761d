package store

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// LeaveEvents has Emit leave all events to what goes on in the background.
func (s *Store) LeaveEvents() { s.Slice = 0 }

// RemoveUnchanged removes an object that is as it was read.
func (s *Store) RemoveUnchanged(ctx context.Context, o client.Object) error {
	return removeUnchanged(ctx, s.api, o)
}
