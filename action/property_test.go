package action_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// queue is a world of actions that the properties of Schedule are checked in.
type queue struct {
	*rapid.T
	now     time.Time
	actions []*api.Action
	// final is how actions ended.
	final map[string]api.ActionState
	// against is what is said of whether rolling actions may begin.
	against map[types.UID]string
}

func drawAction(t *rapid.T, n int, now time.Time) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("a", n), UID: types.UID(fmt.Sprint("a", n)), CreationTimestamp: metav1.NewTime(now)},
		Spec: api.ActionSpec{
			Kind:     rapid.SampledFrom([]string{"test.shared", "test.rolling", "test.exclusive", "test.agent", "test.strange"}).Draw(t, "kind"),
			Cluster:  rapid.SampledFrom([]string{"", "c", "d"}).Draw(t, "cluster"),
			Host:     rapid.SampledFrom([]string{"", "h1", "h2", "dead", "gone"}).Draw(t, "host"),
			Approval: rapid.SampledFrom([]api.Approval{api.ApprovalGranted, api.ApprovalGranted, api.ApprovalRequired}).Draw(t, "approval"),
			Want:     api.WantDone, Target: "x",
		},
	}
	return a
}

func active(a *api.Action) bool {
	return a.Status.State == api.ActionNew || a.Status.State == api.ActionRunning
}

// schedule applies one schedule, and checks what must hold after each.
func (q *queue) schedule() {
	f := facts(0)
	f.Now, f.Kinds, f.Against = q.now, maps.Clone(testKinds), q.against
	rolling := f.Kinds["test.rolling"]
	rolling.Asks = true
	f.Kinds[rolling.Name] = rolling
	was := map[string]api.ActionState{}
	for _, a := range q.actions {
		was[a.Name] = a.Status.State
	}
	for _, t := range action.Schedule(q.actions, f) {
		if t.Action.Status.State.Final() {
			q.Fatalf("%s had ended as %s and becomes %s", t.Action.Name, t.Action.Status.State, t.Status.State)
		}
		t.Action.Status = *t.Status
		said, known := q.against[t.Action.UID]
		if now := t.Action.Status.State; now == api.ActionNew && was[t.Action.Name] != now && t.Action.Spec.Kind == rolling.Name && (!known || said != "") {
			q.Fatalf("%s begins, and of whether it may it was said (%v): %q", t.Action.Name, known, said)
		}
	}
	if again := action.Schedule(q.actions, f); len(again) != 0 {
		q.Fatalf("a second schedule at the same time changes %s from %+v to %+v", again[0].Action.Name, again[0].Action.Status, again[0].Status)
	}
	q.check()
}

func (q *queue) check() {
	for i, a := range q.actions {
		if was, ok := q.final[a.Name]; ok && was != a.Status.State {
			q.Fatalf("%s had ended as %s, and is %s", a.Name, was, a.Status.State)
		}
		if a.Status.State.Final() {
			q.final[a.Name] = a.Status.State
		}
		if a.Status.State == api.ActionPendingSchedule && a.Status.WaitsFor == "" {
			q.Fatalf("%s waits, and does not say what for", a.Name)
		}
		for _, b := range q.actions[:i] {
			if active(a) && active(b) && beside(a, b) != "" {
				q.Fatalf("%s (%+v) and %s (%+v) run side by side: %s", a.Name, a.Spec, b.Name, b.Spec, beside(a, b))
			}
		}
	}
}

// beside says, in other words than the code's, why two actions must not run at one time.
func beside(a, b *api.Action) string {
	modes := []action.Mode{testKinds[a.Spec.Kind].Mode, testKinds[b.Spec.Kind].Mode}
	together := strings.ContainsAny(touches(a), touches(b))
	switch {
	case a.Spec.Host != "" && a.Spec.Host == b.Spec.Host:
		return "one host"
	case together && slices.Contains(modes, action.Exclusive):
		return "exclusive"
	case together && modes[0] == action.Rolling && modes[1] == action.Rolling:
		return "rolling"
	}
	return ""
}

