package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

const (
	// callDeadline bounds each call of a Handler. Handlers do not block for what takes longer than seconds.
	callDeadline = 2 * time.Minute
	// recheck is when to look again where a Handler does not say. A step that takes long is looked at less often, after a
	// hundredth of the time that it took so far, and at most after maxRecheck: a look may be dear, as when a storage system is
	// asked how full each of its disks is, and data moves for days.
	recheck    = time.Second
	maxRecheck = 30 * time.Second
	// paceKnown is how long a step must have gone on for its pace to say when it ends. What is quick, as daemons that start side by side, is over
	// before, and only the slowest is left.
	paceKnown = 30 * time.Second
	// writes bounds how often a status is written while others change the spec.
	writes = 5
)

// Turn is what came of a move.
type Turn struct {
	// Action is the action as it is recorded now.
	Action *api.Action
	// Next is how long to wait before the next move. A change of the spec ends the waiting; an action that has ended needs
	// no further move.
	Next time.Duration
}

// Execute carries an action that is New or Running on by one move, and records it. A move does one thing: it begins the first
// step, calls a step (or its undoing) once, or begins to undo. What is about to be begun is recorded before it is begun, so
// that after a crash at any point the next call goes on from the record.
//
// The error wraps ErrConflict when somebody else carries the action on, and ErrNotFound when it is gone: the caller reads it
// again. After any other error (the record could not be written, ctx ended) the caller calls again.
func Execute(ctx context.Context, h Handler, r Recorder, a *api.Action) (Turn, error) {
	m := &move{handler: guarded{h}, recorder: r, was: a, status: a.Status.DeepCopy(), now: time.Now()}
	switch {
	case a.Status.State.Final():
		return Turn{Action: a}, nil
	case a.Status.State == api.ActionNew:
		return m.begin(ctx)
	case a.Status.State != api.ActionRunning:
		return Turn{}, fmt.Errorf("action %s is %s, so it cannot run now", a.Name, a.Status.State)
	}
	if i := m.find(api.StepUndoing); i >= 0 {
		return m.undo(ctx, i)
	}
	switch limit := timeoutOf(a, h.Kind()); {
	case a.Spec.Want == api.WantCancelled:
		return m.turnBack(ctx, ReasonCancelled, "cancelled")
	case m.now.Sub(m.started()) > limit:
		return m.turnBack(ctx, ReasonTimedOut, fmt.Sprintf("not done within %s%s", limit, m.lastWord()))
	}
	return m.step(ctx)
}

// move is one call of Execute. status is what will be recorded.
type move struct {
	handler  Handler
	recorder Recorder
	was      *api.Action
	status   *api.ActionStatus
	now      time.Time
}

// begin checks once more whether the action can be done, and records the first step as begun.
func (m *move) begin(ctx context.Context) (Turn, error) {
	if m.was.Spec.Want == api.WantCancelled {
		finish(m.status, api.ActionCancelled, ReasonCancelled, "cancelled before it began", m.now)
		return m.record(ctx, 0)
	}
	call, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	switch err := m.handler.Check(call, m.was); {
	case errors.Is(err, ErrRefused):
		finish(m.status, api.ActionFailed, ReasonRefused, whyRefused(err), m.now)
		return m.record(ctx, 0)
	case err != nil:
		return m.failed(ctx, "the check before the action failed", err)
	}
	m.status.State, m.status.Started, m.status.Attempts = api.ActionRunning, stamp(m.now), 0
	m.status.Steps = nil
	for _, name := range m.handler.Kind().Steps {
		m.status.Steps = append(m.status.Steps, api.ActionStep{Name: name, State: api.StepPending})
	}
	m.next()
	return m.record(ctx, 0)
}

// next records the first step that is not done as begun, or the action as done when there is none.
func (m *move) next() {
	m.status.WaitsFor, m.status.Estimated = "", nil
	m.status.Progress = progressOf(m.status.Steps)
	i := m.find(api.StepPending)
	if i < 0 {
		message := "done"
		if n := len(m.status.Steps); n > 0 && m.status.Steps[n-1].Message != "" {
			message = m.status.Steps[n-1].Message
		}
		finish(m.status, api.ActionDone, ReasonConfirmed, message, m.now)
		return
	}
	s := &m.status.Steps[i]
	s.State, s.Started = api.StepRunning, stamp(m.now)
	m.status.Message = "step " + s.Name + " begins"
}

