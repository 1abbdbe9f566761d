package action

import (
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What is kept of actions that have ended, where their kind does not say.
const (
	keepFor   = 7 * 24 * time.Hour
	keepCount = 200
)

// Expendable returns the actions that ended longer ago than their kind has them kept, and the oldest of more than 200 that
// ended and whose kind says nothing of that.
func Expendable(actions []*api.Action, kinds map[string]Kind, now time.Time) []*api.Action {
	var ended, expendable []*api.Action
	for _, a := range actions {
		switch keep := kinds[a.Spec.Kind].KeepFor; {
		case !a.Status.State.Final():
		case keep == 0:
			ended = append(ended, a)
		case now.Sub(finishedAt(a)) > keep:
			expendable = append(expendable, a)
		}
	}
	slices.SortFunc(ended, func(a, b *api.Action) int { return finishedAt(b).Compare(finishedAt(a)) })
	for i, a := range ended {
		if i >= keepCount || now.Sub(finishedAt(a)) > keepFor {
			return append(expendable, ended[i:]...)
		}
	}
	return expendable
}

func finishedAt(a *api.Action) time.Time {
	if a.Status.Finished == nil {
		return a.CreationTimestamp.Time
	}
	return a.Status.Finished.Time
}
