package stats

import (
	"log/slog"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Story is what the log has of the runs of one cluster: one line when they begin to fail, when they
// fail for another reason, and when they fail no longer. The zero value is ready.
type Story struct {
	failures int
	text     string
}

// End continues the story with a run that has ended. It writes a line if the run differs from the
// one before.
func (s *Story) End(log *slog.Logger, outcome string, failure error) {
	if outcome != string(api.OutcomeFailed) {
		if s.failures > 0 {
			log.Info("orchestration no longer fails", "outcome", outcome, "failures", s.failures)
		}
		*s = Story{}
		return
	}
	text := ""
	if failure != nil {
		text = failure.Error()
	}
	s.failures++
	if s.failures == 1 || text != s.text {
		log.Error("orchestration failed", "failures", s.failures, "error", text)
	}
	s.text = text
}
