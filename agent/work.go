package agent

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/intact"
	"github.com/holdfast-storage/holdfast/agent/pending"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Pauses before a daemon is worked on again after a failure.
const (
	retryMin = 100 * time.Millisecond
	retryMax = 30 * time.Second
)

// work is what there is to do, by daemon. Each daemon is worked on by one goroutine at a time, different ones in parallel, so
// that none ever waits for another.
type work struct {
	daemons *mine[*api.Daemon]
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]

	mu sync.Mutex
	// cancel ends the work on a daemon that is under way.
	cancel map[types.NamespacedName]context.CancelFunc
	// ready is which generation of a daemon was made ready by this agent, and on which devices.
	ready map[types.NamespacedName]readiness
	// failed are the daemons at which the work came to no end, and which there was no news of since.
	failed map[types.NamespacedName]bool
	// noticeStatus is told of a change that is none but of the status of a daemon.
	noticeStatus func(*api.Daemon)
}

// generation is one version of the spec of one object; a name can be used again by another object.
type generation struct {
	uid    types.UID
	number int64
}

// readiness is what a daemon was made ready for. Its devices are known by the paths that they had then.
type readiness struct {
	generation
	paths map[string]string
	files intact.Files
}

func readinessOf(l *service.Local) readiness {
	r := readiness{generation: generationOf(l.Daemon), paths: map[string]string{}}
	for name, dev := range l.Devices {
		r.paths[name] = dev.Path
	}
	return r
}

func generationOf(d *api.Daemon) generation { return generation{d.UID, d.Generation} }

func newWork(a *agent) *work {
	w := &work{
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](retryMin, cmp.Or(a.retryMax, retryMax))),
		cancel: map[types.NamespacedName]context.CancelFunc{}, ready: map[types.NamespacedName]readiness{}, failed: map[types.NamespacedName]bool{},
		noticeStatus: a.noticeStatus,
	}
	w.daemons = &mine[*api.Daemon]{
		belongs: func(d *api.Daemon) bool { return d.Spec.Host == a.Name },
		changed: w.changed,
		listed: func() {
			// What runs and has no Daemon any more is found here: the list is an answer of the server.
			for _, name := range a.Runtime.Names() {
				w.add(keyOf(name))
			}
		},
	}
	return w
}

// add puts a daemon in line that there is news of.
func (w *work) add(key types.NamespacedName) {
	w.ended(key, nil)
	w.queue.Add(key)
}

// ended notes what came of the work on a daemon.
func (w *work) ended(key types.NamespacedName, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.failed, key)
	} else {
		w.failed[key] = true
	}
}

// hasFailed says whether the work on a daemon came to no end. It goes on after a pause.
func (w *work) hasFailed(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failed[key]
}

// changed puts a daemon in line. One that is to be deleted is not prepared to the end first.
func (w *work) changed(key types.NamespacedName, was, is *api.Daemon) {
	if was != nil && is != nil && generationOf(was) == generationOf(is) && (was.DeletionTimestamp == nil) == (is.DeletionTimestamp == nil) {
		w.noticeStatus(is)
		return // a change of the status is the agent's own else, and no news
	}
	if is == nil || is.DeletionTimestamp != nil {
		w.mu.Lock()
		if cancel := w.cancel[key]; cancel != nil {
			cancel()
		}
		w.mu.Unlock()
	}
	w.queue.Forget(key)
	w.add(key)
}

// interrupt ends all work that is under way. It is tried again later.
func (w *work) interrupt() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, cancel := range w.cancel {
		cancel()
	}
}

// deleting lists the Daemons that are being deleted.
func (w *work) deleting() []*api.Daemon {
	return slices.DeleteFunc(w.daemons.all(), func(d *api.Daemon) bool { return d.DeletionTimestamp == nil })
}

