package action

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/backoff"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Runner is what the leader does with actions: it schedules all of them, and carries out those of its own kinds. Those of
// the agents' kinds are carried out by the agents.
type Runner struct {
	Store Store
	// Handlers carry out the leader's kinds, each of its own.
	Handlers []Handler
	// Agents are the kinds that agents carry out.
	Agents []Kind
	// Accept looks at an action of the agents' kinds before it is accepted, as Handler.Check does for the others. The agent
	// checks again before the first step. Nil accepts all.
	Accept func(ctx context.Context, a *api.Action) error
	// Ask says what is to come first, when nothing else is in the way of an action of a kind that Asks; empty when it may begin. It is asked
	// again until then. Nil: all may begin when it is their turn.
	Ask func(ctx context.Context, a *api.Action) (against string, err error)
	// OnStuck is called, in a goroutine of its own, when an action could not be written or carried on several times in a row. Nil
	// tells the log alone.
	OnStuck func(ctx context.Context, a *api.Action, err error) error
	// Waits says how long after its time an agent may still end an action. Zero means the defaults.
	Waits waits.Waits
	// Stats counts, unless it is nil.
	Stats *Stats
	// Log is slog.Default when nil.
	Log *slog.Logger
}

// Kinds are all kinds, by name.
func (r *Runner) Kinds() map[string]Kind {
	kinds := map[string]Kind{}
	for _, k := range r.Agents {
		kinds[k.Name] = k
	}
	for _, h := range r.Handlers {
		kinds[h.Kind().Name] = h.Kind()
	}
	return kinds
}

// idleLook is how often the leader looks at the actions where nothing changes and no deadline comes.
const idleLook = time.Hour

// Run goes on until ctx ends, and returns when everything that it began has come to rest. Only the leader may run it.
func (r *Runner) Run(ctx context.Context) error {
	x := &running{
		Runner: *r, kinds: r.Kinds(), handlers: map[string]Handler{}, wake: make(chan struct{}, 1), tasks: map[types.UID]*task{},
	}
	if x.Log == nil {
		x.Log = slog.Default()
	}
	for _, h := range r.Handlers {
		x.handlers[h.Kind().Name] = h
	}
	ctx, cancel := context.WithCancel(ctx)
	defer x.work.Wait()
	defer cancel()
	x.Store.Notify(ctx, x.signal)
	failures := 0
	for {
		next, err := x.pass(ctx)
		if failures++; err == nil {
			failures = 0
		} else if ctx.Err() == nil {
			x.Log.Warn("cannot process actions; retrying", "error", err)
			next = backoff.Pause("actions", failures)
		}
		if !x.sleep(ctx, next, err == nil) {
			return nil
		}
	}
}

