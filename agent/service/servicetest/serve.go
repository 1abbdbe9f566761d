package servicetest

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// serve has a daemon made ready and serve.
func (s *Subject) serve(t *testing.T) *service.Local {
	t.Helper()
	l := s.New(t)
	s.mustBring(t, l)
	if s.Serve != nil {
		s.Serve(t, l)
	}
	return l
}

func testReport(t *testing.T, s *Subject) {
	r, ok := s.agent(t).(service.Reporter)
	if !ok {
		return // it makes none
	}
	if s.Serve == nil {
		t.Log("not looked at: another subject of the agent serves")
		return
	}
	l := s.serve(t)
	report := func(ctx context.Context) (text string, err error) {
		_, err = s.live(t, l, &life{}, func() (err error) {
			text, err = r.Report(ctx, l)
			return err
		})
		return text, err
	}
	s.killedUntilDone(t, l, func() error {
		_, err := r.Report(t.Context(), l)
		return err
	})
	first, err := report(t.Context())
	if err != nil || len(words.JSON(first)) > api.MaxReport {
		t.Fatalf("a report of %d bytes: %v", len(first), err)
	}
	before := s.tree(t, l, true)
	if second, err := report(t.Context()); err != nil || first != second {
		t.Errorf("nothing changed, and the report is another one: %v (-first +second):\n%s", err, cmp.Diff(first, second))
	}
	if diff := cmp.Diff(withoutLogs(before), withoutLogs(s.tree(t, l, true))); diff != "" {
		t.Errorf("a report changed something (-before +after):\n%s", diff)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	if text, err := report(ctx); err == nil && text != first {
		t.Errorf("with an ended context it says %q, and before %q", text, first)
	}
	if took := time.Since(begin); took > prompt {
		t.Errorf("with an ended context it took %s", took)
	}
}

// withoutLogs leaves out what the service itself writes of all that it is asked.
func withoutLogs(tree map[string]entry) map[string]entry {
	maps.DeleteFunc(tree, func(path string, _ entry) bool { return strings.HasPrefix(path, "log/") })
	return tree
}

// mustReport has a report made, if the agent makes any.
func (s *Subject) mustReport(t *testing.T, l *service.Local) {
	t.Helper()
	r, ok := s.agent(t).(service.Reporter)
	if !ok {
		return
	}
	if _, err := s.live(t, l, &life{}, func() error {
		text, err := r.Report(t.Context(), l)
		if len(words.JSON(text)) > api.MaxReport {
			t.Errorf("a report of %d bytes", len(text))
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// testCommands has each command killed at each of its effects, and carried out twice.
func testCommands(t *testing.T, s *Subject) {
	p, ok := s.agent(t).(service.Performer)
	if !ok {
		return // it takes none
	}
	l := s.serve(t)
	before := s.tree(t, l, true)
	_, err := s.live(t, l, &life{}, func() error {
		_, err := p.Perform(t.Context(), l, service.Command{Verb: "polish", Object: "it"})
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "polish") || !strings.Contains(err.Error(), " ") {
		t.Errorf("an unknown command: %v", err)
	}
	if diff := cmp.Diff(before, s.tree(t, l, true)); diff != "" {
		t.Errorf("an unknown command changed something (-before +after):\n%s", diff)
	}
	if s.Commands == nil {
		return // another subject of the agent has them
	}
	for _, cmd := range s.Commands(l) {
		t.Run(strings.TrimSpace(cmd.Verb+" "+cmd.Object), func(t *testing.T) {
			message := ""
			s.killedUntilDone(t, l, func() (err error) {
				message, err = p.Perform(t.Context(), l, cmd)
				return err
			})
			if message == "" {
				t.Error("nothing is said of what came of it")
			}
			s.mustReport(t, l) // as an agent does after each
		})
	}
}
