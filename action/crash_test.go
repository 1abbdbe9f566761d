package action_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
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

// sweep runs a story once to find its points, and then once for each, with a kill there and a successor. check is told the
// action as it ended.
func sweep(t *testing.T, live life, story func(*actiontest.Memory, *actiontest.Handler), check func(t *testing.T, a *api.Action, h *actiontest.Handler)) {
	points := tell(t, -1, live, story, check)
	if len(points) < 10 {
		t.Fatalf("only %d points were found: %v", len(points), points)
	}
	for at, point := range points {
		t.Run(fmt.Sprintf("%02d %s", at, point), func(t *testing.T) { tell(t, at, live, story, check) })
	}
	t.Logf("%d points", len(points))
}

func tell(t *testing.T, at int, live life, story func(*actiontest.Memory, *actiontest.Handler), check func(t *testing.T, a *api.Action, h *actiontest.Handler)) (points []string) {
	synctest.Test(t, func(t *testing.T) {
		store, h := actiontest.NewMemory(), &actiontest.Handler{K: threeSteps}
		story(store, h)
		for process := range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
			f := &failPoints{Memory: store, kill: cancel, at: at}
			if process == 1 {
				f.at = -1
			}
			live(ctx, f, mortal{h, f})
			cancel()
			if process == 0 {
				points = f.points
			}
		}
		a, err := store.Get(t.Context(), newAction("a"))
		if err != nil {
			t.Fatal(err)
		}
		check(t, a, h)
	})
	return points
}

func createIn(state api.ActionState, store *actiontest.Memory) {
	a := newAction("a")
	a.Status.State = state
	if err := store.Create(context.Background(), a); err != nil {
		panic(err)
	}
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

// TestCrash kills leader and agent at every point where something is written or takes effect, in actions that are done, that
// are refused on their way and that are cancelled on their way. Whoever comes next brings each to its end.
func TestCrash(t *testing.T) {
	for _, who := range []struct {
		name  string
		live  life
		state api.ActionState
	}{{"leader", leaderLife, ""}, {"agent", agentLife, api.ActionNew}} {
		t.Run(who.name+"/done", func(t *testing.T) {
			sweep(t, who.live, func(store *actiontest.Memory, _ *actiontest.Handler) { createIn(who.state, store) }, wantDone)
		})
		t.Run(who.name+"/refused", func(t *testing.T) {
			sweep(t, who.live, func(store *actiontest.Memory, h *actiontest.Handler) {
				createIn(who.state, store)
				h.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
					if step == "three" {
						return action.Progress{}, refusal("no")
					}
					return action.Progress{Done: true}, nil
				}
			}, wantUndone(api.ActionFailed))
		})
		t.Run(who.name+"/cancelled", func(t *testing.T) {
			sweep(t, who.live, func(store *actiontest.Memory, h *actiontest.Handler) {
				createIn(who.state, store)
				h.OnStep = func(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
					if step == "two" {
						b := a.DeepCopy()
						b.Spec.Want = api.WantCancelled
						return action.Progress{WaitsFor: "somebody to cancel it"}, store.UpdateSpec(ctx, b)
					}
					return action.Progress{Done: true}, nil
				}
			}, wantUndone(api.ActionCancelled))
		})
	}
}
