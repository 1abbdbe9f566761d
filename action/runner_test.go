package action_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// leader runs a Runner over a store, with one handler of each test kind.
type leader struct {
	*testing.T
	store    *actiontest.Memory
	handlers map[string]*actiontest.Handler
	runner   *action.Runner
}

func newLeader(t *testing.T) *leader {
	l := &leader{T: t, store: actiontest.NewMemory(), handlers: map[string]*actiontest.Handler{}}
	l.runner = &action.Runner{Store: l.store, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	for _, k := range testKinds {
		if k.Executor == api.ByAgent {
			l.runner.Agents = append(l.runner.Agents, k)
			continue
		}
		h := &actiontest.Handler{K: k}
		l.handlers[k.Name] = h
		l.runner.Handlers = append(l.runner.Handlers, h)
	}
	return l
}

// start runs the runner until the returned function is called, which waits for it.
func (l *leader) start() (stop func()) {
	ctx, cancel := context.WithCancel(l.Context())
	done := make(chan error, 1)
	go func() { done <- l.runner.Run(ctx) }()
	return func() {
		l.Helper()
		cancel()
		if err := <-done; err != nil {
			l.Error(err)
		}
	}
}

func (l *leader) create(name, kind string, change ...func(*api.Action)) *api.Action {
	l.Helper()
	a := newAction(name, append([]func(*api.Action){func(a *api.Action) { a.Spec.Kind, a.Spec.Cluster = "test."+kind, "c" }}, change...)...)
	if err := l.store.Create(l.Context(), a); err != nil {
		l.Fatal(err)
	}
	return a
}

func (l *leader) get(name string) *api.Action {
	l.Helper()
	a, err := l.store.Get(l.Context(), newAction(name))
	if err != nil {
		l.Fatal(err)
	}
	return a
}

func (l *leader) spec(name string, change func(*api.Action)) {
	l.Helper()
	a := l.get(name)
	change(a)
	if err := l.store.UpdateSpec(l.Context(), a); err != nil {
		l.Fatal(err)
	}
}

func (l *leader) want(name string, state api.ActionState, message string) {
	l.Helper()
	if s := l.get(name).Status; s.State != state || !strings.Contains(s.Message, message) {
		l.Errorf("%s is %s, %q; want %s, %q", name, s.State, s.Message, state, message)
	}
}

func refusal(text string) error { return fmt.Errorf("%w: %s", action.ErrRefused, text) }

func TestRunner_carriesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		defer l.start()()
		l.create("a", "shared")
		l.create("strange", "strange")
		synctest.Wait()
		l.want("a", api.ActionDone, "one is done")
		l.want("strange", api.ActionFailed, "choose one of test.agent, test.beside, test.exclusive, test.rolling, test.shared")
		if diff := cmp.Diff([]string{"check a", "check a", "step a one"}, l.handlers["test.shared"].Calls()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRunner_refusedWhenAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.handlers["test.shared"].OnCheck = func(*api.Action) error { return refusal("it is the last mon") }
		defer l.start()()
		l.create("a", "shared", func(a *api.Action) { a.Spec.Approval = api.ApprovalRequired })
		synctest.Wait()
		l.want("a", api.ActionFailed, "it is the last mon")
	})
}

// A fault in one kind of action ends neither the leader nor what else it does, whether it shows when the action is accepted or when
// it is begun; when the fault is gone the action is carried out.
func TestRunner_panic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		calls := 0
		l.handlers["test.rolling"].OnCheck = func(*api.Action) error {
			if calls++; calls < 3 {
				panic("no such thing")
			}
			return nil
		}
		defer l.start()()
		l.create("a", "rolling")
		l.create("b", "shared")
		synctest.Wait()
		l.want("a", api.ActionNew, "fault in test.rolling (see the log): no such thing")
		l.want("b", api.ActionDone, "")
		time.Sleep(time.Minute)
		l.want("a", api.ActionDone, "")
	})
}

func TestRunner_approval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		defer l.start()()
		l.create("a", "shared", func(a *api.Action) { a.Spec.Approval = api.ApprovalRequired })
		time.Sleep(time.Hour)
		l.want("a", api.ActionPendingApproval, "holdfast action approve a")
		l.spec("a", func(a *api.Action) { a.Spec.Approval = api.ApprovalGranted })
		synctest.Wait()
		l.want("a", api.ActionDone, "")
		l.create("b", "shared", func(a *api.Action) {
			a.Spec.Approval = api.ApprovalRequired
			a.Spec.ExpiresAfter.Duration = time.Minute
		})
		time.Sleep(2 * time.Minute)
		l.want("b", api.ActionFailed, "not approved within 1m0s")
	})
}

