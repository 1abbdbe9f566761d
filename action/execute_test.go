package action_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var threeSteps = action.Kind{Name: "test.three", Executor: api.ByLeader, Mode: action.Shared, Steps: []string{"one", "two", "three"}, Timeout: time.Hour}

func newAction(name string, change ...func(*api.Action)) *api.Action {
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.ActionSpec{Kind: "test.three", Target: "host/h1", Want: api.WantDone, Approval: api.ApprovalGranted},
	}
	for _, c := range change {
		c(a)
	}
	return a
}

// bed is one action and what carries it out.
type bed struct {
	*testing.T
	store   *actiontest.Memory
	handler *actiontest.Handler
	action  *api.Action
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, store: actiontest.NewMemory(), handler: &actiontest.Handler{K: threeSteps}, action: newAction("a")}
	b.action.Status.State = api.ActionNew
	if err := b.store.Create(t.Context(), b.action); err != nil {
		t.Fatal(err)
	}
	return b
}

// move makes one move.
func (b *bed) move() action.Turn {
	b.Helper()
	turn, err := action.Execute(b.Context(), b.handler, b.store, b.action)
	if err != nil {
		b.Fatal(err)
	}
	b.action = turn.Action
	return turn
}

// run makes moves, waiting as long as each says, until the action has ended.
func (b *bed) run() {
	b.Helper()
	for range 10_000 {
		turn := b.move()
		if turn.Action.Status.State.Final() {
			return
		}
		time.Sleep(turn.Next)
	}
	b.Fatalf("it does not end: %+v", b.action.Status)
}

func (b *bed) cancel() {
	b.Helper()
	a, err := b.store.Get(b.Context(), b.action)
	if err != nil {
		b.Fatal(err)
	}
	a.Spec.Want = api.WantCancelled
	if err := b.store.UpdateSpec(b.Context(), a); err != nil {
		b.Fatal(err)
	}
	if b.action, err = b.store.Get(b.Context(), b.action); err != nil {
		b.Fatal(err)
	}
}

func (b *bed) want(state api.ActionState, reason string, message string, steps ...api.StepState) {
	b.Helper()
	s := b.action.Status
	var got []api.StepState
	for _, step := range s.Steps {
		got = append(got, step.State)
	}
	c := meta.FindStatusCondition(s.Conditions, api.ActionEffective)
	if s.State != state || c == nil || c.Reason != reason || !strings.Contains(s.Message, message) || !slices.Equal(got, steps) {
		b.Errorf("got %s, steps %v, condition %+v, message %q; want %s, %s, %v, %q", s.State, got, c, s.Message, state, reason, steps, message)
	}
	if s.State.Final() != (s.Finished != nil) || s.State.Final() && s.WaitsFor != "" {
		b.Errorf("status %+v", s)
	}
}

func TestExecute_stepsAreRecordedBeforeAndAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.handler.OnStep = func(_ context.Context, a *api.Action, step string) (action.Progress, error) {
			stored, err := b.store.Get(t.Context(), a)
			if err != nil {
				return action.Progress{}, err
			}
			i := slices.IndexFunc(stored.Status.Steps, func(s api.ActionStep) bool { return s.Name == step })
			for n, s := range stored.Status.Steps {
				want := api.StepPending
				if n == i {
					want = api.StepRunning
				} else if n < i {
					want = api.StepDone
				}
				if s.State != want {
					t.Errorf("when %s is called %s is recorded %s, want %s", step, s.Name, s.State, want)
				}
			}
			return action.Progress{Done: true, Message: step + " is so"}, nil
		}
		b.run()
		b.want(api.ActionDone, action.ReasonConfirmed, "three is so", api.StepDone, api.StepDone, api.StepDone)
		want := []string{"check a", "step a one", "step a two", "step a three"}
		if diff := cmp.Diff(want, b.handler.Calls()); diff != "" {
			t.Error(diff)
		}
		if s := b.action.Status; s.Progress != "3/3" || !meta.IsStatusConditionTrue(s.Conditions, api.ActionEffective) {
			t.Errorf("%+v", s)
		}
	})
}

func TestExecute_cancelUndoesInReverseOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.handler.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
			return action.Progress{Done: step == "one", Message: step, WaitsFor: "the moon"}, nil
		}
		for range 4 {
			b.move()
		}
		if w := b.action.Status.WaitsFor; w != "the moon" {
			t.Errorf("it waits for %q", w)
		}
		b.cancel()
		b.run()
		b.want(api.ActionCancelled, action.ReasonCancelled, "cancelled; two is undone; one is undone", api.StepUndone, api.StepUndone, api.StepPending)
		calls := b.handler.Calls()
		if diff := cmp.Diff([]string{"undo a two", "undo a one"}, calls[len(calls)-2:]); diff != "" {
			t.Error(diff)
		}
		if b.handler.There("a", "one") {
			t.Error("step one is still there")
		}
	})
}

