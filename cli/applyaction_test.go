package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// TestApply_waitsForAction: an Action from a file is waited for until it is done and effective, and how it ends otherwise is told.
func TestApply_waitsForAction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var released atomic.Bool
	b.carryOut(&actiontest.Handler{
		K: action.Kind{Name: "test.work", Executor: api.ByLeader, Mode: action.Shared, Steps: []string{"begin", "end"}},
		OnCheck: func(a *api.Action) error {
			if strings.HasPrefix(a.Name, "impossible") {
				return fmt.Errorf("there is no such place: %w", action.ErrRefused)
			}
			return nil
		},
		OnStep: func(_ context.Context, a *api.Action, step string) (action.Progress, error) {
			switch {
			case step == "end" && a.Name == "breaks":
				return action.Progress{}, fmt.Errorf("the place is full: %w", action.ErrRefused)
			case step == "end" && strings.HasPrefix(a.Name, "held") && !released.Load():
				return action.Progress{WaitsFor: "a word", Recheck: 20 * time.Millisecond}, nil
			}
			return action.Progress{Done: true, Message: step + " is so"}, nil
		},
	})
	b.expect("apply -f "+b.work("quick")+" --wait --timeout 5m", exitOK, "begin: Done", "end: Done", "end is so")
	b.actionIs("quick", api.ActionDone, action.ReasonConfirmed)
	b.expect("action wait quick --timeout 1ms", exitOK, "end is so")
	b.expect("apply -f "+b.work("impossible")+" --wait --timeout 5m", exitRefused, "refused, and nothing was changed: there is no such place")
	b.actionIs("impossible", api.ActionFailed, action.ReasonRefused)
	b.expect("apply -f "+b.work("breaks")+" --wait --timeout 5m", exitFailed, "breaks is Failed: step end failed: the place is full", "begin is undone")
	b.actionIs("breaks", api.ActionFailed, action.ReasonRefused)

	b.expect("apply -f "+b.work("held")+" --wait --timeout 1s", exitTimeout, "held is not done after 1s", "it continues")
	b.expectThen("waits for a word", func() {
		b.actionIs("held", api.ActionRunning, action.ReasonPending)
		released.Store(true)
	}, "apply -f "+b.work("held")+" --wait --timeout 5m", exitOK, "end: Running", "end: Done", "end is so")
	b.actionIs("held", api.ActionDone, action.ReasonConfirmed)

	// Of several each is told with its name.
	several := b.work("several-quick") + " -f " + b.work("impossible-third")
	b.expect("apply --wait --timeout 5m -f "+several, exitRefused, "action/several-quick: test.work ", "action/several-quick: begin: Done", "action/several-quick: end is so",
		"action/impossible-third: refused, and nothing was changed by it: there is no such place")
	several = b.work("fourth-quick") + " -f " + b.work("impossible-fifth")
	b.expect("apply -f "+several, exitRefused, "action/fourth-quick: ", "action/impossible-fifth: refused, and nothing was changed by it: there is no such place")

	// Without --wait its first word is told, and of one that had ended before nothing is.
	b.expect("apply -f "+b.work("impossible"), exitOK, "action/impossible unchanged")
	b.expect("apply -f "+b.work("impossible-too"), exitRefused, "refused, and nothing was changed: there is no such place")
	released.Store(false)
	b.expect("apply -f "+b.work("held-too"), exitOK, "follow it with 'holdfast action wait held-too', cancel it with 'holdfast action cancel held-too'")
	released.Store(true)
}

// work writes a manifest of an Action.
func (b *bench) work(name string) (path string) {
	b.Helper()
	path = filepath.Join(b.dir, name+".yaml")
	text := "apiVersion: holdfast.io/v1alpha1\nkind: Action\nmetadata: {name: " + name + "}\nspec: {kind: test.work, target: place/here}\n"
	b.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// actionIs checks the state and the condition of an action: it is effective when it is done, and not otherwise.
func (b *bench) actionIs(name string, state api.ActionState, reason string) {
	b.Helper()
	a := &api.Action{}
	b.must(b.client.Get(b.Context(), client.ObjectKey{Namespace: "default", Name: name}, a))
	c := meta.FindStatusCondition(a.Status.Conditions, api.ActionEffective)
	if a.Status.State != state || c == nil || c.Reason != reason || meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionEffective) != (state == api.ActionDone) {
		b.Errorf("%s is to be %s, by %s, and is %+v", name, state, reason, a.Status)
	}
}

// carryOut looks after actions of one kind, as the leader does, until the test ends.
func (b *bench) carryOut(h action.Handler) {
	log := slog.New(slog.DiscardHandler)
	election := &leader.Election{REST: b.server.Config(), Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: "s1", Log: log}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		_ = election.Run(ctx, func(ctx context.Context, token string) {
			store, err := bare.NewStore(ctx, b.server.Config(), token)
			if err != nil {
				return
			}
			defer store.Close()
			running.Go(func() { answerFrom(ctx, store, log) })
			if actions, err := store.Actions(ctx); err == nil {
				r := action.Runner{Store: actions, Handlers: []action.Handler{h}, Log: log}
				_ = r.Run(ctx)
			}
		})
	})
	b.Cleanup(func() { cancel(); running.Wait() })
}