// A cancel reaches a step that hangs, and what it began is undone.
func TestRunner_cancelWhileAStepHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		h := l.handlers["test.shared"]
		h.OnStep = func(ctx context.Context, _ *api.Action, _ string) (action.Progress, error) {
			<-ctx.Done()
			return action.Progress{}, ctx.Err()
		}
		defer l.start()()
		l.create("a", "shared")
		synctest.Wait()
		l.want("a", api.ActionRunning, "")
		begun := time.Now()
		l.spec("a", func(a *api.Action) { a.Spec.Want = api.WantCancelled })
		synctest.Wait()
		l.want("a", api.ActionCancelled, "cancelled; one is undone")
		if took := time.Since(begun); took > 0 || !slices.Contains(h.Calls(), "undo a one") {
			t.Errorf("it took %v, calls %v", took, h.Calls())
		}
	})
}

// One action that hangs or fails holds up no other.
func TestRunner_isolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.handlers["test.rolling"].OnCheck = func(*api.Action) error { time.Sleep(time.Hour); return nil }
		l.handlers["test.exclusive"].OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			return action.Progress{}, fmt.Errorf("no answer")
		}
		stop := l.start()
		l.create("hangs", "rolling", func(a *api.Action) { a.Spec.Cluster = "d" })
		l.create("fails", "exclusive", func(a *api.Action) { a.Spec.Cluster = "e" })
		l.create("a", "shared")
		synctest.Wait()
		l.want("a", api.ActionDone, "")
		l.want("fails", api.ActionRunning, "no answer")
		stop()
	})
}

// A leader that lost leadership writes nothing more, and its successor goes on from the record.
func TestRunner_successor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		h, blocked := l.handlers["test.shared"], true
		h.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			return action.Progress{Done: !blocked, WaitsFor: "a word"}, nil
		}
		stop := l.start()
		l.create("a", "shared")
		time.Sleep(10 * time.Second)
		stop()
		version := l.get("a").ResourceVersion
		blocked = false
		time.Sleep(time.Minute)
		if now := l.get("a").ResourceVersion; now != version {
			t.Error("it was written without a leader")
		}
		defer l.start()()
		synctest.Wait()
		l.want("a", api.ActionDone, "")
	})
}

func TestRunner_agentsKinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.store.SetHost("h1", action.HostFacts{Joined: time.Now()})
		defer l.start()()
		agents := func(a *api.Action) { a.Spec.Host = "h1" }
		l.create("a", "agent", agents)
		l.create("b", "agent", agents)
		l.create("c", "agent", func(a *api.Action) { a.Spec.Host = "h2" })
		synctest.Wait()
		l.want("a", api.ActionNew, "")
		l.want("b", api.ActionPendingSchedule, "")
		l.want("c", api.ActionFailed, "host h2 does not exist")
		h := &actiontest.Handler{K: testKinds["test.agent"]}
		h.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) { return action.Progress{}, nil }
		if _, err := action.Execute(t.Context(), h, l.store, l.get("a")); err != nil {
			t.Fatal(err)
		}
		l.store.SetHost("h1", action.HostFacts{Joined: time.Now(), Silent: true})
		time.Sleep(61 * time.Minute)
		l.want("a", api.ActionRunning, "")
		time.Sleep(3 * time.Minute)
		l.want("a", api.ActionLost, "the result is unknown")
		l.want("b", api.ActionPendingSchedule, "")
		l.store.SetHost("h1", action.HostFacts{Joined: time.Now()})
		synctest.Wait()
		l.want("b", api.ActionNew, "")
	})
}

// TestRunner_silentAgent: while the agent that carries an action out is silent, that is what is waited for, and it goes on from the record when it is heard again.
func TestRunner_silentAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.store.SetHost("h1", action.HostFacts{})
		defer l.start()()
		l.create("a", "agent", func(a *api.Action) { a.Spec.Host = "h1" })
		synctest.Wait()
		h := &actiontest.Handler{K: testKinds["test.agent"]}
		waits := "the daemon to answer"
		h.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			return action.Progress{WaitsFor: waits, Done: waits == ""}, nil
		}
		for range 2 { // it begins, and looks once
			if _, err := action.Execute(t.Context(), h, l.store, l.get("a")); err != nil {
				t.Fatal(err)
			}
		}
		known := l.get("a")
		waitsFor := func(want string) {
			t.Helper()
			synctest.Wait()
			if got := l.get("a").Status.WaitsFor; got != want {
				t.Errorf("it waits for %q, want %q", got, want)
			}
		}
		waitsFor(waits)
		l.store.SetHost("h1", action.HostFacts{Silent: true, Since: epoch})
		waitsFor("the agent of host h1, which is disconnected since 2026-01-01T00:00:00Z")
		waits = ""
		if _, err := action.Execute(t.Context(), h, l.store, known); !errors.Is(err, action.ErrConflict) {
			t.Errorf("an agent that knows an old record only wrote it: %v", err)
		}
		l.store.SetHost("h1", action.HostFacts{})
		waitsFor("")
		for range len(h.K.Steps) {
			if _, err := action.Execute(t.Context(), h, l.store, l.get("a")); err != nil {
				t.Fatal(err)
			}
		}
		l.want("a", api.ActionDone, "")
	})
}

