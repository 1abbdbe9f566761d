package atomicfile

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrCut is what Write, Remove, RemoveAll and Rename return after the power was cut; see Cut.
var ErrCut = errors.New("the power was cut")

// Guard stands between this package and the disk: it carries out an effect, or has it fail.
type Guard func(effect func() error) error

// guards are the Guards of tests, by directory; nil outside of tests.
var guards atomic.Pointer[sync.Map]

// Watch is for tests. It has everything that is written, renamed or removed below a directory pass a guard, until end is called. Directories
// that are watched at one time must not lie in each other: one guard alone is passed. The directory "" is all there is.
func Watch(dir string, g Guard) (end func()) {
	guards.CompareAndSwap(nil, &sync.Map{})
	all := guards.Load()
	all.Store(dir, g)
	return func() { all.Delete(dir) }
}

// Cut is for tests. It has everything below a directory fail once so many files were written or removed, as a power cut would have it,
// until restore is called. restore says whether it came to that.
func Cut(dir string, after int) (restore func() bool) {
	var left atomic.Int64
	left.Store(int64(after))
	end := Watch(dir, func(effect func() error) error {
		if left.Add(-1) < 0 {
			return ErrCut
		}
		return effect()
	})
	return func() bool {
		end()
		return left.Load() < 0
	}
}

// Guarded carries out an effect that this package has no function for, past the guard of who watches path: a device that is overwritten, a process
// that is told something.
func Guarded(path string, effect func() error) error { return guarded(path, effect) }

// guarded carries out what changes path, past a guard if there is one.
func guarded(path string, effect func() error) error {
	all := guards.Load()
	if all == nil {
		return effect()
	}
	all.Range(func(dir, g any) bool {
		if !strings.HasPrefix(path, dir.(string)+"/") {
			return true
		}
		inner := effect
		effect = func() error { return g.(Guard)(inner) }
		return false
	})
	return effect()
}
