package servicetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/test/tier"
)

// oneOf is of how many places 'make test' tries one.
const oneOf = 5

// testKilled kills an agent before each of its effects, and amid each program, and has the next one bring the daemon to its end: the same as if nobody had
// been killed. Then the daemon is removed, in which agents are killed as well.
func testKilled(t *testing.T, s *Subject) {
	l := s.New(t)
	effects := s.mustBring(t, l)
	want := s.tree(t, l, false)
	removals := s.mustDestroy(t, l)
	for n := range max(len(effects), len(removals)) {
		if !tier.Tries(t, n, oneOf) {
			continue
		}
		var e, r effect
		if n < len(effects) {
			e = effects[n]
		}
		if n < len(removals) {
			r = removals[n]
		}
		t.Run(fmt.Sprint(n+1), func(t *testing.T) {
			l := s.New(t)
			s.killedAt(t, l, &life{at: n + 1}, e, effects)
			s.comesToSame(t, l, want)
			s.removalKilledAt(t, l, n+1, r, removals)
		})
		for i, amid := range e.amid() {
			t.Run(fmt.Sprintf("%d amid %d", n+1, i+1), func(t *testing.T) {
				l := s.New(t)
				s.killedAt(t, l, &life{at: n + 1, amid: amid}, e, effects)
				s.comesToSame(t, l, want)
				s.mustDestroy(t, l)
			})
		}
	}
}

// killedAt has a daemon brought to its end, and the agent killed at an effect. all are the effects of a life to its end.
func (s *Subject) killedAt(t *testing.T, l *service.Local, short *life, e effect, all []effect) {
	t.Helper()
	if e.what == "" {
		return
	}
	t.Logf("killed at %s", e)
	killed, err := s.live(t, l, short, func() error { return s.bring(t.Context(), t, l) })
	mustBeKilled(t, killed, err, all, short.effects)
}

// comesToSame has the next agent bring a daemon to the end that it comes to when nobody is killed.
func (s *Subject) comesToSame(t *testing.T, l *service.Local, want map[string]entry) {
	t.Helper()
	s.mustBring(t, l)
	if diff := cmp.Diff(want, s.tree(t, l, false)); diff != "" {
		t.Errorf("it came to another end (-want +got):\n%s", diff)
	}
}

func (s *Subject) removalKilledAt(t *testing.T, l *service.Local, at int, e effect, all []effect) {
	t.Helper()
	if e.what != "" {
		t.Logf("the removal is killed at %s", e)
		short := &life{at: at}
		killed, err := s.live(t, l, short, func() error { return s.destroy(t.Context(), t, l) })
		mustBeKilled(t, killed, err, all, short.effects)
	}
	s.mustDestroy(t, l)
}

// mustBeKilled fails the test where an agent came to its end otherwise than before. One that tried something less often than that did is not meant.
func mustBeKilled(t *testing.T, killed bool, err error, before, now []effect) {
	t.Helper()
	switch {
	case killed:
	case err == nil && sameButRepeats(before, now):
		t.Logf("it was not killed: this time it came to its end with %d effects, and before with %d, of which some were repeated", len(now), len(before))
	default:
		t.Fatalf("it came to its end otherwise than before: %v", err)
	}
}

func sameButRepeats(a, b []effect) bool { return slices.Equal(placesOf(a), placesOf(b)) }

func placesOf(effects []effect) (places []string) {
	for _, e := range effects {
		places = append(places, e.where)
	}
	slices.Sort(places)
	return slices.Compact(places)
}

// testCutOff ends the context at each effect, and has the daemon removed as it is then.
func testCutOff(t *testing.T, s *Subject) {
	first := s.New(t)
	effects := s.mustBring(t, first)
	s.mustDestroy(t, first)
	for n, e := range effects {
		if !tier.Tries(t, n, oneOf) {
			continue
		}
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

// mostDeaths is how often killedUntilDone kills: more than any command has effects, several times over.
const mostDeaths = 300

// killedUntilDone has something killed before its first effect, and again as long as that comes to another one, then before its second, and so on until
// it ends well; and once more, without a death.
func (s *Subject) killedUntilDone(t *testing.T, l *service.Local, do func() error) {
	t.Helper()
	last, n, done := "", 1, false
	for range mostDeaths {
		short := &life{at: n}
		killed, err := s.live(t, l, short, do)
		if done = !killed && err == nil; done {
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
	if !done {
		t.Fatalf("after %d deaths, the last one at %s, it has not come to its end", mostDeaths, last)
	}
	if _, err := s.live(t, l, &life{}, do); err != nil {
		t.Errorf("once more: %v", err)
	}
}
