package pod

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

const (
	// lookEvery is how often a process is looked for that outlives its pod, or that is not seen yet.
	lookEvery = 250 * time.Millisecond
	// forever is longer than any agent lives.
	forever = 365 * 24 * time.Hour
)

// adopt goes on with what earlier agents left, when it is known which pods there are.
func (r *Runtime) adopt() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, e := range r.entries {
		switch {
		case e.pod != nil:
			r.log.Info("adopted the pod of a daemon", "daemon", name, "pod", e.pod.Name)
		case e.rec.Pod == "" && !e.rec.Stopping: // its first pod was never made
			delete(r.entries, name)
			close(e.forgotten)
			r.drop(name)
			continue
		case !e.rec.Ended: // its pod went while no agent was there, which is not held against it
			e.rec.LastExit, e.rec.Ends, e.rec.Ended = &runtime.Exit{Time: time.Now(), Reason: "unknown"}, 0, true
			if !e.rec.Stopping {
				e.rec.Restarts++
			}
		}
		r.tend(e)
		r.changes.Notify(name)
	}
}

func (r *Runtime) drop(name string) {
	if err := removeRecord(r.cfg.Dir, name); err != nil {
		r.log.Warn("the record of a daemon that was stopped stays", "daemon", name, "error", err)
	}
}

// tend looks after a process until it is forgotten or the runtime closed. It is called once.
func (r *Runtime) tend(e *entry) {
	r.wg.Go(func() {
		for {
			r.mu.Lock()
			again := e.again
			r.mu.Unlock()
			timer := time.NewTimer(r.keep(e))
			select {
			case <-r.ctx.Done():
				timer.Stop()
				return
			case <-e.forgotten:
				timer.Stop()
				return
			case <-again:
			case <-timer.C:
			}
			timer.Stop()
		}
	})
}

// keep does what is to be done for a process, and says when to look again if nothing changes before.
func (r *Runtime) keep(e *entry) time.Duration {
	done, err := r.turns.Take(r.ctx, r.ctx, e.name)
	if err != nil {
		return forever
	}
	defer done()
	r.mu.Lock()
	pod, stopping, confirmed, outdated := e.pod, e.stopping(), e.confirmed, e.pod != nil && e.outdated(&r.cfg)
	r.mu.Unlock()
	switch {
	case pod == nil:
		return r.renew(e, stopping || !confirmed)
	case pod.DeletionTimestamp != nil:
		return forever
	case stopping: // a Stop was cut off, by whoever ended the agent that called it
		return r.remove(e, pod)
	case ended(pod) || outdated:
		return r.replace(e, pod, outdated && !ended(pod))
	}
	return r.watchStart(e, pod)
}

// renew makes another pod in the place of one that is gone, when no process of that one lives and its
// time has come. A process that is not wanted, or not known to be, is only looked for.
func (r *Runtime) renew(e *entry, unwanted bool) time.Duration {
	alive, err := r.awaitsEnd(e)
	if err != nil || alive {
		return lookEvery
	}
	if unwanted {
		return forever
	}
	r.mu.Lock()
	pause := time.Until(e.backOff)
	r.mu.Unlock()
	if pause > 0 {
		return pause
	}
	if err := r.create(r.ctx, e); err != nil && r.ctx.Err() == nil {
		r.mu.Lock()
		e.rec.Ends++
		e.backOff, e.problem = time.Now().Add(r.cfg.BackOff.Delay(e.rec.Ends)), limit(err.Error())
		r.mu.Unlock()
		r.log.Warn("the pod of a daemon cannot be made; retrying", "daemon", e.name, "error", err)
		r.changed(e)
	}
	return 0
}