// What has ended is removed after a week, also when nothing else happens.
func TestRunner_clears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		defer l.start()()
		l.create("a", "shared")
		time.Sleep(7*24*time.Hour - time.Minute)
		l.want("a", api.ActionDone, "")
		time.Sleep(2 * time.Hour)
		if all, err := l.store.List(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%d are left, %v", len(all), err)
		}
	})
}

// TestRunner_acceptAgents: what an agent would refuse is refused when it is accepted, though the agent is silent.
func TestRunner_acceptAgents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.runner.Accept = func(_ context.Context, a *api.Action) error {
			if a.Name == "no" {
				return refusal("there is no such daemon")
			}
			return errors.New("no answer") // cannot be found out now: the agent will
		}
		l.store.SetHost("h1", action.HostFacts{Silent: true})
		for _, name := range []string{"no", "yes"} {
			l.create(name, "agent", func(a *api.Action) { a.Spec.Host = "h1" })
		}
		stop := l.start()
		synctest.Wait()
		stop()
		if a := l.get("no"); a.Status.State != api.ActionFailed || !strings.HasSuffix(a.Status.Message, "there is no such daemon") || a.Status.Executor != api.ByAgent {
			t.Errorf("it is %+v", a.Status)
		}
		if a := l.get("yes"); a.Status.State != api.ActionPendingSchedule || !strings.Contains(a.Status.WaitsFor, "which is disconnected") {
			t.Errorf("it is %+v", a.Status)
		}
	})
}

// rejecting is a Store in which an administrator rejects each action just before the leader writes that it may run.
type rejecting struct {
	*actiontest.Memory
	leader *leader
	once   *sync.Once
}

func (s rejecting) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	if a.Status.State == api.ActionNew {
		s.once.Do(func() { s.leader.spec(a.Name, func(a *api.Action) { a.Spec.Approval = api.ApprovalRejected }) })
	}
	return s.Memory.PutStatus(ctx, a)
}

// TestRunner_rejectedMeanwhile: an action that is rejected while the leader gives it its turn does not run.
func TestRunner_rejectedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.runner.Store = rejecting{l.store, l, &sync.Once{}}
		stop := l.start()
		defer stop()
		l.create("a", "shared")
		time.Sleep(time.Minute)
		l.want("a", api.ActionCancelled, "rejected")
	})
}

// refusing is a Store that writes nothing more of the actions of some names.
type refusing struct {
	*actiontest.Memory
	errs *sync.Map // by name
}

func (s refusing) refusal(a *api.Action) error {
	if err, ok := s.errs.Load(a.Name); ok {
		return err.(error)
	}
	return nil
}

func (s refusing) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	if err := s.refusal(a); err != nil {
		return nil, err
	}
	return s.Memory.PutStatus(ctx, a)
}

func (s refusing) Remove(ctx context.Context, a *api.Action) error {
	if err := s.refusal(a); err != nil {
		return err
	}
	return s.Memory.Remove(ctx, a)
}

// TestRunner_oneCannotBeWritten: an action whose status the API refuses, or that changes whenever it is written, holds up no
// other; people are told once, it is counted, and when it can be written again it is carried out.
func TestRunner_oneCannotBeWritten(t *testing.T) {
	for _, err := range []error{errors.New("status.message: Too long"), fmt.Errorf("writing: %w", action.ErrConflict)} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeader(t)
				refused := &sync.Map{}
				refused.Store("bad", err)
				var told []string
				var stats action.Stats
				l.runner.Store, l.runner.Stats = refusing{l.store, refused}, &stats
				l.runner.OnStuck = func(_ context.Context, a *api.Action, err error) error {
					told = append(told, a.Name+": "+err.Error())
					return nil
				}
				defer l.start()()
				l.create("bad", "exclusive")
				l.create("good", "exclusive")
				time.Sleep(10 * time.Second)
				l.want("good", api.ActionDone, "")
				l.create("late", "rolling")
				synctest.Wait()
				l.want("late", api.ActionDone, "")
				time.Sleep(time.Hour)
				synctest.Wait()
				if diff := cmp.Diff([]string{"bad: " + err.Error()}, told); diff != "" || stats.Stuck.Load() != 1 {
					t.Errorf("%d are stuck, told: %s", stats.Stuck.Load(), diff)
				}
				refused.Delete("bad")
				time.Sleep(2 * time.Minute)
				l.want("bad", api.ActionDone, "")
				if n := stats.Stuck.Load(); n != 0 {
					t.Errorf("%d are stuck in the end", n)
				}
			})
		})
	}
}

