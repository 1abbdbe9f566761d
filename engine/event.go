package engine

import (
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Event is one difference between two views, or many of one code (see fold). Codes are listed in codes.go.
type Event struct {
	Code    Code
	Object  string
	Message string
	Time    time.Time
	// Objects are all that changed, where they are many; Object is the cluster then.
	Objects []string `json:",omitempty"`
	// form is the message without what differs from one object to the next.
	form string
}

// reportEvents tells of an outcome that differs from was, the one told last; empty means that none was told.
func reportEvents(cluster string, was api.OrchestrationOutcome, report *api.OrchestrationReport) []Event {
	if was == report.Outcome {
		return nil
	}
	if was == "" {
		was = "not known"
	}
	message := "the outcome was " + string(was) + ", now it is " + string(report.Outcome)
	if report.Error != "" {
		message += ": " + report.Error
	}
	return []Event{{
		Code: OrchestrateReport, Object: "cluster/" + cluster, Message: words.Cut(message, maxDecisionMessage),
		Time: report.Started.Time,
	}}
}
