// Package turn lets tests of real systems run side by side. Such a test mostly waits, so several of
// them share the machine; how many depends on the processor time and the memory that are free at
// the moment, not on a fixed number.
//
//	var queue turn.Queue
//
//	func TestSomething(t *testing.T) {
//		t.Parallel()
//		queue.Begin(t, turn.Need{Memory: 3 << 30, Length: time.Minute})
//		...
package turn

import (
	"cmp"
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	// pollEvery is how often a waiting test looks whether it may begin.
	pollEvery = 250 * time.Millisecond
	// settleTime is how long a test has the machine for its start before another one begins: its
	// load does not show before.
	settleTime = 12 * time.Second
	// growTime is how long a test takes at most to use the memory that it needs.
	growTime = time.Minute
	// idleShare is the share of the processors' time that must be free for one more test. Where it
	// was a quarter, a slow machine had ten processes waiting for each processor, and tests failed.
	idleShare = 0.35
	// spareMemory stays free for everything else on the machine, in bytes.
	spareMemory = 2 << 30
)

// Need is what a test takes of the machine.
type Need struct {
	// Memory is in bytes.
	Memory int64
	// Length is about how long the test takes alone. The longest test begins first, so that none is
	// left alone at the end.
	Length time.Duration
	// Alone is set for a test that computes all the time, as one with an emulated machine does:
	// beside others both would wait too long for what they wait for. Such tests begin when all
	// others have ended.
	Alone bool
}

// Machine says how much of the machine is free.
type Machine interface {
	// Idle is the share of the processors' time that was free in the last seconds, from 0 to 1.
	Idle() float64
	// Available is the memory that can be had, in bytes.
	Available() int64
}

// Queue orders the tests that wait for room. The zero value looks at this machine. Its methods are
// safe for concurrent use.
type Queue struct {
	// Machine is looked at; nil means the one that this program runs on.
	Machine Machine

	mu      sync.Mutex
	waiting []*entry
	running []*entry
}

type entry struct {
	Need
	began time.Time
}

// Begin waits until there is room for the test, which has called t.Parallel, and gives the room
// back at its end. The first test never waits.
func (q *Queue) Begin(t testing.TB, need Need) {
	t.Helper()
	start := time.Now()
	e := q.join(need)
	for !q.admit(e) {
		time.Sleep(pollEvery)
	}
	t.Cleanup(func() { q.leave(e) })
	if waited := time.Since(start); waited > time.Second {
		t.Logf("waited %.0f s for room on the machine", waited.Seconds())
	}
}

// join puts a test in its place: the longest first, and after all others those that run alone.
func (q *Queue) join(need Need) *entry {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := &entry{Need: need}
	q.waiting = append(q.waiting, e)
	slices.SortStableFunc(q.waiting, func(a, b *entry) int {
		return cmp.Or(cmp.Compare(lone(a), lone(b)), cmp.Compare(b.Length, a.Length))
	})
	return e
}

// lone is 1 for a test that runs alone, and 0 for one that does not.
func lone(e *entry) int {
	if e.Alone {
		return 1
	}
	return 0
}

// admit lets the test begin if it is the next one and there is room.
func (q *Queue) admit(e *entry) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.Machine == nil {
		q.Machine = &host{}
	}
	idle := q.Machine.Idle() // each look counts as a sample, also those of tests that are not next
	if q.waiting[0] != e || !q.room(e, idle, time.Now()) {
		return false
	}
	e.began = time.Now()
	q.waiting, q.running = q.waiting[1:], append(q.running, e)
	return true
}

// room says whether the machine has what the test needs, beside what tests that only just began
// still take.
func (q *Queue) room(e *entry, idle float64, now time.Time) bool {
	if len(q.running) == 0 {
		return true
	}
	if e.Alone {
		return false
	}
	promised := e.Memory + spareMemory
	for _, r := range q.running {
		if r.Alone || now.Sub(r.began) < settleTime {
			return false
		}
		if now.Sub(r.began) < growTime {
			promised += r.Memory
		}
	}
	return idle >= idleShare && q.Machine.Available() >= promised
}

func (q *Queue) leave(e *entry) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = slices.DeleteFunc(q.running, func(r *entry) bool { return r == e })
}