// TestRunner_conflictsOfALaggingCopy: while the copy of an action lags behind, each write comes too late. That is soon over, and
// nobody is told that it is stuck.
func TestRunner_conflictsOfALaggingCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		refused := &sync.Map{}
		l.runner.Store = refusing{l.store, refused}
		l.runner.OnStuck = func(_ context.Context, a *api.Action, err error) error {
			t.Errorf("%s is told to be stuck: %v", a.Name, err)
			return nil
		}
		defer l.start()()
		refused.Store("late", fmt.Errorf("writing: %w", action.ErrConflict))
		l.create("late", "exclusive")
		time.Sleep(300 * time.Millisecond)
		refused.Delete("late")
		time.Sleep(5 * time.Second)
		l.want("late", api.ActionDone, "")
	})
}

// TestRunner_turnThatCannotBeTakenBack: an agent that has been given its turn may take it for as long as the API says so, also when the
// leader wants it back and cannot write that. Nothing that is in its way begins meanwhile.
func TestRunner_turnThatCannotBeTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		refused := &sync.Map{}
		var stats action.Stats
		l.runner.Store, l.runner.Stats = refusing{l.store, refused}, &stats
		l.store.SetHost("h1", action.HostFacts{})
		defer l.start()()
		onHost := func(a *api.Action) { a.Spec.Host = "h1" }
		l.create("bad", "agent", onHost)
		synctest.Wait()
		l.want("bad", api.ActionNew, "")
		refused.Store("bad", errors.New("no"))
		l.create("other", "rolling", onHost)
		l.create("far", "rolling", func(a *api.Action) { a.Spec.Cluster = "d" })
		l.store.SetHost("h1", action.HostFacts{Silent: true})
		time.Sleep(10 * time.Minute)
		l.want("far", api.ActionDone, "")
		l.want("bad", api.ActionNew, "")
		l.want("other", api.ActionPendingSchedule, "")
		l.store.SetHost("h1", action.HostFacts{})
		time.Sleep(2 * time.Minute)
		if n := stats.Stuck.Load(); n != 0 {
			t.Errorf("%d are stuck when nothing is to be written any more", n)
		}
		l.store.SetHost("h1", action.HostFacts{Silent: true})
		refused.Delete("bad")
		time.Sleep(2 * time.Minute)
		l.want("bad", api.ActionPendingSchedule, "")
		l.want("other", api.ActionDone, "")
	})
}

// One that has ended and cannot be removed slows down no other.
func TestRunner_oneCannotBeRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		refused := &sync.Map{}
		l.runner.Store = refusing{l.store, refused}
		defer l.start()()
		l.create("old", "shared")
		synctest.Wait()
		refused.Store("old", errors.New("no"))
		time.Sleep(8 * 24 * time.Hour)
		l.create("new", "shared")
		synctest.Wait()
		l.want("new", api.ActionDone, "")
	})
}

// A fault in Accept ends nothing: the agent looks again before it begins.
func TestRunner_acceptPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		l.runner.Accept = func(context.Context, *api.Action) error { panic("no such thing") }
		l.store.SetHost("h1", action.HostFacts{})
		stop := l.start()
		l.create("a", "agent", func(a *api.Action) { a.Spec.Host = "h1" })
		synctest.Wait()
		stop()
		l.want("a", api.ActionNew, "its turn has come")
	})
}

// Hosts that share no cluster are drained side by side; one that shares one waits, and says for which action and how to end that.
func TestRunner_concern(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeader(t)
		h := l.handlers["test.rolling"]
		h.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
			return action.Progress{WaitsFor: "data to move"}, nil
		}
		for host, cluster := range map[string]string{"h1": "c", "h2": "d", "h3": "c"} {
			l.store.SetHost(host, action.HostFacts{})
			l.store.SetConcern(host, action.ClusterConcern("default", cluster))
		}
		stop := l.start()
		for i, host := range []string{"h1", "h2", "h3"} {
			l.create(fmt.Sprint("drain-", i+1), "rolling", func(a *api.Action) { a.Spec.Cluster, a.Spec.Host = "", host })
			synctest.Wait()
		}
		stop()
		l.want("drain-1", api.ActionRunning, "")
		l.want("drain-2", api.ActionRunning, "")
		want := "action drain-1 (test.rolling host/h1), which is in progress: only one action that reduces the redundancy of cluster default/c runs at a time; " +
			"cancel that with 'holdfast action cancel drain-1'"
		if s := l.get("drain-3").Status; s.State != api.ActionPendingSchedule || s.WaitsFor != want {
			t.Errorf("%s, waits for %q", s.State, s.WaitsFor)
		}
	})
}