// A step that takes long is looked at less and less often: four looks in its first four seconds, some hundred in its last hour.
func TestExecute_pace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.handler.K.Timeout = 48 * time.Hour
		begun, early, late := time.Now(), 0, 0
		b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			switch age := time.Since(begun); {
			case age < 4*time.Second:
				early++
			case age > 23*time.Hour:
				late++
			}
			return action.Progress{Done: time.Since(begun) > 24*time.Hour}, nil
		}
		b.run()
		if early != 4 || late < 115 || late > 125 {
			t.Errorf("%d looks in the first 4 s, %d in the last hour", early, late)
		}
	})
}

func TestExecute_ends(t *testing.T) {
	refused := func(what string) error { return fmt.Errorf("%w: %s", action.ErrRefused, what) }
	for _, test := range []struct {
		name    string
		prepare func(*bed)
		state   api.ActionState
		reason  string
		message string
		steps   []api.StepState
	}{
		{"cancelled before it began", (*bed).cancel, api.ActionCancelled, action.ReasonCancelled, "cancelled before it began", nil},
		{"the check refuses", func(b *bed) {
			b.handler.OnCheck = func(*api.Action) error { return refused("it is the last mon") }
		}, api.ActionFailed, action.ReasonRefused, "it is the last mon", nil},
		{"a step refuses", func(b *bed) {
			b.handler.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				if step == "two" {
					return action.Progress{}, refused("the disk is gone")
				}
				return action.Progress{Done: true}, nil
			}
		}, api.ActionFailed, action.ReasonRefused, "step two failed: refused: the disk is gone; two is undone; one is undone", []api.StepState{api.StepUndone, api.StepUndone, api.StepPending}},
		{"a step never ends", func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{Message: "moving", WaitsFor: "12 PGs to be active+clean"}, nil
			}
		}, api.ActionFailed, action.ReasonTimedOut, "within 1h0m0s; it waited for: 12 PGs", []api.StepState{api.StepUndone, api.StepPending, api.StepPending}},
		{"a step always fails", func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{}, errors.New("no route to host")
			}
		}, api.ActionFailed, action.ReasonTimedOut, "no route to host", []api.StepState{api.StepUndone, api.StepPending, api.StepPending}},
		{"a step panics", func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) { panic("no such thing") }
		}, api.ActionFailed, action.ReasonTimedOut, "fault in test.three (see the log): no such thing", []api.StepState{api.StepUndone, api.StepPending, api.StepPending}},
		{"undoing is refused", func(b *bed) {
			b.handler.OnStep = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				return action.Progress{Done: step == "one"}, map[bool]error{true: refused("no")}[step == "two"]
			}
			b.handler.OnUndo = func(_ context.Context, _ *api.Action, step string) (action.Progress, error) {
				return action.Progress{}, refused("it cannot be taken back")
			}
		}, api.ActionFailed, action.ReasonRefused, "undoing step two failed: refused: it cannot be taken back; not undone: one", []api.StepState{api.StepDone, api.StepFailed, api.StepPending}},
		{"undoing never ends", func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{}, refused("no")
			}
			b.handler.OnUndo = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{WaitsFor: "the end of time"}, nil
			}
		}, api.ActionFailed, action.ReasonRefused, "not undone within 1h0m0s", []api.StepState{api.StepFailed, api.StepPending, api.StepPending}},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				test.prepare(b)
				b.run()
				b.want(test.state, test.reason, test.message, test.steps...)
			})
		})
	}
}

func TestExecute_errorsAreTriedAgainWithPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		fail := 8
		b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			if fail--; fail >= 0 {
				return action.Progress{}, errors.New("busy")
			}
			return action.Progress{Done: true}, nil
		}
		b.move()
		for i, seconds := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
			whole := time.Duration(seconds) * time.Second
			if pause := b.move().Next; pause < whole/2 || pause > whole+1 || b.action.Status.Attempts != int32(i+1) {
				t.Errorf("attempt %d: the pause is %v, want %v to %v", b.action.Status.Attempts, pause, whole/2, whole)
			}
		}
		b.run()
		b.want(api.ActionDone, action.ReasonConfirmed, "done", api.StepDone, api.StepDone, api.StepDone)
		if b.action.Status.Attempts != 0 {
			t.Errorf("%d attempts are left", b.action.Status.Attempts)
		}
	})
}

