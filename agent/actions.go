package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	kwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ActionKinds are the kinds of actions that agents carry out.
func ActionKinds() []action.Kind { return []action.Kind{restartKind} }

// actions holds the Actions of this host that its agent carries out, and the work on them. The record of each is the Action
// itself; what of the host has to be remembered besides lies in files.
type actions struct {
	agent    *agent
	handlers map[string]action.Handler
	queue    workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu    sync.Mutex
	byKey map[types.NamespacedName]*api.Action
	// cancel ends the move of an action that is under way.
	cancel map[types.NamespacedName]context.CancelFunc
	// restarts are the processes that are to be ended and started again, by daemon.
	restarts map[types.NamespacedName]process
}

var _ cache.ReflectorStore = (*actions)(nil)

func newActions(a *agent) *actions {
	x := &actions{
		agent: a, handlers: map[string]action.Handler{},
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, retryMax)),
		byKey: map[types.NamespacedName]*api.Action{}, cancel: map[types.NamespacedName]context.CancelFunc{},
		restarts: map[types.NamespacedName]process{},
	}
	for _, h := range []action.Handler{&restart{a}} {
		x.handlers[h.Kind().Name] = h
	}
	return x
}

// Add implements cache.ReflectorStore.
func (x *actions) Add(obj any) error { return x.Update(obj) }

// Update implements cache.ReflectorStore.
func (x *actions) Update(obj any) error {
	now, ok := obj.(*api.Action)
	if !ok {
		return fmt.Errorf("%T is no Action", obj)
	}
	if now.Spec.Host != x.agent.Name {
		return nil // the server selects; another host's must never be acted on all the same
	}
	key := client.ObjectKeyFromObject(now)
	x.mu.Lock()
	defer x.mu.Unlock()
	was := x.byKey[key]
	x.byKey[key] = now
	same := was != nil && was.UID == now.UID && was.Spec.Want == now.Spec.Want
	if !same && x.cancel[key] != nil {
		x.cancel[key]() // a cancel does not wait for a step that hangs
	}
	// What else changes is the agent's own record, after which it knows itself when to go on.
	if !same || was.Status.State != now.Status.State {
		x.queue.Add(key)
	}
	return nil
}

// Delete implements cache.ReflectorStore.
func (x *actions) Delete(obj any) error {
	gone, ok := obj.(*api.Action)
	if !ok {
		return fmt.Errorf("%T is no Action", obj)
	}
	key := client.ObjectKeyFromObject(gone)
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byKey, key)
	x.queue.Add(key)
	return nil
}

// Replace implements cache.ReflectorStore.
func (x *actions) Replace(objs []any, _ string) error {
	x.mu.Lock()
	old := slices.Collect(maps.Keys(x.byKey))
	clear(x.byKey)
	x.mu.Unlock()
	for _, obj := range objs {
		if err := x.Update(obj); err != nil {
			return err
		}
	}
	for _, key := range old {
		x.queue.Add(key)
	}
	x.clear()
	return nil
}

// clear removes what was remembered of actions that are gone or have ended.
func (x *actions) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	needed := map[string]bool{}
	for _, a := range x.byKey {
		needed[x.agent.paths.actionOf(a.UID)] = !a.Status.State.Final()
	}
	// A pattern without special characters but the last is never malformed.
	files, _ := filepath.Glob(x.agent.paths.actionOf("*"))
	for _, path := range files {
		if !needed[path] {
			x.remove(path)
		}
	}
}

// remove removes a file. One that stays does no harm, and is removed at the next start.
func (x *actions) remove(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		x.agent.log.Warn("what was remembered of an action could not be removed", "path", path, "error", err)
	}
}

// Resync implements cache.ReflectorStore.
func (x *actions) Resync() error { return nil }

// watchActions follows the Actions of this host until ctx ends.
func (a *agent) watchActions(ctx context.Context) {
	mine := client.MatchingFields{"spec.host": a.Name}
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, opts metav1.ListOptions) (kruntime.Object, error) {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			opts.ResourceVersion = "" // what holds now, as for daemons
			list := &api.ActionList{}
			return list, a.client.List(ctx, list, mine, &client.ListOptions{Raw: &opts})
		},
		WatchFuncWithContext: func(ctx context.Context, opts metav1.ListOptions) (kwatch.Interface, error) {
			return a.client.Watch(ctx, &api.ActionList{}, mine, &client.ListOptions{Raw: &opts})
		},
	}, plainList{})
	cache.NewReflectorWithOptions(lw, &api.Action{}, a.acts, cache.ReflectorOptions{
		Name:    "actions of " + a.Name,
		Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Cap: 5 * time.Second, Steps: 6, Factor: 2, Jitter: 0.5},
	}).RunWithContext(ctx)
}

