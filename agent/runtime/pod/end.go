package pod

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// end stops a process and forgets it. It can be called again when ctx ended before.
func (e *entry) end(ctx context.Context) error {
	if err := e.askToEnd(ctx); err != nil {
		return fmt.Errorf("while stopping %s: %w", e.name, err)
	}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		over, again := e.isOver()
		if over {
			e.forget()
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("while stopping %s: it has not ended yet: %w", e.name, context.Cause(ctx))
		case <-e.rt.ctx.Done():
			return errors.New("the runtime was closed")
		case <-again:
		case <-tick.C:
		}
	}
}

// isOver says whether neither the pod nor a process of it is left.
func (e *entry) isOver() (bool, <-chan struct{}) {
	e.rt.mu.Lock()
	pod, again := e.pod, e.again
	e.rt.mu.Unlock()
	if pod != nil {
		return false, again
	}
	alive, err := e.awaitsEnd()
	return err == nil && !alive, again
}

// askToEnd notes at the pod, and then in the record, that the pod is to end before it has it
// deleted.
func (e *entry) askToEnd(ctx context.Context) error {
	e.rt.mu.Lock()
	pod := e.pod
	e.rt.mu.Unlock()
	if pod != nil && !isStopping(pod) {
		now, err := e.rt.api.annotate(ctx, pod, AnnotationStop, time.Now().UTC().Format(time.RFC3339))
		if err != nil {
			return err
		}
		if now != nil {
			e.rt.wrote(now)
		}
	}
	e.rt.mu.Lock()
	e.rec.Stopping = true
	e.rt.mu.Unlock()
	if err := e.record(); err != nil {
		return err
	}
	e.changed()
	if pod == nil {
		return nil
	}
	gone, err := e.rt.api.delete(ctx, pod)
	if gone {
		e.loseNow(pod)
	}
	return err
}

// forget forgets a process.
func (e *entry) forget() {
	e.rt.mu.Lock()
	delete(e.rt.entries, e.name)
	close(e.forgotten)
	e.rt.mu.Unlock()
	e.rt.drop(e.name)
	e.rt.changes.Notify(e.name)
}

func (r *Runtime) drop(name string) {
	if err := removeRecord(r.cfg.Dir, name); err != nil {
		r.log.Warn("the record of a daemon that was stopped stays", "daemon", name, "error", err)
	}
}
