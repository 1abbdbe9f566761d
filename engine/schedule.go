package engine

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/stats"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

const (
	// Changes seldom come alone: a run waits until none came for triggerQuiet, but for no longer than triggerCap.
	triggerQuiet = 5 * time.Millisecond
	triggerCap   = 50 * time.Millisecond

	// lockRetry is the pause after a run that met another's lock. The other may be a leader that has just died.
	lockRetry = time.Second

	// A run that changed something is followed by the next at once. After freeRuns of them in a row there are pauses: a
	// driver that never comes to an end must not take the whole leader.
	freeRuns    = 16
	streakFirst = 10 * time.Millisecond
	streakMost  = time.Second
)

// schedule says when one cluster runs next. The scheduler's mutex guards it.
type schedule struct {
	cluster types.NamespacedName
	manager ServiceManager
	// due is the expected next orchestration.
	due time.Time
	// triggered is when a run shall start because something changed; firstTrigger is when the first of these changes came.
	triggered, firstTrigger time.Time
	// recheck is when the last run wants the next one.
	recheck time.Time
	// hold keeps a failing cluster from running.
	hold     time.Time
	reason   string
	running  bool
	failures int
	streak   int
	// story is what the log has of the failures.
	story stats.Story
	// slow is set when the last run took so long that it gave its place back before its end.
	slow bool
	// mode is the one that the run found that goes on, or that was the last. Empty until it has read the cluster.
	mode api.ClusterMode
	// stop ends the run that goes on.
	stop context.CancelCauseFunc
}

// adopt sets the schedule of a cluster that the leader finds when it starts. It runs at once. Where the expected
// orchestration has passed, as for all clusters when nobody led for a while, the next is somewhere within the interval: otherwise
// all would be in step for ever.
func (x *schedule) adopt(c *api.StorageCluster, now time.Time) {
	switch next := c.Status.NextOrchestration; {
	case next == nil:
		x.due = now
	case next.After(now):
		x.due = next.Time
	default:
		x.due = now.Add(1 + backoff.Spread(x.cluster.String(), 0, intervalOf(c)))
	}
	x.limitDue(now.Add(intervalOf(c)))
	x.triggered, x.reason = now, "leadership gained"
}

func (x *schedule) trigger(c Change, now time.Time) {
	if x.mode == api.ClusterPaused && !x.running && c.Kind != KindCluster {
		return
	}
	if x.firstTrigger.IsZero() {
		x.firstTrigger = now
		x.reason = c.Object + " changed"
	}
	x.triggered = earliest(x.firstTrigger.Add(triggerCap), now.Add(triggerQuiet))
	if x.due.IsZero() {
		x.due = x.triggered
	}
	// The administrator may have mended what made the runs fail. Other changes may be the failing runs' own doing.
	if c.Kind == KindCluster {
		x.hold, x.failures = time.Time{}, 0
	}
}

// next is when the cluster shall run, or zero.
func (x *schedule) next() time.Time {
	if x.running {
		return time.Time{}
	}
	at := earliest(earliest(x.due, x.triggered), x.recheck)
	if !at.IsZero() && at.Before(x.hold) {
		return x.hold
	}
	return at
}

// start notes that a run starts, and returns whether it is the expected one.
func (x *schedule) start(now time.Time) (due bool) {
	due = !x.due.IsZero() && !x.due.After(now)
	switch {
	case !x.triggered.IsZero():
	case due:
		x.reason = "interval"
	default:
		x.reason = "the last run requested it"
	}
	if due {
		x.due = time.Time{}
	}
	x.running, x.mode = true, ""
	x.triggered, x.firstTrigger, x.recheck = time.Time{}, time.Time{}, time.Time{}
	return due
}

func (x *schedule) succeeded(now time.Time, e *RefreshEvent) {
	x.running, x.failures, x.hold = false, 0, time.Time{}
	if !e.Changed {
		x.streak = 0
		if e.Recheck > 0 {
			x.recheck = now.Add(e.Recheck)
		}
		return
	}
	x.streak++
	x.recheck = now
	if extra := x.streak - freeRuns; extra > 0 {
		x.recheck = now.Add(backoff.Doubling(streakFirst, streakMost, extra))
	}
}

func (x *schedule) failed(now time.Time) {
	x.running = false
	x.failures++
	x.hold = now.Add(backoff.Pause(x.cluster.String(), x.failures))
	x.recheck = x.hold
}

// interrupted notes that the run was stopped because the cluster's mode is another one now. The next comes at once.
func (x *schedule) interrupted(now time.Time) {
	x.running, x.recheck = false, now
	x.limitDue(now)
}

// rested notes that the cluster is paused: it runs again when it is changed itself, and for no other reason. A change that
// came meanwhile counts.
func (x *schedule) rested() {
	x.running, x.failures, x.hold = false, 0, time.Time{}
	x.due, x.recheck = time.Time{}, time.Time{}
}

func (x *schedule) discarded(now time.Time) {
	x.running = false
	x.recheck = now.Add(lockRetry)
}

// gone resets the schedule of a cluster that does not exist, and returns whether it is over. It goes on where a change came
// meanwhile: a new cluster may have been made under the name.
func (x *schedule) gone() bool {
	*x = schedule{cluster: x.cluster, due: x.triggered, triggered: x.triggered, firstTrigger: x.firstTrigger, reason: x.reason}
	return x.triggered.IsZero()
}

// limitDue makes the expected orchestration come no later than latest.
func (x *schedule) limitDue(latest time.Time) { x.due = earliest(x.due, latest) }

// earliest returns the earlier of two times, of which a zero one does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func intervalOf(c *api.StorageCluster) time.Duration {
	if c.Spec.Interval.Duration > 0 {
		return c.Spec.Interval.Duration
	}
	return defaultInterval
}

// toSecond gives a time as the API keeps it.
func toSecond(t time.Time) *metav1.Time {
	s := metav1.NewTime(t.Truncate(time.Second))
	return &s
}