// begin gives the work on a daemon a context of its own.
func (w *work) begin(ctx context.Context, key types.NamespacedName, d *api.Daemon) (context.Context, func()) {
	if d == nil || d.DeletionTimestamp != nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	w.mu.Lock()
	w.cancel[key] = cancel
	w.mu.Unlock()
	return ctx, func() {
		w.mu.Lock()
		delete(w.cancel, key)
		w.mu.Unlock()
		cancel()
	}
}

// busy says whether a daemon is being worked on.
func (w *work) busy(key types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cancel[key] != nil
}

func (w *work) isReady(key types.NamespacedName, g generation) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ready[key].generation == g
}

// setReady notes that a daemon is ready.
func (w *work) setReady(key types.NamespacedName, r readiness) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ready[key] = r
}

// isSpoiled says whether files that a daemon was made ready with were changed by others.
func (w *work) isSpoiled(key types.NamespacedName, l *service.Local) bool {
	w.mu.Lock()
	was := w.ready[key]
	w.mu.Unlock()
	return was.generation == generationOf(l.Daemon) && !was.files.Are(intact.Of(l.Data, l.Daemon.Spec.Files))
}

// isElsewhere says whether a daemon was made ready on devices that have other paths by now.
func (w *work) isElsewhere(key types.NamespacedName, l *service.Local) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was, is := w.ready[key], readinessOf(l)
	return was.generation == is.generation && !maps.Equal(was.paths, is.paths)
}

func (w *work) forget(key types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.ready, key)
}

// watchProcesses puts daemons in line whose process changed.
func (a *agent) watchProcesses(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-a.Runtime.Changes():
			a.work.add(keyOf(name))
		}
	}
}

func (a *agent) followDaemons(ctx context.Context) {
	follow(ctx, a, a.work.daemons, &api.Daemon{}, func() client.ObjectList { return &api.DaemonList{} })
}

// runWork does the work until ctx ends, and then waits for what is under way.
func (a *agent) runWork(ctx context.Context) {
	release := context.AfterFunc(ctx, a.work.queue.ShutDown)
	defer release()
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		key, down := a.work.queue.Get()
		if down {
			return
		}
		wg.Go(func() {
			defer a.work.queue.Done(key)
			a.workOn(ctx, key)
		})
	}
}

func (a *agent) workOn(ctx context.Context, key types.NamespacedName) {
	err := a.bring(ctx, key)
	a.work.ended(key, err)
	if err == nil {
		a.work.queue.Forget(key)
		return
	}
	if ctx.Err() != nil {
		return
	}
	if !pending.Is(err) && !errors.Is(err, context.Canceled) {
		a.log.Error("cannot bring a daemon to its desired state; retrying", "daemon", key, "error", err)
	}
	a.work.queue.AddRateLimited(key)
}

// bring brings one daemon to where it is wanted.
func (a *agent) bring(ctx context.Context, key types.NamespacedName) error {
	d, known := a.work.daemons.get(key)
	ctx, end := a.work.begin(ctx, key, d)
	defer end()
	switch {
	case !known:
		return nil // the server has not answered yet: what runs, runs
	case a.sole.holds() != "":
		return a.holdStill(ctx, key, d)
	case d == nil:
		return a.stopStray(ctx, key)
	case d.DeletionTimestamp != nil:
		return a.remove(ctx, d)
	case d.Spec.State == api.WantRunning:
		return a.keepRunning(ctx, d)
	case d.Spec.State == api.WantWatched:
		return a.keepWatching(ctx, d)
	default:
		return a.keepStopped(ctx, d)
	}
}

// stopStray stops a process whose Daemon is gone. Its directories stay: nobody said that they may go.
func (a *agent) stopStray(ctx context.Context, key types.NamespacedName) error {
	a.told.forget(key)
	a.words.Forget(key)
	a.reports.forget(key)
	a.work.forget(key)
	name := processName(key)
	if _, runs := a.Runtime.State(name); !runs {
		return nil
	}
	a.log.Warn("stopping a process without a Daemon", "daemon", key)
	ctx, cancel := context.WithTimeout(ctx, stopDeadline)
	defer cancel()
	return a.Runtime.Stop(ctx, name)
}
