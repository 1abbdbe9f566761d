package action

import (
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What is kept of actions that have ended.
const (
	keepFor   = 7 * 24 * time.Hour
	keepCount = 200
)

// Expendable returns the actions that ended more than 7 days ago, and the oldest of more than 200 that ended.
func Expendable(actions []*api.Action, now time.Time) []*api.Action {
	var ended []*api.Action
	for _, a := range actions {
		if a.Status.State.Final() {
			ended = append(ended, a)
		}
	}
	slices.SortFunc(ended, func(a, b *api.Action) int { return finishedAt(b).Compare(finishedAt(a)) })
	for i, a := range ended {
		if i >= keepCount || now.Sub(finishedAt(a)) > keepFor {
			return ended[i:]
		}
	}
	return nil
}

func finishedAt(a *api.Action) time.Time {
	if a.Status.Finished == nil {
		return a.CreationTimestamp.Time
	}
	return a.Status.Finished.Time
}