// step calls the step that is recorded as begun.
func (m *move) step(ctx context.Context) (Turn, error) {
	i := m.find(api.StepRunning)
	if i < 0 {
		m.next()
		return m.record(ctx, 0)
	}
	s := &m.status.Steps[i]
	call, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	p, err := m.handler.Step(call, m.was, s.Name)
	switch {
	case errors.Is(err, ErrRefused):
		s.State, s.Message, s.Finished = api.StepFailed, bounded(err.Error(), maxText), stamp(m.now)
		return m.turnBack(ctx, ReasonRefused, fmt.Sprintf("step %s failed: %v", s.Name, err))
	case err != nil:
		return m.failed(ctx, "step "+s.Name+" failed", err)
	}
	m.status.Attempts = 0
	m.note(s, p)
	if !p.Done {
		return m.record(ctx, cmp.Or(p.Recheck, pace(s, m.now)))
	}
	s.State, s.Finished = api.StepDone, stamp(m.now)
	m.next()
	return m.record(ctx, 0)
}

// note records how far a step is. The estimate is made anew only when there was progress: it would change each time.
func (m *move) note(s *api.ActionStep, p Progress) {
	if p.Total > 0 && (s.Done != p.Count || s.Total != p.Total) {
		m.status.Estimated = estimate(s, p, m.now)
	}
	s.Message, s.Done, s.Total, s.Unit = bounded(p.Message, maxText), p.Count, p.Total, bounded(p.Unit, maxUnit)
	m.status.Output, m.status.Next = bounded(p.Output, MaxOutput), p.Next
	m.status.Message, m.status.WaitsFor = bounded(p.Message, maxMessage), bounded(p.WaitsFor, maxText)
	if p.Message == "" {
		m.status.Message = "step " + s.Name
	}
}

// pace is when to look again at a step.
func pace(s *api.ActionStep, now time.Time) time.Duration {
	if s.Started == nil {
		return recheck
	}
	return min(max(recheck, now.Sub(s.Started.Time)/100), maxRecheck)
}

// estimate says when a step will be done if it goes on as it went so far; nil when that cannot be said.
func estimate(s *api.ActionStep, p Progress, now time.Time) *metav1.Time {
	if s.Started == nil || p.Uneven || p.Count <= 0 || p.Count >= p.Total {
		return nil
	}
	took := now.Sub(s.Started.Time)
	if took < paceKnown {
		return nil
	}
	left := time.Duration(float64(took) / float64(p.Count) * float64(p.Total-p.Count))
	return stamp(now.Add(left))
}

// failed records an error that may pass, and has the call tried again after a pause.
func (m *move) failed(ctx context.Context, what string, err error) (Turn, error) {
	if ctx.Err() != nil {
		return Turn{}, fmt.Errorf("while carrying out action %s: %w", m.was.Name, context.Cause(ctx))
	}
	m.status.Attempts++
	pause := pauseOf(m.was, int(m.status.Attempts))
	m.status.Message = bounded(fmt.Sprintf("%s; retrying: %v", what, err), maxMessage)
	m.status.WaitsFor = ""
	return m.record(ctx, pause)
}

// record writes the status, if it changed.
func (m *move) record(ctx context.Context, next time.Duration) (Turn, error) {
	stand(m.was, m.status, m.now)
	a, err := put(ctx, m.recorder, m.was, m.status)
	return Turn{Action: a, Next: next}, err
}

// put writes a status in the place of the one that a has. That somebody changed the spec meanwhile is no reason not to: what
// was done must not be forgotten.
func put(ctx context.Context, r Recorder, a *api.Action, status *api.ActionStatus) (*api.Action, error) {
	if equality.Semantic.DeepEqual(&a.Status, status) {
		return a, nil
	}
	next := a.DeepCopy()
	for n := 1; ; n++ {
		next.Status = *status
		stored, err := r.PutStatus(ctx, next)
		if !errors.Is(err, ErrConflict) || n == writes {
			return stored, err
		}
		conflict := err
		if next, err = r.Get(ctx, a); err != nil {
			return nil, err
		}
		if next.UID != a.UID {
			return nil, fmt.Errorf("action %s: %w", a.Name, ErrNotFound)
		}
		if !equality.Semantic.DeepEqual(next.Status, a.Status) {
			return nil, conflict
		}
	}
}

// find returns the first step in a state, or -1.
func (m *move) find(state api.StepState) int {
	return slices.IndexFunc(m.status.Steps, func(s api.ActionStep) bool { return s.State == state })
}

func (m *move) started() time.Time {
	if m.status.Started == nil {
		return m.now
	}
	return m.status.Started.Time
}

// lastWord is what was said last of what went on.
func (m *move) lastWord() string {
	switch {
	case m.status.WaitsFor != "":
		return "; it waited for: " + m.status.WaitsFor
	case m.status.Message != "":
		return "; last message: " + m.status.Message
	}
	return ""
}

// cause is why an action is being undone, and the state that it ends in.
func (m *move) cause() (reason, message string, end api.ActionState) {
	c := meta.FindStatusCondition(m.status.Conditions, api.ActionEffective)
	if c == nil {
		return ReasonRefused, "failed", api.ActionFailed
	}
	if c.Reason == ReasonCancelled {
		return c.Reason, c.Message, api.ActionCancelled
	}
	return c.Reason, c.Message, api.ActionFailed
}
