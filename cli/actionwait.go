package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

const (
	// look is how often an action that is waited for is looked at.
	look = 200 * time.Millisecond
	// queueTime is how long an action that was accepted waits for one and the same thing until such a command says so. What is over within a moment,
	// such as an answer of the storage system, is not worth a word.
	queueTime = 2 * time.Second
	// firstWordTime is how long a command that does not wait gives the leader to refuse its action.
	firstWordTime = 10 * time.Second
)

// firstWord waits a moment for the leader to accept the action, so that a refusal is seen where it was asked for.
func (g *globals) firstWord(ctx context.Context, c client.Client, a *api.Action) error {
	return newPrinter(g.out, "").firstWord(ctx, c, a, g.firstWordTime)
}

func (p *printer) firstWord(ctx context.Context, c client.Client, a *api.Action, limit time.Duration) error {
	var q queued
	err := watchAction(ctx, c, a, cmp.Or(limit, firstWordTime), func() bool {
		return a.Status.State.Final() || a.Status.State == api.ActionRunning || a.Status.State == api.ActionPendingApproval || q.lasts(&a.Status, time.Now())
	})
	switch {
	case err == nil && a.Status.State.Final():
		return p.endedAction(a)
	case err != nil && !errors.Is(err, context.DeadlineExceeded):
		return err
	}
	_, err = fmt.Fprintln(p.out, printable(p.nameOf(a)+followText(a)))
	return err
}

// queued is since when an action waits for its turn because of the same thing.
type queued struct {
	by    string
	since time.Time
}

// lasts takes note of what an action waits for now, and says whether it has waited for that for long enough to tell.
func (q *queued) lasts(s *api.ActionStatus, now time.Time) bool {
	by := ""
	if s.State == api.ActionPendingSchedule {
		by = s.WaitsFor
	}
	if by != q.by {
		q.by, q.since = by, now
	}
	return by != "" && now.Sub(q.since) >= queueTime
}

// firstWords is firstWord of the actions among what was applied. Of one that had ended before there is nothing to follow, and JSON holds the objects alone.
func (g *globals) firstWords(ctx context.Context, c client.Client, targets []target, o applyOptions) error {
	var errs []error
	p := newPrinter(g.out, "")
	p.several = countActions(objectsOf(targets)) > 1
	for _, t := range targets {
		if o.output == "json" || t.GetKind() != engine.KindAction || t.live != nil && stateOf(t.live).Final() {
			continue
		}
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: t.GetNamespace(), Name: t.GetName()}}
		errs = append(errs, p.firstWord(ctx, c, a, g.firstWordTime))
	}
	return errors.Join(errs...)
}

func countActions(objects []object) (n int) {
	for _, x := range objects {
		if x.GetKind() == engine.KindAction {
			n++
		}
	}
	return n
}

func stateOf(action *unstructured.Unstructured) api.ActionState {
	state, _, _ := unstructured.NestedString(action.Object, "status", "state")
	return api.ActionState(state)
}

// followText says what an action waits for before it begins, and how to follow and end it.
func followText(a *api.Action) string {
	text := fmt.Sprintf("follow it with 'holdfast action wait %s', cancel it with 'holdfast action cancel %s'",
		a.Name, a.Name)
	switch {
	case a.Status.State == api.ActionPendingApproval:
		return a.Status.Message + "; " + text
	case a.Status.State == api.ActionPendingSchedule && a.Status.WaitsFor != "":
		return "waiting for " + a.Status.WaitsFor + "; " + text
	}
	return text
}

// waitAction shows an action until it has ended.
func (g *globals) waitAction(ctx context.Context, c client.Client, a *api.Action, timeout time.Duration) error {
	return g.followAction(ctx, c, a, timeout, newPrinter(g.out, ""))
}

