package pod

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// lookEvery is how often a process is looked for that outlives its pod, or that is not seen
	// yet.
	lookEvery = 250 * time.Millisecond
	// forever is longer than any agent lives.
	forever = 365 * 24 * time.Hour
)

// tend looks after a process until it is forgotten or the runtime closed. It is called once.
func (e *entry) tend() {
	e.rt.wg.Go(func() {
		for {
			e.rt.mu.Lock()
			again := e.again
			e.rt.mu.Unlock()
			timer := time.NewTimer(e.keep())
			select {
			case <-e.rt.ctx.Done():
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

// keep does what is to be done for a process, and says when to look again if nothing changes
// before.
func (e *entry) keep() time.Duration {
	done, err := e.rt.turns.Take(e.rt.ctx, e.rt.ctx, e.name)
	if err != nil {
		return forever
	}
	defer done()
	e.rt.mu.Lock()
	pod, stopping, confirmed, outdated := e.pod, e.stopping(), e.confirmed, e.pod != nil && e.outdated(&e.rt.cfg)
	once := e.rec.Process.Once
	e.rt.mu.Unlock()
	switch {
	case pod == nil:
		return e.renew(stopping || !confirmed || once && e.hasRun())
	case pod.DeletionTimestamp != nil:
		return forever
	case stopping: // a Stop was cut off, by whoever ended the agent that called it
		return e.remove(pod)
	case ended(pod) && once: // it stays, with its log, until it is stopped
		return forever
	case ended(pod) || outdated:
		return e.replace(pod, outdated && !ended(pod))
	}
	return e.watchStart(pod)
}

// renew makes another pod in the place of one that is gone, when no process of that one lives and
// its time has come. A process that is not wanted, or not known to be, is only looked for.
func (e *entry) renew(unwanted bool) time.Duration {
	alive, err := e.awaitsEnd()
	if err != nil || alive {
		return lookEvery
	}
	if unwanted {
		return forever
	}
	e.rt.mu.Lock()
	pause := time.Until(e.backOff)
	e.rt.mu.Unlock()
	if pause > 0 {
		return pause
	}
	if err := e.create(e.rt.ctx); err != nil && e.rt.ctx.Err() == nil {
		e.postpone(err)
	}
	return lookEvery
}

// postpone notes that no pod can be made, and when to try again.
func (e *entry) postpone(err error) {
	e.rt.mu.Lock()
	e.rec.Ends++
	e.backOff, e.problem = time.Now().Add(e.rt.cfg.BackOff.Delay(e.rec.Ends)), limit(err.Error())
	e.rt.mu.Unlock()
	e.rt.log.Warn("the pod of a daemon cannot be made; retrying", "daemon", e.name, "error", err)
	e.changed()
}

// awaitsEnd says whether a process of the last pod, which is gone, lives. It is asked again and
// again.
func (e *entry) awaitsEnd() (bool, error) {
	e.rt.mu.Lock()
	uid, last, was := e.rec.Pod, e.seen.pid, e.left
	e.rt.mu.Unlock()
	if uid == "" {
		return false, nil
	}
	all, err := e.rt.cfg.Processes(uid)
	if err != nil {
		e.rt.log.Warn("whether a daemon has ended cannot be found out; retrying", "daemon", e.name, "error", err)
		return true, err
	}
	left := 0
	for _, p := range all {
		if left == 0 || p.PID == last {
			left = p.PID
		}
	}
	if left != was {
		e.rt.mu.Lock()
		e.left = left
		e.rt.mu.Unlock()
		e.changed()
	}
	return left != 0, nil
}

// replace deletes a pod that is at its end, or that is not what is wanted any more. Its end has
// another one made.
func (e *entry) replace(pod *corev1.Pod, outdated bool) time.Duration {
	e.rt.mu.Lock()
	if outdated && e.replaced == nil {
		s := e.state(e.rt.cfg.Image, time.Now())
		e.replaced = &s
	}
	e.rt.mu.Unlock()
	return e.remove(pod)
}

// remove deletes a pod without waiting for its end.
func (e *entry) remove(pod *corev1.Pod) time.Duration {
	gone, err := e.rt.api.delete(e.rt.ctx, pod)
	if err != nil && e.rt.ctx.Err() == nil {
		e.rt.log.Warn("a pod cannot be deleted; retrying", "daemon", e.name, "error", err)
		e.rt.mu.Lock()
		e.replaced = nil // it may start by itself meanwhile
		e.rt.mu.Unlock()
		return e.rt.cfg.BackOff.Max
	}
	if gone {
		e.loseNow(pod)
	}
	return forever
}

// watchStart has the agent look again when a pod does not start in time, and finds processes that
// were not found at once.
func (e *entry) watchStart(pod *corev1.Pod) time.Duration {
	if late := lateIn(pod, time.Now()); late > 0 {
		return late
	}
	cs := containerStatus(pod)
	if cs == nil || cs.State.Running == nil {
		e.rt.changes.Notify(e.name) // it has come with time alone
		return forever
	}
	process := e.rt.identify(e.name, pod)
	e.rt.mu.Lock()
	if e.pod == pod {
		e.seen = process
	}
	found := e.seen.pid != 0
	e.rt.mu.Unlock()
	if !found && time.Since(cs.State.Running.StartedAt.Time) < unseenAfter {
		return lookEvery
	}
	e.rt.changes.Notify(e.name) // it has come with time alone
	return forever
}
