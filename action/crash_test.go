package action_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

var errKilled = errors.New("killed")

// failPoints passes writes on to a store, and kills who writes at one of them: from then on nothing that it does is written.
// It also stands between handlers and the world, for a kill between an effect and its record.
type failPoints struct {
	*actiontest.Memory
	kill func()

	mu     sync.Mutex
	points []string
	// at is the number of the point to be killed at; none when negative.
	at   int
	code *failpoint.Points
	dead bool
}

// reach notes a point, and says whether the process is dead from here on.
func (f *failPoints) reach(format string, args ...any) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dead {
		return true
	}
	if len(f.points) == f.at {
		f.dead = true
		f.code.Note()
		f.kill()
	}
	f.points = append(f.points, fmt.Sprintf(format, args...))
	return f.dead
}

// PutStatus has two points: the kill before the write, and the kill after it, when its answer is lost.
func (f *failPoints) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	what := fmt.Sprintf("%s %s %s", a.Name, a.Status.State, stepStates(a))
	if f.reach("before %s", what) {
		return nil, errKilled
	}
	stored, err := f.Memory.PutStatus(ctx, a)
	if f.reach("after %s", what) {
		return nil, errKilled
	}
	return stored, err
}

func (f *failPoints) Remove(ctx context.Context, a *api.Action) error {
	if f.reach("before the removal of %s", a.Name) {
		return errKilled
	}
	err := f.Memory.Remove(ctx, a)
	if f.reach("after the removal of %s", a.Name) {
		return errKilled
	}
	return err
}

func stepStates(a *api.Action) string {
	text := ""
	for _, s := range a.Status.Steps {
		text += string(s.State) + " "
	}
	return text
}

// mortal is a handler whose process may be killed before and after an effect.
type mortal struct {
	*actiontest.Handler
	f *failPoints
}

func (m mortal) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	return m.call(ctx, a, step, "step", m.Handler.Step)
}

func (m mortal) Undo(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	return m.call(ctx, a, step, "undo", m.Handler.Undo)
}

func (m mortal) call(ctx context.Context, a *api.Action, step, what string, do func(context.Context, *api.Action, string) (action.Progress, error)) (action.Progress, error) {
	if m.f.reach("before %s %s %s", what, a.Name, step) {
		return action.Progress{}, errKilled
	}
	p, err := do(ctx, a, step)
	if m.f.reach("after %s %s %s", what, a.Name, step) {
		return action.Progress{}, errKilled
	}
	return p, err
}

// life is one process, leader or agent, that ends by itself at the fail point or when ctx ends.
type life func(ctx context.Context, store action.Store, h action.Handler)

