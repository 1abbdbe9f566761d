package engine

import (
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Event is one difference between two views. Codes are listed in codes.go.
type Event struct {
	Code    Code
	Object  string
	Message string
	Time    time.Time
}

// reportEvents tells of an outcome that differs from the last report's.
func reportEvents(cluster *api.StorageCluster, report *api.OrchestrationReport) []Event {
	was := "not known"
	if last := cluster.Status.Report; last != nil {
		if last.Outcome == report.Outcome {
			return nil
		}
		was = string(last.Outcome)
	}
	message := "the outcome was " + was + ", now it is " + string(report.Outcome)
	if report.Error != "" {
		message += ": " + report.Error
	}
	return []Event{{
		Code: OrchestrateReport, Object: "cluster/" + cluster.Name, Message: truncate(message, maxDecisionMessage),
		Time: report.Started.Time,
	}}
}