func TestExecute_progressAndEstimate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		count := int64(0)
		b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			return action.Progress{Message: "moving PGs", Count: count, Total: 100, Unit: "PGs", Recheck: time.Minute}, nil
		}
		b.move()
		begun := time.Now()
		if next := b.move().Next; next != time.Minute {
			t.Errorf("next look after %v", next)
		}
		count = 25
		time.Sleep(10 * time.Minute)
		b.move()
		if at := b.action.Status.Estimated; at == nil || at.Sub(begun) != 40*time.Minute {
			t.Errorf("a quarter after 10 minutes, estimated %v after the beginning", at)
		}
		if s := b.action.Status.Steps[0]; s.Done != 25 || s.Total != 100 || s.Unit != "PGs" {
			t.Errorf("step %+v", s)
		}
		before := b.action.ResourceVersion
		time.Sleep(time.Minute)
		b.move()
		if b.action.ResourceVersion != before {
			t.Error("it was written although nothing changed")
		}
	})
}

// Of what is quick, complete but for a word, or done by each in its own time, no end is estimated.
func TestExecute_noEstimate(t *testing.T) {
	for name, p := range map[string]action.Progress{
		"quick":    {Count: 3, Total: 4, Recheck: time.Second},
		"complete": {Count: 4, Total: 4, Recheck: time.Minute},
		"uneven":   {Count: 3, Total: 4, Recheck: time.Minute, Uneven: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBed(t)
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) { return p, nil }
			b.move()
			time.Sleep(p.Recheck)
			b.move()
			if s := b.action.Status; s.Estimated != nil || s.Steps[0].Done != p.Count {
				t.Errorf("%s: estimated %v, step %+v", name, s.Estimated, s.Steps[0])
			}
		})
	}
}

// A change of the spec while a step is carried out makes nothing be forgotten; somebody else's move does.
func TestExecute_conflicts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		b.move()
		old := b.action
		b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			if old.Spec.Want != api.WantCancelled {
				b.cancel()
			}
			return action.Progress{Done: true}, nil
		}
		turn, err := action.Execute(t.Context(), b.handler, b.store, old)
		if err != nil || turn.Action.Status.Steps[0].State != api.StepDone || turn.Action.Spec.Want != api.WantCancelled {
			t.Fatalf("%+v %v", turn.Action, err)
		}
		if _, err := action.Execute(t.Context(), b.handler, b.store, old); !errors.Is(err, action.ErrConflict) {
			t.Errorf("a second one that carries the same action on got %v", err)
		}
		if err := b.store.Remove(t.Context(), old); err != nil {
			t.Fatal(err)
		}
		if _, err := action.Execute(t.Context(), b.handler, b.store, turn.Action); !errors.Is(err, action.ErrNotFound) {
			t.Errorf("an action that is gone: got %v", err)
		}
	})
}

func TestExecute_nothingIsWrittenAfterTheEndOfLeadership(t *testing.T) {
	b := newBed(t)
	b.move()
	ctx, cancel := context.WithCancel(t.Context())
	b.handler.OnStep = func(ctx context.Context, _ *api.Action, _ string) (action.Progress, error) {
		cancel()
		return action.Progress{}, ctx.Err()
	}
	if _, err := action.Execute(ctx, b.handler, b.store, b.action); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if now, err := b.store.Get(t.Context(), b.action); err != nil || now.ResourceVersion != b.action.ResourceVersion {
		t.Errorf("it was written: %v", err)
	}
}

// TestExecute_final: of a kind of which nothing can be undone, what is refused, cancelled or takes too long ends as it is, with the
// words of who refused it.
func TestExecute_final(t *testing.T) {
	for name, test := range map[string]struct {
		prepare func(*bed)
		state   api.ActionState
		message string
	}{
		"refused": {func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{}, fmt.Errorf("%w: the disk is full", action.ErrRefused)
			}
		}, api.ActionFailed, "step one failed: refused: the disk is full"},
		"cancelled": {func(b *bed) { b.cancel() }, api.ActionCancelled, "cancelled"},
		"late": {func(b *bed) {
			b.handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
				return action.Progress{Message: "it goes on"}, nil
			}
		}, api.ActionFailed, "not done within 1h0m0s; last message: it goes on"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.handler.K.Final = true
				b.move()
				test.prepare(b)
				b.run()
				if s := b.action.Status; s.State != test.state || s.Message != test.message {
					t.Errorf("it ended as %s: %s", s.State, s.Message)
				}
				for _, s := range b.action.Status.Steps {
					if s.State == api.StepUndoing || s.State == api.StepUndone {
						t.Errorf("step %s is %s", s.Name, s.State)
					}
				}
			})
		})
	}
}
