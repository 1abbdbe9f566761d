package actiontest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// World is what people and agents do beside a Store.
type World interface {
	Create(ctx context.Context, a *api.Action) error
	// UpdateSpec writes a.Spec, whatever was written meanwhile.
	UpdateSpec(ctx context.Context, a *api.Action) error
}

// limit bounds each test of the suite. It is only reached by a Store that does not work, however busy the machine is.
const limit = 2 * time.Minute

var number atomic.Int64

// RunStore runs the suite that every action.Store passes. What it makes carries names of its own.
func RunStore(t *testing.T, store action.Store, world World) {
	for _, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"writes are read", testWritesAreRead},
		{"a write that came too late", testConflict},
		{"an action of the same name", testSameName},
		{"what is gone", testGone},
		{"changes are told", testNotify},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			b := &bench{T: t, ctx: ctx, Store: store, World: world}
			b.a = b.create(fmt.Sprintf("suite-%d", number.Add(1)))
			test.run(b)
		})
	}
}

type bench struct {
	*testing.T
	action.Store
	World
	ctx context.Context //nolint:containedctx // it is one test's
	a   *api.Action
}

func (b *bench) create(name string) *api.Action {
	b.Helper()
	a := &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec:       api.ActionSpec{Kind: "test.suite", Target: "none/x", Want: api.WantDone, Approval: api.ApprovalGranted},
	}
	if err := b.World.Create(b.ctx, a); err != nil {
		b.Fatal(err)
	}
	stored, err := b.Get(b.ctx, a)
	if err != nil {
		b.Fatal(err)
	}
	return stored
}

func (b *bench) put(a *api.Action, state api.ActionState) (*api.Action, error) {
	next := a.DeepCopy()
	next.Status.State = state
	return b.PutStatus(b.ctx, next)
}

// listed returns the action as List has it, or nil.
func (b *bench) listed() *api.Action {
	b.Helper()
	all, err := b.List(b.ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, a := range all {
		if a.Namespace == b.a.Namespace && a.Name == b.a.Name {
			return a
		}
	}
	return nil
}

func testWritesAreRead(b *bench) {
	a := b.a
	for i, state := range []api.ActionState{api.ActionPendingSchedule, api.ActionNew, api.ActionRunning} {
		stored, err := b.put(a, state)
		if err != nil {
			b.Fatal(err)
		}
		if stored.Status.State != state || stored.ResourceVersion == a.ResourceVersion || stored.UID != b.a.UID {
			b.Errorf("write %d returned %+v", i, stored)
		}
		if got := b.listed(); got == nil || got.Status.State != state {
			b.Errorf("the list does not have the write of %s: %+v", state, got)
		}
		if got, err := b.Get(b.ctx, a); err != nil || got.Status.State != state || got.Spec.Kind != a.Spec.Kind {
			b.Errorf("it reads %+v, %v", got, err)
		}
		a = stored
	}
}

func testConflict(b *bench) {
	if _, err := b.put(b.a, api.ActionNew); err != nil {
		b.Fatal(err)
	}
	if _, err := b.put(b.a, api.ActionCancelled); !errors.Is(err, action.ErrConflict) {
		b.Errorf("a write over another's: %v", err)
	}
	old, err := b.Get(b.ctx, b.a)
	if err != nil {
		b.Fatal(err)
	}
	changed := old.DeepCopy()
	changed.Spec.Want = api.WantCancelled
	if err := b.UpdateSpec(b.ctx, changed); err != nil {
		b.Fatal(err)
	}
	if _, err := b.put(old, api.ActionRunning); !errors.Is(err, action.ErrConflict) {
		b.Errorf("a write after the spec was changed: %v", err)
	}
	if got, err := b.Get(b.ctx, b.a); err != nil || got.Status.State != api.ActionNew || got.Spec.Want != api.WantCancelled {
		b.Errorf("it reads %+v, %v", got, err)
	}
}

func testSameName(b *bench) {
	if err := b.Remove(b.ctx, b.a); err != nil {
		b.Fatal(err)
	}
	second := b.create(b.a.Name)
	if _, err := b.put(b.a, api.ActionNew); !errors.Is(err, action.ErrConflict) && !errors.Is(err, action.ErrNotFound) {
		b.Errorf("a write to one that is gone, and whose name another has: %v", err)
	}
	if err := b.Remove(b.ctx, b.a); err != nil {
		b.Errorf("removing the first one again: %v", err)
	}
	if got, err := b.Get(b.ctx, b.a); err != nil || got.UID != second.UID || got.Status.State != "" {
		b.Errorf("the second one reads %+v, %v", got, err)
	}
}

func testGone(b *bench) {
	if err := b.Remove(b.ctx, b.a); err != nil {
		b.Fatal(err)
	}
	if got := b.listed(); got != nil {
		b.Errorf("it is still listed: %+v", got)
	}
	if _, err := b.Get(b.ctx, b.a); !errors.Is(err, action.ErrNotFound) {
		b.Errorf("reading it: %v", err)
	}
	if _, err := b.put(b.a, api.ActionNew); !errors.Is(err, action.ErrNotFound) {
		b.Errorf("writing it: %v", err)
	}
	if err := b.Remove(b.ctx, b.a); err != nil {
		b.Errorf("removing it again: %v", err)
	}
}

func testNotify(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	defer cancel()
	told := make(chan struct{}, 1)
	b.Notify(ctx, func() {
		select {
		case told <- struct{}{}:
		default:
		}
	})
	changed := b.a.DeepCopy()
	changed.Spec.Want = api.WantCancelled
	if err := b.UpdateSpec(b.ctx, changed); err != nil {
		b.Fatal(err)
	}
	for {
		select {
		case <-told:
			if got := b.listed(); got != nil && got.Spec.Want == api.WantCancelled {
				return
			}
		case <-b.ctx.Done():
			b.Fatal("a change of the spec was not told")
		}
	}
}