func (g *globals) followAction(ctx context.Context, c client.Client, a *api.Action, timeout time.Duration, p *printer) error {
	err := watchAction(ctx, c, a, timeout, func() bool {
		p.showAction(a)
		return a.Status.State.Final()
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &exitError{exitTimeout, fmt.Errorf("%s is not done after %s%s; it continues: cancel it with 'holdfast "+
			"action cancel %s'",
			a.Name, timeout, waitText(a), a.Name)}
	case errors.Is(err, context.Canceled):
		return &exitError{exitFailed, fmt.Errorf("interrupted; %s continues: cancel it with 'holdfast action cancel %s'",
			a.Name, a.Name)}
	case err != nil:
		return err
	}
	return p.endedAction(a)
}

// watchAction reads the action again and again until it is enough.
func watchAction(ctx context.Context, c client.Client, a *api.Action, timeout time.Duration, enough func() bool) error {
	if a.UID != "" && a.Status.State.Final() && enough() {
		return nil // it was read already, and its end stays, however short the time is
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	for {
		err := withDeadline(ctx, func(ctx context.Context) error { return c.Get(ctx, client.ObjectKeyFromObject(a), a) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case apierrors.IsNotFound(err):
			return fmt.Errorf("another user deleted action %s", a.Name)
		case err == nil && enough():
			return nil
		}
		// A server that cannot be reached for a moment is no reason to give up: it may be the one that changes places.
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// endedAction says how an action ended.
func (p *printer) endedAction(a *api.Action) error {
	switch name := p.nameOf(a); {
	case a.Status.State == api.ActionDone && p.json:
		return nil // its state was told
	case a.Status.State == api.ActionDone:
		_, err := fmt.Fprintln(p.out, printable(name+a.Status.Message))
		return err
	case unbegun(a):
		return &exitError{exitRefused, fmt.Errorf("%s%s, and nothing was changed%s: %s", name, unbegunWord(a), map[bool]string{true: " by it"}[p.several], a.Status.Message)}
	}
	return fmt.Errorf("%s is %s: %s", a.Name, a.Status.State, a.Status.Message)
}

// nameOf is how what is told of an action begins where several are told of.
func (p *printer) nameOf(a *api.Action) string {
	if p.several {
		return "action/" + a.Name + ": "
	}
	return ""
}

// unbegun says whether an action failed before its first step.
func unbegun(a *api.Action) bool {
	begun := slices.ContainsFunc(a.Status.Steps, func(s api.ActionStep) bool { return s.State != api.StepPending })
	return a.Status.State == api.ActionFailed && !begun
}

// unbegunWord says whether an action that was not begun was refused, or came too late.
func unbegunWord(a *api.Action) string {
	if c := meta.FindStatusCondition(a.Status.Conditions, api.ActionEffective); c != nil && c.Reason == action.ReasonExpired {
		return "expired"
	}
	return "refused"
}

// showAction shows how far an action is: each step that has begun, and what is waited for.
func (p *printer) showAction(a *api.Action) {
	p.mu.Lock()
	defer p.mu.Unlock()
	rows, name := p.named(a, actionRows(a, time.Now())), "action/"+a.Name
	switch {
	case p.json && p.told[name] != fmt.Sprint(rows):
		p.told[name] = fmt.Sprint(rows)
		p.emit(map[string]any{"action": a.Name, "status": a.Status, "seconds": p.seconds()})
	case p.json:
	case p.screen != nil:
		p.screen.Draw(p.with(clusterPicture{name, rows}))
	default:
		for i, row := range rows {
			p.tell(fmt.Sprintf("%s/%d", name, i), row)
		}
	}
}

// named puts the name of an action before what is told of it, where several are told of: before each row where rows are told one by one.
func (p *printer) named(a *api.Action, rows []string) []string {
	for i := range rows {
		if p.several && (i == 0 || p.screen == nil) {
			rows[i] = p.nameOf(a) + strings.TrimSpace(rows[i])
		}
	}
	return rows
}

func actionRows(a *api.Action, now time.Time) []string {
	if a.Status.State == "" {
		return []string{a.Spec.Kind + ": waiting for the leader"}
	}
	rows := []string{strings.TrimSuffix(fmt.Sprintf("%s %s: %s", a.Spec.Kind, a.Status.State, a.Status.Message), ": ")}
	for _, s := range a.Status.Steps {
		if s.State == api.StepPending {
			continue
		}
		row := fmt.Sprintf("  %s: %s", s.Name, s.State)
		if s.Total > 0 {
			row += fmt.Sprintf(", %d of %d %s", s.Done, s.Total, s.Unit)
		}
		rows = append(rows, row)
	}
	if a.Status.WaitsFor != "" {
		rows = append(rows, "  waits for "+a.Status.WaitsFor)
	}
	if left := leftText(a, now); left != "" {
		rows = append(rows, "  "+strings.TrimPrefix(left, "; "))
	}
	return rows
}
