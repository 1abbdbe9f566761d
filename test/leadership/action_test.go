package leadership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/test/linear"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// TestActionStates has leaders that are overtaken and cut off carry out actions, while persons grant, reject and cancel them. All that
// is answered fits the rules, and every action that is decided ends.
func TestActionStates(t *testing.T) {
	t.Parallel()
	config := loopback.Inside(t)
	admin, err := newClient(fence.Config(config))
	if err != nil {
		t.Fatal(err)
	}
	p := &play{t: t, r: linear.Record(), admin: admin, config: config}
	p.run()
	initial := linear.Action{Approval: api.ApprovalRequired, Want: api.WantDone}
	if err := linear.Check(p.r, initial, linear.StepAction, linear.ActionOf); err != nil {
		t.Error(err)
	}
	moves := p.r.Count(func(in, out any) bool { _, ok := in.(linear.Move); return ok && out == linear.Done{} })
	late := p.r.Count(func(_, out any) bool { return out == linear.Denied{} })
	stale := p.r.Count(func(_, out any) bool { return out == linear.Refused{} })
	unheard := p.r.Count(func(_, out any) bool { return out == linear.Unknown{} })
	t.Logf("%d moves, %d wishes that came too late, %d moves of overtaken leaders, %d unheard of", moves, late, stale, unheard)
	if moves < 100 || late < 5 || unheard < 3 {
		t.Error("too little happened")
	}
}

const (
	playActions = 80
	playReigns  = 4
)

// play is actions, leaders and persons at work.
type play struct {
	t      *testing.T
	r      *linear.Recording
	admin  client.Client
	config *rest.Config
}

func (p *play) run() {
	ctx, cancel := context.WithCancel(p.t.Context())
	defer cancel()
	var leaders, persons sync.WaitGroup
	for n := range playReigns {
		p.reign(ctx, &leaders, n, n < playReigns-1)
		for i := range playActions / playReigns {
			name := fmt.Sprintf("a%d-%d", n, i)
			p.create(name)
			persons.Go(func() { p.person(name) })
			time.Sleep(rand.N(50 * time.Millisecond))
		}
	}
	persons.Wait()
	p.awaitEnd()
	cancel()
	leaders.Wait()
}

// reign has the next leader carry out actions. The ones before go on, and do not know that they were overtaken.
func (p *play) reign(ctx context.Context, leaders *sync.WaitGroup, n int, faulty bool) {
	p.t.Helper()
	token := fmt.Sprintf("s%d_%08x", n, n)
	if err := takeLead(ctx, p.admin, token); err != nil {
		p.t.Fatal(err)
	}
	way, config := linear.NewWay(p.config, 60)
	if !faulty {
		way, config = linear.NewWay(p.config, 0)
	}
	store, err := bare.NewStore(ctx, config, token)
	if err != nil {
		p.t.Fatal(err)
	}
	actions, err := store.Actions(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	handler := &actiontest.Handler{K: action.Kind{Name: "test.work", Executor: api.ByLeader, Mode: action.Shared, Steps: []string{"one", "two"}}}
	handler.OnStep = func(context.Context, *api.Action, string) (action.Progress, error) {
		return action.Progress{Done: rand.IntN(2) == 0, Recheck: rand.N(20 * time.Millisecond)}, nil
	}
	runner := &action.Runner{Log: slog.New(slog.DiscardHandler), Store: &recorded{Store: actions, p: p, id: n, states: map[string]api.ActionState{}}, Handlers: []action.Handler{handler}}
	leaders.Go(func() {
		defer store.Close()
		_ = runner.Run(ctx)
		way.Wait()
	})
	if faulty {
		leaders.Go(func() {
			for ctx.Err() == nil {
				time.Sleep(rand.N(300 * time.Millisecond))
				way.Cut(true)
				time.Sleep(rand.N(50 * time.Millisecond))
				way.Cut(false)
			}
		})
	}
}

func (p *play) create(name string) {
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	a.Spec.Kind, a.Spec.Target, a.Spec.Approval, a.Spec.Want = "test.work", "cluster/c", api.ApprovalRequired, api.WantDone
	if err := p.admin.Create(p.t.Context(), a); err != nil {
		p.t.Error(err)
	}
}

// person decides about an action, changes its mind, and looks what became of it.
func (p *play) person(name string) {
	const id = playReigns
	wishes := linear.Wishes(name)
	for range 6 {
		time.Sleep(rand.N(60 * time.Millisecond))
		if luck := rand.IntN(12); luck < len(wishes) {
			p.r.Do(id, wishes[luck], func() any { return p.wish(wishes[luck]) })
		} else if luck < 6 {
			p.r.Do(id, wishes[0], func() any { return p.wish(wishes[0]) })
		}
		p.r.Do(id, linear.See{Name: name}, func() any { return p.look(name) })
	}
	p.r.Do(id, wishes[0], func() any { return p.wish(wishes[0]) })
}

func (p *play) wish(w linear.Wish) any {
	patch := fmt.Sprintf(`{"spec":{"approval":%q}}`, w.Approval)
	if w.Want != "" {
		patch = fmt.Sprintf(`{"spec":{"want":%q}}`, w.Want)
	}
	a := &api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: w.Name}}
	switch err := p.admin.Patch(context.Background(), a, client.RawPatch(types.MergePatchType, []byte(patch))); {
	case err == nil:
		return linear.Done{}
	case apierrors.IsForbidden(err):
		return linear.Denied{}
	default:
		p.t.Error(err)
		return linear.Unknown{}
	}
}

