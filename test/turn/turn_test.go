package turn

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// fake is a machine with so much to spare.
type fake struct {
	idle      float64
	available int64
}

func (f *fake) Idle() float64    { return f.idle }
func (f *fake) Available() int64 { return f.available }

// TestBegin has tests join a machine and looks which of them begin.
func TestBegin(t *testing.T) {
	const gib = 1 << 30
	for _, test := range []struct {
		name    string
		machine fake
		running Need
		next    Need
		after   time.Duration // since the running one began
		begins  bool
	}{
		{"room", fake{0.5, 10 * gib}, Need{Memory: 3 * gib}, Need{Memory: 3 * gib}, 20 * time.Second, true},
		{"the first has only just begun", fake{0.5, 10 * gib}, Need{}, Need{}, time.Second, false},
		{"the first still starts", fake{0.5, 10 * gib}, Need{}, Need{}, 10 * time.Second, false},
		{"rather busy", fake{0.3, 10 * gib}, Need{}, Need{}, time.Hour, false},
		{"busy", fake{0.1, 10 * gib}, Need{}, Need{}, time.Hour, false},
		{"no memory", fake{0.5, 4 * gib}, Need{}, Need{Memory: 3 * gib}, time.Hour, false},
		{"memory is promised", fake{0.5, 7 * gib}, Need{Memory: 3 * gib}, Need{Memory: 3 * gib}, 20 * time.Second, false},
		{"it runs alone", fake{1, 10 * gib}, Need{}, Need{Alone: true}, time.Hour, false},
		{"one runs alone", fake{1, 10 * gib}, Need{Alone: true}, Need{}, time.Hour, false},
		{"memory is taken", fake{0.5, 7 * gib}, Need{Memory: 3 * gib}, Need{Memory: 3 * gib}, time.Hour, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &Queue{Machine: &test.machine}
				if first := q.join(test.running); !q.admit(first) {
					t.Fatal("the first one does not begin")
				}
				time.Sleep(test.after)
				if got := q.admit(q.join(test.next)); got != test.begins {
					t.Errorf("it begins: %t, want %t", got, test.begins)
				}
			})
		})
	}
}

// TestBegin_order has the longest begin first, and each when the one before it has ended.
func TestBegin_order(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &Queue{Machine: &fake{}} // busy: one at a time
		first := q.join(Need{})
		q.admit(first)
		for _, need := range []Need{{Length: 1}, {Length: 9, Alone: true}, {Length: 3}, {Length: 2}} {
			q.join(need)
		}
		var order []time.Duration
		q.leave(first)
		for len(q.waiting) > 0 {
			e := q.waiting[0]
			if !q.admit(e) {
				t.Fatal("the next one does not begin although nothing runs")
			}
			order = append(order, e.Length)
			q.leave(e)
		}
		if want := []time.Duration{3, 2, 1, 9}; !slices.Equal(order, want) {
			t.Errorf("the order is %v, want %v", order, want)
		}
	})
}

// TestHost reads this machine.
func TestHost(t *testing.T) {
	var h host
	if got := h.Available(); got <= 0 {
		t.Errorf("%d bytes are available", got)
	}
	if s := readTimes(); s.total <= 0 || s.idle <= 0 || s.idle > s.total {
		t.Errorf("the processors' times are %+v", s)
	}
	if got := h.Idle(); got != 0 {
		t.Errorf("%v is idle, before the machine was watched", got)
	}
	h.samples[0].at = h.samples[0].at.Add(-2 * idleWindow)
	h.samples[0].total -= 100
	if got := h.Idle(); got < 0 || got > 1 {
		t.Errorf("%v is idle", got)
	}
}