// runActions carries the actions out until ctx ends, and then waits for what is under way. Each is worked on by one goroutine
// at a time; the leader gives one at a time its turn.
func (a *agent) runActions(ctx context.Context) {
	x := a.acts
	release := context.AfterFunc(ctx, x.queue.ShutDown)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		key, down := x.queue.Get()
		if down {
			return
		}
		wg.Go(func() {
			defer x.queue.Done(key)
			x.work(ctx, key)
		})
	}
}

// work makes one move of an action, and puts it in line for the next.
func (x *actions) work(ctx context.Context, key types.NamespacedName) {
	ctx, known, end := x.begin(ctx, key)
	defer end()
	if known == nil || known.Status.Executor != api.ByAgent ||
		known.Status.State != api.ActionNew && known.Status.State != api.ActionRunning {
		x.queue.Forget(key)
		return
	}
	turn, err := x.move(ctx, known)
	switch {
	case err == nil && turn.Action.Status.State.Final():
		x.queue.Forget(key)
		x.remove(x.agent.paths.actionOf(known.UID))
		x.agent.log.Info("an action has ended", "action", key, "kind", known.Spec.Kind, "state", turn.Action.Status.State, "message", turn.Action.Status.Message)
	case err == nil:
		x.queue.Forget(key)
		x.queue.AddAfter(key, turn.Next)
	case errors.Is(err, action.ErrNotFound), errors.Is(err, action.ErrConflict):
		x.queue.AddRateLimited(key) // the watch brings what it is now
	default:
		if ctx.Err() == nil {
			x.agent.log.Warn("an action could not be carried on; trying again", "action", key, "error", err)
		}
		x.queue.AddRateLimited(key)
	}
}

// move reads the action as it is now, because the watch may be behind the agent's own writes, and carries it on.
func (x *actions) move(ctx context.Context, known *api.Action) (action.Turn, error) {
	now, err := x.Get(ctx, known)
	if err != nil {
		return action.Turn{}, err
	}
	if now.UID != known.UID {
		return action.Turn{}, action.ErrNotFound
	}
	if now.Status.State != api.ActionNew && now.Status.State != api.ActionRunning {
		return action.Turn{Action: now}, nil
	}
	h := x.handlers[now.Spec.Kind]
	if h == nil {
		h = unknown{now.Spec.Kind, x.agent.Version}
	}
	return action.Execute(ctx, h, x, now)
}

// begin gives the move of an action a context that a cancel ends.
func (x *actions) begin(ctx context.Context, key types.NamespacedName) (context.Context, *api.Action, func()) {
	ctx, cancel := context.WithCancel(ctx)
	x.mu.Lock()
	defer x.mu.Unlock()
	x.cancel[key] = cancel
	return ctx, x.byKey[key], func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.cancel, key)
		cancel()
	}
}

// Get implements action.Recorder. The authorizer lets a host list its own Actions alone.
func (x *actions) Get(ctx context.Context, a *api.Action) (*api.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var list api.ActionList
	err := x.agent.client.List(ctx, &list, client.InNamespace(a.Namespace), client.MatchingFields{"spec.host": x.agent.Name})
	if err != nil {
		return nil, fmt.Errorf("while reading action %s: %w", a.Name, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == a.Name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("action %s: %w", a.Name, action.ErrNotFound)
}

// PutStatus implements action.Recorder.
func (x *actions) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	next := a.DeepCopy()
	err := x.agent.client.Status().Update(ctx, next)
	switch {
	case apierrors.IsNotFound(err):
		err = action.ErrNotFound
	case apierrors.IsConflict(err):
		err = action.ErrConflict
	}
	if err != nil {
		return nil, fmt.Errorf("while recording action %s: %w", a.Name, err)
	}
	return next, nil
}

// unknown fails the actions of kinds that a newer leader gave to an older agent.
type unknown struct{ kind, version string }

// Kind implements action.Handler.
func (u unknown) Kind() action.Kind { return action.Kind{Name: u.kind} }

func (u unknown) refuse() error {
	var names []string
	for _, k := range ActionKinds() {
		names = append(names, k.Name)
	}
	return fmt.Errorf("%w: this agent (version %s) knows no kind %q, only %s: upgrade Holdfast on this host", action.ErrRefused, u.version, u.kind, strings.Join(names, ", "))
}

// Check implements action.Handler.
func (u unknown) Check(context.Context, *api.Action) error { return u.refuse() }

// Step implements action.Handler.
func (u unknown) Step(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{}, u.refuse()
}

// Undo implements action.Handler.
func (u unknown) Undo(context.Context, *api.Action, string) (action.Progress, error) {
	return action.Progress{}, u.refuse()
}