func leaderLife(ctx context.Context, store action.Store, h action.Handler) {
	r := &action.Runner{Store: store, Handlers: []action.Handler{h}, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	_ = r.Run(ctx)
}

// agentLife carries out one action that has its turn, as an agent does.
func agentLife(ctx context.Context, store action.Store, h action.Handler) {
	for ctx.Err() == nil {
		a, err := store.Get(ctx, newAction("a"))
		if err != nil || a.Status.State.Final() {
			return
		}
		turn, err := action.Execute(ctx, h, store, a)
		if err == nil {
			time.Sleep(turn.Next)
		}
	}
}

// story is what happens to one action, named a. It is created in the state in which who carries it out finds it.
type story struct {
	name string
	set  func(*actiontest.Memory, *actiontest.Handler, *api.Action)
	// check is told the action as it ended.
	check func(t *testing.T, a *api.Action, h *actiontest.Handler)
}

// sweep runs a story once to find its points, and then once for each, with a kill there and a successor.
func sweep(t *testing.T, code *failpoint.Points, live life, state api.ActionState, s story) {
	points := tell(t, code, -1, live, state, s)
	if len(points) < 2 {
		t.Fatalf("only %d points were found: %v", len(points), points)
	}
	for at, point := range points {
		t.Run(fmt.Sprintf("%02d %s", at, point), func(t *testing.T) { tell(t, code, at, live, state, s) })
	}
	t.Logf("%d points", len(points))
}

func tell(t *testing.T, code *failpoint.Points, at int, live life, state api.ActionState, s story) (points []string) {
	synctest.Test(t, func(t *testing.T) {
		store, h, a := actiontest.NewMemory(), &actiontest.Handler{K: threeSteps}, newAction("a")
		a.Status.State = state
		if s.set != nil {
			s.set(store, h, a)
		}
		if err := store.Create(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		for process := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Hour)
			f := &failPoints{Memory: store, kill: cancel, at: at, code: code}
			if process == 1 {
				f.at = -1
			}
			live(ctx, f, mortal{h, f})
			cancel()
			if process == 0 {
				points = f.points
			}
		}
		a, err := store.Get(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		s.check(t, a, h)
	})
	return points
}

// wantDone: each step took effect exactly once.
func wantDone(t *testing.T, a *api.Action, h *actiontest.Handler) {
	if a.Status.State != api.ActionDone {
		t.Errorf("it ended as %s: %s", a.Status.State, a.Status.Message)
	}
	for _, step := range threeSteps.Steps {
		if !h.There("a", step) || h.Effects("a", step) != 1 {
			t.Errorf("step %s took effect %d times", step, h.Effects("a", step))
		}
	}
}

// wantUndone: nothing is left of it.
func wantUndone(state api.ActionState) func(*testing.T, *api.Action, *actiontest.Handler) {
	return func(t *testing.T, a *api.Action, h *actiontest.Handler) {
		if a.Status.State != state {
			t.Errorf("it ended as %s: %s", a.Status.State, a.Status.Message)
		}
		for _, step := range threeSteps.Steps {
			if h.There("a", step) || h.Effects("a", step) > 1 {
				t.Errorf("step %s took effect %d times, is there %v", step, h.Effects("a", step), h.There("a", step))
			}
		}
	}
}

// wantEnd: it ended so, for this reason.
func wantEnd(state api.ActionState, reason string) func(*testing.T, *api.Action, *actiontest.Handler) {
	return func(t *testing.T, a *api.Action, _ *actiontest.Handler) {
		c := meta.FindStatusCondition(a.Status.Conditions, api.ActionEffective)
		if a.Status.State != state || c == nil || c.Reason != reason {
			t.Errorf("it ended as %s, %+v", a.Status.State, c)
		}
	}
}

// both lists what may happen to an action, whoever carries it out.
func both() []story {
	thirdRefused := func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
		if step == "three" {
			return action.Progress{}, refusal("no")
		}
		return action.Progress{Done: true}, nil
	}
	return []story{
		{"done", nil, wantDone},
		{"refused on its way", func(_ *actiontest.Memory, h *actiontest.Handler, _ *api.Action) { h.OnStep = thirdRefused }, wantUndone(api.ActionFailed)},
		{"cancelled on its way", func(store *actiontest.Memory, h *actiontest.Handler, _ *api.Action) {
			h.OnStep = func(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
				if step != "two" {
					return action.Progress{Done: true}, nil
				}
				b := a.DeepCopy()
				b.Spec.Want = api.WantCancelled
				return action.Progress{WaitsFor: "somebody to cancel it"}, store.UpdateSpec(ctx, b)
			}
		}, wantUndone(api.ActionCancelled)},
		{"cancelled before it began", func(_ *actiontest.Memory, _ *actiontest.Handler, a *api.Action) { a.Spec.Want = api.WantCancelled }, wantUndone(api.ActionCancelled)},
		{"timed out", func(_ *actiontest.Memory, h *actiontest.Handler, a *api.Action) {
			a.Spec.Timeout.Duration = 2 * time.Minute
			h.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				return action.Progress{Done: step == "one", Recheck: time.Minute}, nil
			}
		}, wantUndone(api.ActionFailed)},
		{"impossible to undo", func(_ *actiontest.Memory, h *actiontest.Handler, _ *api.Action) {
			h.OnStep = thirdRefused
			h.OnUndo = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{}, refusal("never")
			}
		}, wantEnd(api.ActionFailed, action.ReasonRefused)},
		{"undoing for too long", func(_ *actiontest.Memory, h *actiontest.Handler, a *api.Action) {
			a.Spec.Timeout.Duration = time.Minute
			h.OnStep = thirdRefused
			h.OnUndo = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{Recheck: 30 * time.Second}, nil
			}
		}, wantEnd(api.ActionFailed, action.ReasonRefused)},
		{"errors that pass", func(_ *actiontest.Memory, h *actiontest.Handler, a *api.Action) {
			calls := 0
			first := func() error {
				if calls++; calls == 1 {
					return errors.New("no answer")
				}
				return nil
			}
			h.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				switch step {
				case "two":
					return action.Progress{Done: true}, first()
				case "three":
					return action.Progress{}, refusal("no")
				}
				return action.Progress{Done: true}, nil
			}
			h.OnUndo = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				if calls == 2 {
					calls = 0
				}
				return action.Progress{Done: true}, first()
			}
		}, wantUndone(api.ActionFailed)},
		{"a record that was mended by hand", func(_ *actiontest.Memory, _ *actiontest.Handler, a *api.Action) {
			a.Status.State = api.ActionRunning
			a.Status.Steps = []api.ActionStep{{Name: "one", State: api.StepDone}, {Name: "two", State: api.StepPending}}
		}, wantEnd(api.ActionDone, action.ReasonConfirmed)},
		{"refused when it begins", func(_ *actiontest.Memory, h *actiontest.Handler, a *api.Action) {
			a.Spec.ExpiresAfter.Duration = time.Hour
			h.OnCheck = failing(errors.New("no answer"), errors.New("no answer"), refusal("not now"))
		}, wantEnd(api.ActionFailed, action.ReasonRefused)},
	}
}