// awaitsEnd says whether a process of the last pod, which is gone, lives. It is asked again and again.
func (r *Runtime) awaitsEnd(e *entry) (bool, error) {
	r.mu.Lock()
	uid, last, was := e.rec.Pod, e.seen.pid, e.left
	r.mu.Unlock()
	if uid == "" {
		return false, nil
	}
	all, err := r.cfg.Processes(uid)
	if err != nil {
		r.log.Warn("whether a daemon has ended cannot be found out; retrying", "daemon", e.name, "error", err)
		return true, err
	}
	left := 0
	for _, p := range all {
		if left == 0 || p.PID == last {
			left = p.PID
		}
	}
	if left != was {
		r.mu.Lock()
		e.left = left
		r.mu.Unlock()
		r.changed(e)
	}
	return left != 0, nil
}

// replace deletes a pod that is at its end, or that is not what is wanted any more. Its end has
// another one made.
func (r *Runtime) replace(e *entry, pod *corev1.Pod, outdated bool) time.Duration {
	r.mu.Lock()
	if outdated && e.replaced == nil {
		s := e.state(r.cfg.Image, time.Now())
		e.replaced = &s
	}
	r.mu.Unlock()
	return r.remove(e, pod)
}

// remove deletes a pod without waiting for its end.
func (r *Runtime) remove(e *entry, pod *corev1.Pod) time.Duration {
	gone, err := r.api.delete(r.ctx, pod)
	if err != nil && r.ctx.Err() == nil {
		r.log.Warn("a pod cannot be deleted; retrying", "daemon", e.name, "error", err)
		return r.cfg.BackOff.Max
	}
	if gone {
		r.loseNow(e, pod)
	}
	return forever
}

// watchStart has the agent look again when a pod does not start in time, and finds processes that
// were not found at once.
func (r *Runtime) watchStart(e *entry, pod *corev1.Pod) time.Duration {
	if late := lateIn(pod, time.Now()); late > 0 {
		return late
	}
	cs := containerStatus(pod)
	if cs == nil || cs.State.Running == nil {
		r.noteOnce(e)
		return forever
	}
	process := r.identify(e.name, pod)
	r.mu.Lock()
	if e.pod == pod {
		e.seen = process
	}
	found := e.seen.pid != 0
	r.mu.Unlock()
	if !found && time.Since(cs.State.Running.StartedAt.Time) < unseenAfter {
		return lookEvery
	}
	r.noteOnce(e)
	return forever
}

// noteOnce tells the agent of what came with time alone.
func (r *Runtime) noteOnce(e *entry) { r.changes.Notify(e.name) }

// create makes the pod of a process. One that is there is taken if it is ours: the answer to who made
// it may have been lost.
func (r *Runtime) create(ctx context.Context, e *entry) error {
	r.mu.Lock()
	p, restarts := e.rec.Process, e.rec.Restarts
	r.mu.Unlock()
	r.cfg.BeforeStart(p)
	pod, err := r.api.create(ctx, podOf(&r.cfg, p, restarts))
	if apierrors.IsAlreadyExists(err) {
		there, gerr := r.api.get(ctx, p.Of.Namespace, p.Of.Name)
		switch {
		case gerr != nil:
			return fmt.Errorf("while reading the pod that is there: %w", gerr)
		case !isOurs(there, p, r.cfg.Node):
			return fmt.Errorf("the pod %s in namespace %s exists and is not of this daemon: delete it with 'kubectl delete pod -n %[2]s %[1]s'",
				p.Of.Name, p.Of.Namespace)
		}
		pod, err = there, nil
	}
	if err != nil {
		return err
	}
	r.wrote(pod)
	return nil
}

// isOurs says whether a pod is that of a process, by whoever of our agents it was made.
func isOurs(pod *corev1.Pod, p runtime.Process, node string) bool {
	return pod.Annotations[annotationName] == p.Name && pod.Labels[labelManaged] == managedBy &&
		pod.Spec.NodeName == node && (p.Of.UID == "" || ownerOf(pod) == types.UID(p.Of.UID))
}

// ownerOf is the UID of the Daemon that a pod is of; empty where it is of none.
func ownerOf(pod *corev1.Pod) types.UID {
	for _, o := range pod.OwnerReferences {
		if o.Controller != nil && *o.Controller {
			return o.UID
		}
	}
	return ""
}

