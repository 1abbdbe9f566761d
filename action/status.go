package action

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/api/kstatus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Reasons of the condition Effective.
const (
	// ReasonPending: it has not ended yet.
	ReasonPending = "Pending"
	// ReasonConfirmed: what the action works on confirms that it is so.
	ReasonConfirmed = "Confirmed"
	ReasonCancelled = "Cancelled"
	ReasonRejected  = "Rejected"
	ReasonExpired   = "Expired"
	ReasonTimedOut  = "TimedOut"
	ReasonRefused   = "Refused"
	ReasonUnknown   = "UnknownKind"
	ReasonLost      = "Lost"
)

// Bounds of texts, as the kinds declare them.
const (
	maxMessage = 2048
	maxText    = 1024
	maxUnit    = 32
)

// defaultDuration counts where neither the action nor its kind says how long it may wait or take.
const defaultDuration = 24 * time.Hour

func timeoutOf(a *api.Action, k Kind) time.Duration { return first(a.Spec.Timeout.Duration, k.Timeout) }

func expiryOf(a *api.Action, k Kind) time.Duration {
	return first(a.Spec.ExpiresAfter.Duration, k.ExpiresAfter)
}

func first(durations ...time.Duration) time.Duration {
	for _, d := range durations {
		if d > 0 {
			return d
		}
	}
	return defaultDuration
}

// stamp rounds a time to what the API stores, so that it compares equal when it comes back.
func stamp(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}

func bounded(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit-3], "") + "…"
}

// effective sets the condition Effective.
func effective(s *api.ActionStatus, status metav1.ConditionStatus, reason, message string, now time.Time) {
	meta.SetStatusCondition(&s.Conditions, metav1.Condition{
		Type: api.ActionEffective, Status: status, Reason: reason, Message: bounded(message, maxMessage), LastTransitionTime: *stamp(now),
	})
}

// finish writes a final state.
func finish(s *api.ActionStatus, state api.ActionState, reason, message string, now time.Time) {
	s.State, s.Message, s.WaitsFor = state, bounded(message, maxMessage), ""
	s.Finished, s.Estimated = stamp(now), nil
	confirmed := metav1.ConditionFalse
	if state == api.ActionDone {
		confirmed = metav1.ConditionTrue
	}
	effective(s, confirmed, reason, message, now)
}

// progressOf counts the steps that are done.
func progressOf(steps []api.ActionStep) string {
	done := 0
	for i := range steps {
		if steps[i].State == api.StepDone {
			done++
		}
	}
	return fmt.Sprintf("%d/%d", done, len(steps))
}

// stand sets Ready, Reconciling and Stalled of an action by the state that it is in: one that ended otherwise than Done has a user look at it.
func stand(a *api.Action, s *api.ActionStatus, now time.Time) {
	if s.State == "" {
		return // nobody looked at it yet
	}
	is := kstatus.Standing{Ready: s.State == api.ActionDone, Reason: ReasonPending, Message: s.Message}
	is.Stalled = s.State.Final() && !is.Ready
	if is.Message == "" {
		is.Message = cmp.Or(s.WaitsFor, "it is "+string(s.State))
	}
	if c := meta.FindStatusCondition(s.Conditions, api.ActionEffective); c != nil {
		is.Reason = api.Reason(c.Reason)
	}
	kstatus.Set(&s.Conditions, a.Generation, is, now)
	s.ObservedGeneration = a.Generation
}
