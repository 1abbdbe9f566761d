package doors

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Pace bounds how often each of many does something. It is safe for concurrent use.
type Pace struct {
	limit rate.Limit
	burst int

	mu  sync.Mutex
	who map[string]*rate.Limiter
	// looked is when it was last looked for who may be forgotten.
	looked time.Time
}

// mostPaced is how many are told apart. Those beyond share one pace.
const mostPaced = 4096

// NewPace returns a Pace of so many a second, and so many at once.
func NewPace(limit rate.Limit, burst int) *Pace {
	return &Pace{limit: limit, burst: burst, who: map[string]*rate.Limiter{}}
}

// Allow says whether one may do it now, and counts it if so.
func (p *Pace) Allow(name string) bool { return p.of(name).Allow() }

// Spent says whether one may not do it now. It counts nothing.
func (p *Pace) Spent(name string) bool { return p.of(name).Tokens() < 1 }

func (p *Pace) of(name string) *rate.Limiter {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.who[name]
	if l == nil && len(p.who) >= mostPaced && time.Since(p.looked) > time.Second {
		p.looked = time.Now()
		p.forget()
	}
	if l == nil && len(p.who) >= mostPaced {
		name = ""
		l = p.who[name]
	}
	if l == nil {
		l = rate.NewLimiter(p.limit, p.burst)
		p.who[name] = l
	}
	return l
}

// forget drops those who may do it as often as somebody new. The caller holds the mutex.
func (p *Pace) forget() {
	for name, l := range p.who {
		if l.Tokens() >= float64(p.burst) {
			delete(p.who, name)
		}
	}
}
