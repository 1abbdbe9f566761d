package action

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// askAgain is how long after an answer that something is against an action it is asked again.
	// Where several wait for one cluster they are asked again one after the other, each the later the more they are: every answer costs
	// the storage system and its cluster's orchestration time.
	askAgain = 5 * time.Second
	// answerLasts is for how long an action may begin of which it was said that it may.
	answerLasts = 5 * time.Second
)

// answer is what was said of whether an action may begin. It holds as long as nothing else comes into the action's way.
type answer struct {
	// asking is set while it is being asked.
	asking, known bool
	against       string
	at            time.Time
}

// against is what is known of the actions that were asked about; nil when nobody is asked.
func (x *running) against(now time.Time) map[types.UID]string {
	if x.Ask == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	all := map[types.UID]string{}
	for uid, t := range x.tasks {
		if s := t.answer; s.known && (s.against != "" || now.Sub(s.at) < answerLasts) {
			all[uid] = s.against
		}
	}
	return all
}

// nowAsked notes of which actions is to be asked, each with how many of its cluster there are, and forgets what was said of others.
func (x *running) nowAsked(asked map[types.UID]int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.asked = asked
	for uid, t := range x.tasks {
		if asked[uid] > 0 || t.answer == (answer{}) {
			continue
		}
		if t.answer.asking {
			t.cancel()
		}
		t.answer, t.at = answer{}, time.Time{}
	}
}

// ask asks whether an action may begin, and says when to ask again. That nobody can say it is waited for as well.
func (x *running) ask(ctx context.Context, a *api.Action, t *task) (time.Duration, error) {
	call, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	against, err := x.said(call, a)
	if err != nil {
		against = "the check whether it may begin: " + err.Error()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if t.answer.asking = false; ctx.Err() == nil {
		t.answer = answer{known: true, against: bounded(against, maxText), at: time.Now()}
	}
	return askAgain * time.Duration(max(1, x.asked[a.UID])), err
}

// said calls Ask, which may have a fault like any other part of a kind.
func (x *running) said(ctx context.Context, a *api.Action) (against string, err error) {
	defer caught(a, a.Spec.Kind, &err)
	return x.Ask(ctx, a)
}