// failing is a Check that fails with these errors, one after the other, and then with the last one.
func failing(errs ...error) func(*api.Action) error {
	n := 0
	return func(*api.Action) error {
		err := errs[min(n, len(errs)-1)]
		n++
		return err
	}
}

// leaders lists what the leader alone decides.
func leaders() []story {
	return []story{
		{
			"refused when it is accepted", func(_ *actiontest.Memory, h *actiontest.Handler, _ *api.Action) { h.OnCheck = failing(refusal("no")) },
			wantEnd(api.ActionFailed, action.ReasonRefused),
		},
		{"not approved in time", func(_ *actiontest.Memory, _ *actiontest.Handler, a *api.Action) {
			a.Spec.Approval, a.Spec.ExpiresAfter.Duration = api.ApprovalRequired, time.Hour
		}, wantEnd(api.ActionFailed, action.ReasonExpired)},
		{"older ones are forgotten", func(store *actiontest.Memory, _ *actiontest.Handler, _ *api.Action) {
			old := newAction("old", func(a *api.Action) { a.Status.State = api.ActionDone })
			old.CreationTimestamp.Time = time.Now().Add(-30 * 24 * time.Hour)
			if err := store.Create(context.Background(), old); err != nil {
				panic(err)
			}
		}, wantDone},
	}
}

// reads are the methods of a Store, and of a Handler, that change nothing. A new one is a point, unless it is named here.
var reads = []string{"Get", "List", "Hosts", "Concern", "Notify", "Kind", "Check"}

// effects are all others.
func effects() (names []string) {
	for _, x := range []reflect.Type{reflect.TypeFor[action.Store](), reflect.TypeFor[action.Handler]()} {
		for m := range x.Methods() {
			if !slices.Contains(reads, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// TestCrash kills leader and agent at every point where something is written or takes effect, in all that may become of an
// action. Whoever comes next brings it to its end. Which places there are is read from the code: one that no process was
// killed at fails the test.
func TestCrash(t *testing.T) {
	code, err := failpoint.List(".", effects()...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range both() {
		t.Run("agent/"+s.name, func(t *testing.T) { sweep(t, code, agentLife, api.ActionNew, s) })
	}
	for _, s := range append(both(), leaders()...) {
		t.Run("leader/"+s.name, func(t *testing.T) { sweep(t, code, leaderLife, "", s) })
	}
	missing, all := code.Missing()
	if len(missing) > 0 || all < 20 {
		t.Errorf("of %d places in the code nobody was killed at these: %s", all, strings.Join(missing, ", "))
	}
	t.Logf("%d places in the code", all)
}