// begin starts a process that is not known. It is forgotten when it cannot be.
func (r *Runtime) begin(ctx context.Context, p runtime.Process) (*entry, error) {
	e := newEntry(record{Process: p})
	e.confirmed = true
	if err := e.rec.write(r.cfg.Dir); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.entries[p.Name] = e
	r.mu.Unlock()
	err := r.create(ctx, e)
	r.mu.Lock()
	made := e.rec.Pod != ""
	if err == nil || made {
		r.tend(e)
	}
	r.mu.Unlock()
	if err != nil && !made {
		r.forget(e)
		return nil, err
	}
	return e, nil
}

// setProcess makes p what is started the next time.
func (r *Runtime) setProcess(e *entry, p runtime.Process) error {
	r.mu.Lock()
	e.rec.Process, e.confirmed = p, true
	if e.pod != nil {
		e.given = endsOf(e.pod)
	}
	r.mu.Unlock()
	if err := r.record(e); err != nil {
		return err
	}
	r.changed(e)
	return nil
}

// mustEnd says whether a process has to be stopped before it is started: a Stop was cut off, or it is
// that of a Daemon that is gone, with which its pod goes.
func (r *Runtime) mustEnd(e *entry, p runtime.Process) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.stopping() {
		return true
	}
	owner := types.UID("")
	if e.pod != nil {
		owner = ownerOf(e.pod)
	}
	return owner != "" && p.Of.UID != "" && owner != types.UID(p.Of.UID)
}

// settle waits a little for a state that says something.
func (r *Runtime) settle(ctx context.Context, e *entry) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		r.mu.Lock()
		s, again := e.state(r.cfg.Image, time.Now()), e.again
		r.mu.Unlock()
		if s.Running || s.Problem != "" || s.LastExit != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-r.ctx.Done():
			return
		case <-e.forgotten:
			return
		case <-again:
		}
	}
}

// end stops a process and forgets it. It can be called again when ctx ended before.
func (r *Runtime) end(ctx context.Context, e *entry) error {
	if err := r.askToEnd(ctx, e); err != nil {
		return fmt.Errorf("while stopping %s: %w", e.name, err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		over, again := r.isOver(e)
		if over {
			r.forget(e)
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("while stopping %s: it has not ended yet: %w", e.name, context.Cause(ctx))
		case <-r.ctx.Done():
			return errors.New("the runtime was closed")
		case <-again:
		case <-tick.C:
		}
	}
}

// isOver says whether neither the pod nor a process of it is left.
func (r *Runtime) isOver(e *entry) (bool, <-chan struct{}) {
	r.mu.Lock()
	pod, again := e.pod, e.again
	r.mu.Unlock()
	if pod != nil {
		return false, again
	}
	alive, err := r.awaitsEnd(e)
	return err == nil && !alive, again
}

// askToEnd notes at the pod, and then in the record, that the pod is to end before it has it deleted.
func (r *Runtime) askToEnd(ctx context.Context, e *entry) error {
	r.mu.Lock()
	pod := e.pod
	r.mu.Unlock()
	if pod != nil && !isStopping(pod) {
		now, err := r.api.annotate(ctx, pod, AnnotationStop, time.Now().UTC().Format(time.RFC3339))
		if err != nil {
			return err
		}
		if now != nil {
			r.wrote(now)
		}
	}
	r.mu.Lock()
	e.rec.Stopping = true
	r.mu.Unlock()
	if err := r.record(e); err != nil {
		return err
	}
	r.changed(e)
	if pod == nil {
		return nil
	}
	gone, err := r.api.delete(ctx, pod)
	if gone {
		r.loseNow(e, pod)
	}
	return err
}

// forget forgets a process.
func (r *Runtime) forget(e *entry) {
	r.mu.Lock()
	delete(r.entries, e.name)
	close(e.forgotten)
	r.mu.Unlock()
	r.drop(e.name)
	r.changes.Notify(e.name)
}
