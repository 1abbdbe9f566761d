package join

import (
	"golang.org/x/time/rate"

	"github.com/holdfast-storage/holdfast/control/doors"
)

// limits bound what those who want to join cost. Joiners ask again each second, so a fleet that
// joins at once is only spread.
type limits struct {
	// all are the requests that are looked at, and working those that are at one time.
	all     *rate.Limiter
	working chan struct{}
	// failed are the refusals of one address, told those that are logged.
	failed *doors.Pace
	told   *rate.Limiter
	note   func(why, whose string)
}

const (
	// Looking at a request takes a read of etcd, and a join some writes.
	allPerSecond, allAtOnce = 100, 500
	atOnce                  = 32
	// A person who tries tokens is not held up; a program that does is.
	failedPerSecond, failedAtOnce = 1, 30
	toldPerSecond, toldAtOnce     = 2, 20
)

func (h *Handler) limits() *limits {
	h.limitsOnce.Do(func() {
		h.limitsOf = &limits{
			all: rate.NewLimiter(allPerSecond, allAtOnce), working: make(chan struct{}, atOnce),
			failed: doors.NewPace(failedPerSecond, failedAtOnce), told: rate.NewLimiter(toldPerSecond, toldAtOnce),
			note: h.Refused,
		}
	})
	return h.limitsOf
}

// enter says whether a request from an address is looked at. The caller calls done after that.
func (l *limits) enter(from string) (done func(), ok bool) {
	if l.failed.Spent(from) || !l.all.Allow() {
		return l.turnAway(from)
	}
	select {
	case l.working <- struct{}{}:
		return func() { <-l.working }, true
	default:
		return l.turnAway(from)
	}
}

func (l *limits) turnAway(from string) (done func(), ok bool) {
	if l.note != nil {
		l.note("joins", from)
	}
	return nil, false
}

// refused counts a refusal, and says whether it is logged.
func (l *limits) refused(from string) bool {
	l.failed.Allow(from)
	return l.told.Allow()
}