// touches are the clusters that an action may concern, by their letters.
func touches(a *api.Action) string {
	if a.Spec.Cluster != "" {
		return a.Spec.Cluster
	}
	if of, known := map[string]string{"h1": "c", "h2": "cd", "dead": "d"}[a.Spec.Host]; known {
		return of
	}
	return "cd"
}

// progress does something to one of the actions, as people, the leader and agents do.
func (q *queue) progress() {
	if len(q.actions) == 0 {
		return
	}
	a := rapid.SampledFrom(q.actions).Draw(q.T, "which")
	switch rapid.SampledFrom([]string{"grant", "reject", "cancel", "begin", "end", "end", "end", "allow", "object"}).Draw(q.T, "what") {
	case "grant":
		a.Spec.Approval = api.ApprovalGranted
	case "reject":
		a.Spec.Approval = api.ApprovalRejected
	case "cancel":
		a.Spec.Want = api.WantCancelled
	case "begin":
		q.begin(a)
	case "allow":
		q.against[a.UID] = ""
	case "object":
		q.against[a.UID] = "copies to be made"
	case "end":
		q.end(a)
	}
}

func (q *queue) begin(a *api.Action) {
	if a.Status.State == api.ActionNew {
		a.Status.State, a.Status.Started = api.ActionRunning, &metav1.Time{Time: q.now}
	}
}

func startOf(a *api.Action) time.Time {
	if a.Status.Started == nil {
		return time.Time{}
	}
	return a.Status.Started.Time
}

func (q *queue) end(a *api.Action) {
	if a.Status.State == api.ActionRunning {
		a.Status.State, a.Status.Finished = api.ActionDone, &metav1.Time{Time: q.now}
	}
}

// TestSchedule_properties: never two at once that must not be, what has ended stays, and everything ends: the oldest of those
// that wait is held up by none but what runs, so it cannot starve, however many come after it.
func TestSchedule_properties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := &queue{T: t, now: epoch.Add(time.Minute), final: map[string]api.ActionState{}, against: map[types.UID]string{}}
		for n := range rapid.IntRange(1, 40).Draw(t, "rounds") {
			if rapid.Bool().Draw(t, "new") {
				q.actions = append(q.actions, drawAction(t, n, q.now))
			}
			q.now = q.now.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "seconds")) * time.Second)
			q.progress()
			q.schedule()
		}
		q.drain()
	})
}

// drain carries out whatever has its turn, while new actions keep coming: those that are there must all have their turn.
func (q *queue) drain() {
	old := slices.Clone(q.actions)
	for _, a := range old {
		if a.Spec.Approval == api.ApprovalRequired {
			a.Spec.Approval = api.ApprovalGranted
		}
	}
	for n := range 3*len(old) + 6 {
		q.actions = append(q.actions, drawAction(q.T, 1000+n, q.now))
		for _, a := range q.actions {
			q.against[a.UID] = ""
		}
		q.schedule()
		// Each takes two rounds, so that there is always one under way.
		for _, a := range q.actions {
			if q.now.Sub(startOf(a)) > time.Second {
				q.end(a)
			}
			q.begin(a)
		}
		q.now = q.now.Add(time.Second)
	}
	q.schedule()
	for _, a := range old {
		agentAway := a.Spec.Kind == "test.agent" && a.Spec.Host == "dead"
		if !a.Status.State.Final() && !agentAway {
			q.Fatalf("%s (%+v) starves: %s, waiting for %s", a.Name, a.Spec, a.Status.State, a.Status.WaitsFor)
		}
	}
	q.now = q.now.Add(25 * time.Hour)
	q.schedule()
	for _, a := range q.actions {
		if !a.Status.State.Final() && !active(a) {
			q.Fatalf("%s does not end: %+v", a.Name, a.Status)
		}
	}
}