func (p *play) look(name string) any {
	a := &api.Action{}
	if err := p.admin.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, a); err != nil {
		p.t.Error(err)
	}
	return linear.Action{State: a.Status.State, Approval: a.Spec.Approval, Want: a.Spec.Want}
}

// awaitEnd waits until all actions have ended.
func (p *play) awaitEnd() {
	p.t.Helper()
	var left []string
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		var list api.ActionList
		if err := p.admin.List(p.t.Context(), &list); err != nil {
			p.t.Fatal(err)
		}
		left = nil
		for _, a := range list.Items {
			if !a.Status.State.Final() {
				left = append(left, fmt.Sprintf("%s is %s: %s", a.Name, a.Status.State, a.Status.Message))
			}
		}
		if len(left) == 0 {
			return
		}
	}
	p.t.Errorf("these actions do not end:\n%s", strings.Join(left, "\n"))
}

// recorded is a leader's Store that records what the leader writes.
type recorded struct {
	action.Store
	p  *play
	id int

	mu     sync.Mutex
	states map[string]api.ActionState // by resource version
}

func (x *recorded) saw(a *api.Action) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.states[a.ResourceVersion] = a.Status.State
}

// List implements action.Store.
func (x *recorded) List(ctx context.Context) ([]*api.Action, error) {
	all, err := x.Store.List(ctx)
	for _, a := range all {
		x.saw(a)
	}
	return all, err
}

// Get implements action.Store.
func (x *recorded) Get(ctx context.Context, a *api.Action) (*api.Action, error) {
	now, err := x.Store.Get(ctx, a)
	if err == nil {
		x.saw(now)
	}
	return now, err
}

// PutStatus implements action.Store.
func (x *recorded) PutStatus(ctx context.Context, a *api.Action) (stored *api.Action, err error) {
	x.mu.Lock()
	from, known := x.states[a.ResourceVersion]
	x.mu.Unlock()
	if !known {
		x.p.t.Errorf("version %s of %s is written over, and nobody read it", a.ResourceVersion, a.Name)
	}
	x.p.r.Do(x.id, linear.Move{Name: a.Name, From: from, To: a.Status.State}, func() any {
		stored, err = x.Store.PutStatus(ctx, a)
		switch {
		case err == nil:
			x.saw(stored)
			return linear.Done{}
		case errors.Is(err, action.ErrConflict):
			return linear.Overtaken{}
		case fence.Lost(err):
			return linear.Refused{}
		default:
			return linear.Unknown{}
		}
	})
	return stored, err
}
