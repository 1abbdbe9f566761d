package action

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// stuckAfter is after how many failures in a row to write or carry on one action it is stuck: others do not wait for it any
// longer, and people are told.
const stuckAfter = 4

// tellDeadline bounds how long it may take to tell that an action is stuck.
const tellDeadline = 30 * time.Second

// Stats are what a Runner counts.
type Stats struct {
	// Stuck is how many actions there are that can neither be written nor carried on.
	Stuck atomic.Int64
}

// pauseOf is the pause after so many failures in a row to write or carry on an action.
func pauseOf(a *api.Action, failures int) time.Duration {
	return backoff.Pause(a.Namespace+"/"+a.Name, failures)
}

// ready says whether the schedule counts with an action. One that is set aside waits for nothing and nothing waits for it,
// unless it is under way: then it is in the way of others still.
func (x *running) ready(a *api.Action, now time.Time) bool {
	underWay := a.Status.State == api.ActionNew || a.Status.State == api.ActionRunning
	unchecked := a.Status.State == "" && x.checkOf(a) != nil && !x.checked(a)
	return underWay || !unchecked && !x.asideUntil(a).After(now)
}

// asideUntil is until when nobody tries to write what the schedule says of an action.
func (x *running) asideUntil(a *api.Action) time.Time {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tasks[a.UID]; t != nil {
		return t.aside
	}
	return time.Time{}
}

// written notes that what the schedule says of an action could be written.
func (x *running) written(a *api.Action) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.task(a)
	t.refused, t.aside = 0, time.Time{}
	x.countStuck()
}

// dropMoot forgets that what the schedule said of an action could not be written, where it does not say so any more.
func (x *running) dropMoot(ready []*api.Action, wanted []Transition, held map[types.UID]bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, a := range ready {
		t := x.tasks[a.UID]
		if t == nil || t.refused == 0 || held[a.UID] || slices.ContainsFunc(wanted, func(w Transition) bool { return w.Action.UID == a.UID }) {
			continue
		}
		t.refused, t.aside = 0, time.Time{}
	}
	x.countStuck()
}

// unwritten decides what follows when the schedule's word on an action could not be written. A few times all wait for it,
// because that which comes after it was decided with it in mind; then it alone is set aside, and tried again after a pause.
func (x *running) unwritten(ctx context.Context, a *api.Action, err error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.task(a)
	if t.refused++; t.refused >= stuckAfter {
		t.aside = time.Now().Add(pauseOf(a, t.refused))
		x.tellStuck(ctx, a, t.refused, err)
		x.signal()
		return nil
	}
	if errors.Is(err, ErrConflict) && t.refused == 1 {
		// What changed it gave a signal as well, which may have come before. A second conflict may come of a copy that lags behind:
		// it has a pause to catch up.
		x.signal()
		return nil
	}
	return err
}

// tellStuck tells once that an action is stuck. The caller holds the mutex.
func (x *running) tellStuck(ctx context.Context, a *api.Action, failures int, err error) {
	x.countStuck()
	if failures != stuckAfter || ctx.Err() != nil {
		return
	}
	x.Log.Error("an action is stuck; retrying it; other actions continue", "action", a.Namespace+"/"+a.Name,
		"kind", a.Spec.Kind, "error", err)
	if x.OnStuck == nil {
		return
	}
	x.work.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, tellDeadline)
		defer cancel()
		if e := x.OnStuck(ctx, a, err); e != nil && ctx.Err() == nil {
			x.Log.Warn("cannot record that an action is stuck", "action", a.Namespace+"/"+a.Name, "error", e)
		}
	})
}

// countStuck counts the actions that are stuck. The caller holds the mutex.
func (x *running) countStuck() {
	if x.Stats == nil {
		return
	}
	n := int64(0)
	for _, t := range x.tasks {
		if max(t.refused, t.failures) >= stuckAfter {
			n++
		}
	}
	x.Stats.Stuck.Store(n)
}