// sleep waits for a signal, or until next has passed; after an error, for that alone. It returns false when ctx has ended.
func (x *running) sleep(ctx context.Context, next time.Duration, signals bool) bool {
	timer := time.NewTimer(max(next, 10*time.Millisecond))
	defer timer.Stop()
	wake := x.wake
	if !signals {
		wake = nil
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

// running is a Runner at work.
type running struct {
	Runner
	kinds    map[string]Kind
	handlers map[string]Handler
	// wake has a place for one signal.
	wake chan struct{}
	work sync.WaitGroup

	mu    sync.Mutex
	tasks map[types.UID]*task
	// passes counts the looks at all actions.
	passes int
	// asked are the actions of which the last look found that it is to be asked whether they may begin, each with how many of its cluster there are.
	// Only passes write it.
	asked map[types.UID]int
}

// task is what is known of an action whose turn it is, beside its record.
type task struct {
	// busy is set while a goroutine works on the action; cancel ends what it does.
	busy   bool
	cancel context.CancelFunc
	// want is what was wanted when the last move began, and at when the next one is due.
	want api.ActionWant
	at   time.Time
	// checked is set when a new action was found possible, or could not be checked.
	checked  bool
	failures int
	// refused counts how often in a row the schedule's word could not be written, and aside is until when it is not tried.
	refused int
	aside   time.Time
	// ended is during which pass the last move ended.
	ended int
	// answer is whether the action may begin.
	answer answer
}

func (x *running) signal() {
	select {
	case x.wake <- struct{}{}:
	default:
	}
}

// pass looks at all actions once, and says when to look again at the latest.
func (x *running) pass(ctx context.Context) (time.Duration, error) {
	x.mu.Lock()
	x.passes++
	x.mu.Unlock()
	actions, err := x.Store.List(ctx)
	if err != nil {
		return 0, err
	}
	hosts, err := x.Store.Hosts(ctx)
	if err != nil {
		return 0, err
	}
	concern, err := x.concern(ctx, actions, hosts)
	if err != nil {
		return 0, err
	}
	x.forget(actions)
	now := time.Now()
	next := now.Add(idleLook)
	facts := Facts{Now: now, Kinds: x.kinds, Hosts: hosts, Concern: concern, Against: x.against(now), Waits: x.Waits}
	if err := x.schedule(ctx, actions, facts); err != nil {
		return 0, err
	}
	for _, a := range actions {
		for _, at := range []time.Time{x.carry(ctx, a, now), x.asideUntil(a)} {
			if at.After(now) && at.Before(next) {
				next = at
			}
		}
	}
	x.clear(ctx, Expendable(actions, x.kinds, now))
	return time.Until(next), nil
}

// concern reads what the actions on hosts concern that have not ended.
func (x *running) concern(ctx context.Context, actions []*api.Action, hosts map[string]HostFacts) (map[string][]string, error) {
	found := map[string][]string{}
	for _, a := range actions {
		_, there := hosts[a.Spec.Host]
		if _, known := found[a.Spec.Host]; known || !there || a.Spec.Cluster != "" || a.Status.State.Final() {
			continue
		}
		what, err := x.Store.Concern(ctx, a.Spec.Host)
		if err != nil {
			return nil, err
		}
		found[a.Spec.Host] = what
	}
	return found, nil
}

// clear removes actions. One that cannot be removed is in nobody's way, and is tried again with the next look.
func (x *running) clear(ctx context.Context, actions []*api.Action) {
	for _, a := range actions {
		if err := x.Store.Remove(ctx, a); err != nil && ctx.Err() == nil {
			x.Log.Warn("cannot remove an old action", "action", a.Namespace+"/"+a.Name, "error", err)
		}
	}
}

// forget drops the tasks of actions that are gone or have ended.
func (x *running) forget(actions []*api.Action) {
	alive := map[types.UID]bool{}
	for _, a := range actions {
		alive[a.UID] = !a.Status.State.Final()
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for uid, t := range x.tasks {
		if !alive[uid] && !t.busy {
			delete(x.tasks, uid)
		}
	}
	x.countStuck()
}

// schedule records what Schedule says, and puts what is recorded into actions.
func (x *running) schedule(ctx context.Context, actions []*api.Action, f Facts) error {
	at, ready := map[types.UID]int{}, []*api.Action(nil)
	f.Held = map[types.UID]bool{}
	for i, a := range actions {
		at[a.UID] = i
		if x.ready(a, f.Now) {
			ready = append(ready, a)
			f.Held[a.UID] = x.asideUntil(a).After(f.Now)
		}
	}
	wanted, asked := schedule(ready, f)
	x.nowAsked(asked)
	x.dropMoot(ready, wanted, f.Held)
	for _, t := range wanted {
		// Unlike the record of what was done, a decision does not hold when the spec was changed meanwhile: the action may have
		// been rejected.
		next := t.Action.DeepCopy()
		next.Status = *t.Status
		stand(next, &next.Status, f.Now)
		stored, err := x.Store.PutStatus(ctx, next)
		switch {
		case err == nil:
			actions[at[t.Action.UID]] = stored
			x.written(stored)
			x.tell(stored)
		case ctx.Err() != nil:
			return err
		case errors.Is(err, ErrNotFound):
			x.signal()
			return nil
		default:
			return x.unwritten(ctx, t.Action, err)
		}
	}
	return nil
}

func (x *running) tell(a *api.Action) {
	if a.Status.State.Final() {
		x.Log.Log(context.Background(), LevelOf(a), "an action has ended", "action", a.Namespace+"/"+a.Name,
			"kind", a.Spec.Kind, "state", a.Status.State, "message", a.Status.Message)
	}
}

func (x *running) checked(a *api.Action) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.task(a).checked
}

// task returns the task of an action. The caller holds the mutex.
func (x *running) task(a *api.Action) *task {
	t := x.tasks[a.UID]
	if t == nil {
		t = &task{}
		x.tasks[a.UID] = t
	}
	return t
}

// carry starts the next move of an action if it is due, and says when to look at the action again; zero when only a change
// matters.
func (x *running) carry(ctx context.Context, a *api.Action, now time.Time) time.Time {
	if a.Status.State.Final() {
		return keptUntil(a, x.kinds[a.Spec.Kind])
	}
	h := x.handlers[a.Spec.Kind]
	mine := h != nil && (a.Status.State == api.ActionNew || a.Status.State == api.ActionRunning)
	asked := x.asked[a.UID] > 0 && a.Status.State == api.ActionPendingSchedule
	if !mine && !asked && (a.Status.State != "" || x.checkOf(a) == nil || x.checked(a)) {
		return x.deadline(a, x.kinds[a.Spec.Kind])
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.task(a)
	switch {
	case t.busy && t.want != a.Spec.Want:
		t.cancel() // it shall not wait for a step that hangs
	case t.busy:
	case t.want == a.Spec.Want && t.at.After(now):
		return t.at
	case t.ended == x.passes:
		// What this pass has read may be older than what the move recorded. Its end gave a signal for another pass.
	default:
		x.start(ctx, h, a, t)
	}
	return time.Time{}
}

// deadline is when an action that others carry on, or that waits, ends by itself; Schedule ends it then.
func (x *running) deadline(a *api.Action, k Kind) time.Time {
	if a.Status.State != api.ActionRunning || a.Status.Started == nil {
		return a.CreationTimestamp.Add(expiryOf(a, k) + time.Second)
	}
	limit := timeoutOf(a, k) + x.Waits.OrDefault().ActionLost + time.Second
	if time.Since(a.Status.Started.Time) > limit {
		limit += timeoutOf(a, k)
	}
	return a.Status.Started.Add(limit)
}

// keptUntil is when to look again at an action that has ended, because it is to be removed soon.
func keptUntil(a *api.Action, k Kind) time.Time {
	if k.KeepFor == 0 {
		return time.Time{}
	}
	return finishedAt(a).Add(k.KeepFor + time.Second)
}

// start works on an action in a goroutine of its own. The caller holds the mutex.
func (x *running) start(ctx context.Context, h Handler, a *api.Action, t *task) {
	ctx, cancel := context.WithCancel(ctx)
	t.busy, t.want, t.cancel = true, a.Spec.Want, cancel
	t.answer.asking = a.Status.State == api.ActionPendingSchedule
	x.work.Go(func() {
		defer cancel()
		var pause time.Duration
		var err error
		switch a.Status.State {
		case "":
			err = x.check(ctx, a)
		case api.ActionPendingSchedule:
			pause, err = x.ask(ctx, a, t)
		default:
			pause, err = x.move(ctx, h, a)
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		t.busy, t.at, t.ended = false, time.Now().Add(pause), x.passes
		if t.failures++; err == nil {
			t.failures, t.checked = 0, true
		} else if ctx.Err() == nil {
			t.at = time.Now().Add(pauseOf(a, t.failures))
			x.Log.Warn("cannot continue an action; retrying", "action", a.Namespace+"/"+a.Name, "error", err)
			x.tellStuck(ctx, a, t.failures, err)
		}
		x.signal()
	})
}

// checkOf is what looks at an action before it is accepted; nil for those that are accepted as they are.
func (x *running) checkOf(a *api.Action) func(context.Context, *api.Action) error {
	if h := x.handlers[a.Spec.Kind]; h != nil {
		return guarded{h}.Check
	}
	if x.kinds[a.Spec.Kind].Executor == api.ByAgent && x.Accept != nil {
		return x.accept
	}
	return nil
}

// accept calls Accept, which may have a fault like any other part of a kind.
func (x *running) accept(ctx context.Context, a *api.Action) (err error) {
	defer caught(a, a.Spec.Kind, &err)
	return x.Accept(ctx, a)
}

// check looks at a new action before it is accepted. What cannot be found out now is looked at again before the first step.
func (x *running) check(ctx context.Context, a *api.Action) error {
	call, cancel := context.WithTimeout(ctx, callDeadline)
	defer cancel()
	err := x.checkOf(a)(call, a)
	if !errors.Is(err, ErrRefused) {
		return nil
	}
	e := &entry{action: a, status: a.Status.DeepCopy(), kind: x.kinds[a.Spec.Kind]}
	e.accept(time.Now())
	e.end(api.ActionFailed, ReasonRefused, whyRefused(err), time.Now())
	return x.settled(put(ctx, x.Store, a, e.status))
}

func (x *running) move(ctx context.Context, h Handler, a *api.Action) (time.Duration, error) {
	turn, err := Execute(ctx, h, x.Store, a)
	return turn.Next, x.settled(turn.Action, err)
}

// settled tells of an action that has ended. That somebody else wrote the action, or removed it, is settled by looking again.
func (x *running) settled(a *api.Action, err error) error {
	if errors.Is(err, ErrConflict) || errors.Is(err, ErrNotFound) {
		return nil
	}
	if err == nil {
		x.tell(a)
	}
	return err
}
