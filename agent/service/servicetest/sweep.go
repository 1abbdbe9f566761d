package servicetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// testKilled kills an agent before each of its effects, and amid each program, and has the next one bring the daemon to its end: the same as if nobody had
// been killed. Then the daemon is removed, in which agents are killed as well.
func testKilled(t *testing.T, s *Subject) {
	l := s.New(t)
	effects := s.mustBring(t, l)
	want := s.tree(t, l, false)
	removals := s.mustDestroy(t, l)
	for n := range max(len(effects), len(removals)) {
		var e, r effect
		if n < len(effects) {
			e = effects[n]
		}
		if n < len(removals) {
			r = removals[n]
		}
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			l := s.New(t)
			s.killedAt(t, l, &life{at: n + 1}, e, want)
			s.removalKilledAt(t, l, n+1, r)
		})
		for i, amid := range e.amid() {
			t.Run(fmt.Sprintf("%d amid %d", n+1, i+1), func(t *testing.T) {
				l := s.New(t)
				s.killedAt(t, l, &life{at: n + 1, amid: amid}, e, want)
				s.mustDestroy(t, l)
			})
		}
	}
}

func (s *Subject) killedAt(t *testing.T, l *service.Local, short *life, e effect, want map[string]entry) {
	t.Helper()
	if e.what != "" {
		t.Logf("killed at %s", e)
		if killed, err := s.live(t, l, short, func() error { return s.bring(t.Context(), t, l) }); !killed {
			t.Fatalf("it came to its end otherwise than before: %v", err)
		}
	}
	s.mustBring(t, l)
	if diff := cmp.Diff(want, s.tree(t, l, false)); diff != "" {
		t.Errorf("it came to another end (-want +got):\n%s", diff)
	}
}

func (s *Subject) removalKilledAt(t *testing.T, l *service.Local, at int, e effect) {
	t.Helper()
	if e.what != "" {
		t.Logf("the removal is killed at %s", e)
		if killed, err := s.live(t, l, &life{at: at}, func() error { return s.destroy(t.Context(), t, l) }); !killed {
			t.Fatalf("the removal came to its end otherwise than before: %v", err)
		}
	}
	s.mustDestroy(t, l)
}

// testCutOff ends the context at each effect, and has the daemon removed as it is then.
func testCutOff(t *testing.T, s *Subject) {
	first := s.New(t)
	effects := s.mustBring(t, first)
	s.mustDestroy(t, first)
	for n, e := range effects {
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			t.Logf("cut off at %s", e)
			l := s.New(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var at time.Time
			life := &life{at: n + 1, cut: func() { at = time.Now(); cancel() }}
			_, err := s.live(t, l, life, func() error { return s.bring(ctx, t, l) })
			if took := time.Since(at); took > prompt {
				t.Errorf("it ended %s after it was cut off", took)
			}
			if err == nil {
				s.isWhole(t, l)
			}
			s.mustDestroy(t, l)
		})
	}
}

// killedUntilDone has something killed before its first effect, and again as long as that comes to another one, then before its second, and so on until
// it ends well; and once more, without a death.
func (s *Subject) killedUntilDone(t *testing.T, l *service.Local, do func() error) {
	t.Helper()
	last, n := "", 1
	for {
		short := &life{at: n}
		killed, err := s.live(t, l, short, do)
		if !killed && err == nil {
			break
		}
		if !killed {
			t.Fatalf("after it was killed at %s: %v", last, err)
		}
		if at := short.effects[n-1].what; at != last {
			last = at
			continue
		}
		n++
	}
	if _, err := s.live(t, l, &life{}, do); err != nil {
		t.Errorf("once more: %v", err)
	}
}
