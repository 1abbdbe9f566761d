package atomicfile

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrCut is what Write and Remove return after the power was cut; see Cut.
var ErrCut = errors.New("the power was cut")

// cuts are the directories of tests that cut the power; nil outside of tests.
var cuts atomic.Pointer[sync.Map]

// Cut is for tests. It has everything below a directory fail once so many files were written or removed, as a power cut would have it,
// until restore is called. restore says whether it came to that.
func Cut(dir string, after int) (restore func() bool) {
	cuts.CompareAndSwap(nil, &sync.Map{})
	all := cuts.Load()
	left := &atomic.Int64{}
	left.Store(int64(after))
	all.Store(dir, left)
	return func() bool {
		all.Delete(dir)
		return left.Load() < 0
	}
}

// mayGoOn returns ErrCut when the power was cut where path lies.
func mayGoOn(path string) (err error) {
	all := cuts.Load()
	if all == nil {
		return nil
	}
	all.Range(func(dir, left any) bool {
		if strings.HasPrefix(path, dir.(string)+"/") && left.(*atomic.Int64).Add(-1) < 0 {
			err = fmt.Errorf("while writing %s: %w", path, ErrCut)
		}
		return err == nil
	})
	return err
}
