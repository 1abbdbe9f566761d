package leader

import (
	"context"
	"log/slog"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// follower is a server that does not lead. It goes by its own clock alone: a lease ends Times.Lease
// after the follower saw that it was written.
type follower struct {
	lock   *lock
	server string
	log    *slog.Logger

	lease *coordinationv1.Lease
	seen  time.Time
	// blind is set while the Lease cannot be read.
	blind bool
}

// await returns when this server may try to take the Lease, with the Lease as it was seen last, or
// when ctx ends.
func (f *follower) await(ctx context.Context) *coordinationv1.Lease {
	for ctx.Err() == nil {
		lease, err := f.read(ctx)
		if err != nil {
			f.unread(err)
			pause(ctx, f.lock.times.Retry)
			continue
		}
		f.blind = false
		f.saw(lease)
		if f.free() || f.follow(ctx) {
			return f.lease
		}
	}
	return f.lease
}

// unread tells why the Lease cannot be read. Once is enough until it was read again.
func (f *follower) unread(err error) {
	level := slog.LevelDebug
	if !f.blind {
		level = slog.LevelInfo
	}
	f.blind = true
	f.log.Log(context.Background(), level, "the lease cannot be read; trying again", "error", err)
}

func (f *follower) read(ctx context.Context) (*coordinationv1.Lease, error) {
	ctx, cancel := context.WithTimeout(ctx, f.lock.times.Deadline)
	defer cancel()
	return f.lock.get(ctx)
}

// saw notes a Lease. It counts as written now unless the same was seen before.
func (f *follower) saw(lease *coordinationv1.Lease) {
	if f.lease != nil && f.lease.ResourceVersion == lease.ResourceVersion && f.lease.UID == lease.UID {
		return
	}
	if who := holder(lease); who != "" && (f.lease == nil || who != holder(f.lease)) {
		f.log.Info("a leader was elected", "leader", who)
	}
	f.lease, f.seen = lease, time.Now()
}

// free says whether the Lease can be taken: nobody has it, it has ended, or an earlier life of this
// very server has it. That life is over, because two processes cannot have one data directory, and
// what it may have left on its way has another token.
func (f *follower) free() bool {
	who := holder(f.lease)
	cut := strings.LastIndexByte(who, '_')
	return who == "" || who[:max(cut, 0)] == f.server || f.left() <= 0
}

func (f *follower) left() time.Duration { return f.lock.times.Lease - time.Since(f.seen) }

// follow watches until the Lease can be taken, and returns true then. It returns false when the
// Lease has to be read again.
func (f *follower) follow(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	end := time.NewTimer(f.left())
	defer end.Stop()
	w, err := f.lock.watch(ctx, f.lease)
	if err != nil {
		f.log.Debug("the lease cannot be watched; reading it again", "error", err)
		pause(ctx, min(f.lock.times.Retry, max(f.left(), 0)))
		return f.left() <= 0
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-end.C:
			return true
		case e := <-w.ResultChan():
			lease, ok := e.Object.(*coordinationv1.Lease)
			if !ok || e.Type == watch.Deleted {
				pause(ctx, min(f.lock.times.Retry, max(f.left(), 0)))
				return false
			}
			f.saw(lease)
			if f.free() {
				return true
			}
			end.Reset(f.left())
		}
	}
}
