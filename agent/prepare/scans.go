package prepare

import (
	"context"
	"sync"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// scanTimeout bounds a scan of the devices; a single disk that does not answer ends it.
const scanTimeout = time.Minute

// Scans shares fresh scans of the devices between daemons that are prepared at the same time. It is
// safe for concurrent use.
type Scans struct {
	rescan func(ctx context.Context) ([]api.Device, error)

	wg sync.WaitGroup
	mu sync.Mutex
	// running is the scan under way, next the one that begins after it.
	running, next *scan
}

type scan struct {
	done    chan struct{}
	devices []api.Device
	err     error
}

// NewScans returns Scans by a function that looks at all devices anew.
func NewScans(rescan func(ctx context.Context) ([]api.Device, error)) *Scans {
	return &Scans{rescan: rescan}
}

// Wait returns when no scan is under way.
func (s *Scans) Wait() { s.wg.Wait() }

// Fresh returns the devices by a scan that began after the call.
func (s *Scans) Fresh(ctx context.Context) ([]api.Device, error) {
	s.mu.Lock()
	mine := s.next
	if mine == nil {
		mine = &scan{done: make(chan struct{})}
		s.next = mine
		if s.running == nil {
			// It ends with its own deadline and not with the first caller's, because others may
			// wait for it.
			s.wg.Go(func() { s.run(context.WithoutCancel(ctx)) })
		}
	}
	s.mu.Unlock()
	select {
	case <-mine.done:
		return mine.devices, mine.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// run scans as long as somebody waits.
func (s *Scans) run(ctx context.Context) {
	for {
		s.mu.Lock()
		s.running, s.next = s.next, nil
		now := s.running
		s.mu.Unlock()
		if now == nil {
			return
		}
		scanCtx, cancel := context.WithTimeout(ctx, scanTimeout)
		now.devices, now.err = s.rescan(scanCtx)
		cancel()
		close(now.done)
	}
}
