package leader

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/holdfast-storage/holdfast/internal/fence"
)

// fencedLock is a Lease whose holder is the value of a fence as well, at each moment: both are written at once.
//
// A renewal sets the fence again. That is safe because the Lease is written under the condition that nobody else wrote it,
// and it mends what is missing after a database was restored.
type fencedLock struct{ resourcelock.LeaseLock }

// Create makes the Lease.
func (l *fencedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.LeaseLock.Create(l.setting(ctx, record), record)
}

// Update writes the Lease; a record without a holder releases it, and removes the fence.
func (l *fencedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.LeaseLock.Update(l.setting(ctx, record), record)
}

func (l *fencedLock) setting(ctx context.Context, record resourcelock.LeaderElectionRecord) context.Context {
	return fence.Setting(ctx, fence.Token{Name: l.LeaseMeta.Name, Value: record.HolderIdentity})
}
