package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// turnBack records why the action is given up, and its end or the last step that was begun as being undone. The reason stands in the
// condition Effective, where whoever goes on finds it.
func (m *move) turnBack(ctx context.Context, reason, message string) (Turn, error) {
	effective(m.status, metav1.ConditionFalse, reason, message, m.now)
	if m.handler.Kind().Final {
		_, why, end := m.cause()
		finish(m.status, end, reason, why, m.now)
	} else {
		m.back()
	}
	return m.record(ctx, 0)
}

// back records the last step that was begun as being undone, or the end of the action when there is none.
func (m *move) back() {
	m.status.Attempts, m.status.WaitsFor, m.status.Estimated = 0, "", nil
	for i, s := range slices.Backward(m.status.Steps) {
		switch s.State {
		case api.StepRunning, api.StepDone, api.StepFailed:
			m.status.Steps[i].State, m.status.Steps[i].Started = api.StepUndoing, stamp(m.now)
			_, why, _ := m.cause()
			m.status.Message = bounded(fmt.Sprintf("%s; step %s is being undone", why, s.Name), maxMessage)
			m.status.Progress = progressOf(m.status.Steps)
			return
		case api.StepPending, api.StepUndoing, api.StepUndone:
		}
	}
	reason, why, end := m.cause()
	finish(m.status, end, reason, why+"; "+m.undone(), m.now)
}

// undone says what the undoing of the steps has come to, which may be that something stays as it is.
func (m *move) undone() string {
	var said []string
	for _, s := range slices.Backward(m.status.Steps) {
		if s.State == api.StepUndone && s.Message != "" {
			said = append(said, s.Message)
		}
	}
	if len(said) == 0 {
		return "all steps were undone"
	}
	return strings.Join(said, "; ")
}

// undo calls the undoing of a step.
func (m *move) undo(ctx context.Context, i int) (Turn, error) {
	s := &m.status.Steps[i]
	if limit := timeoutOf(m.was, m.handler.Kind()); s.Started != nil && m.now.Sub(s.Started.Time) > limit {
		return m.stuck(ctx, s, fmt.Sprintf("not undone within %s%s", limit, m.lastWord()))
	}
	call, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	p, err := m.handler.Undo(call, m.was, s.Name)
	switch {
	case errors.Is(err, ErrRefused):
		return m.stuck(ctx, s, err.Error())
	case err != nil:
		return m.failed(ctx, "undoing step "+s.Name+" failed", err)
	}
	m.status.Attempts = 0
	m.note(s, p)
	if !p.Done {
		return m.record(ctx, cmp.Or(p.Recheck, pace(s, m.now)))
	}
	s.State, s.Finished = api.StepUndone, stamp(m.now)
	m.back()
	return m.record(ctx, 0)
}

// stuck ends an action of which a step cannot be undone. Earlier steps stay as they are, because what the later one left
// behind may rely on them; the message says which.
func (m *move) stuck(ctx context.Context, s *api.ActionStep, why string) (Turn, error) {
	s.State, s.Message, s.Finished = api.StepFailed, bounded(why, maxText), stamp(m.now)
	reason, cause, _ := m.cause()
	left := ""
	for i := range m.status.Steps {
		if m.status.Steps[i].State == api.StepDone {
			left += ", " + m.status.Steps[i].Name
		}
	}
	if left != "" {
		left = "; not undone: " + left[2:]
	}
	finish(m.status, api.ActionFailed, reason, fmt.Sprintf("%s; undoing step %s failed: %s%s", cause, s.Name, why, left), m.now)
	return m.record(ctx, 0)
}
