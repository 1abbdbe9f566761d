package pod

import (
	"context"
	"fmt"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// adopt continues what earlier agents left, once the API server has listed the pods.
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
		e.tend()
		r.changes.Notify(name)
	}
}

// begin starts a process that is not known. It is forgotten when it cannot be.
func (r *Runtime) begin(ctx context.Context, p runtime.Process) (*entry, error) {
	e := newEntry(r, record{Process: p})
	e.confirmed = true
	if err := e.rec.write(r.cfg.Dir); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.entries[p.Name] = e
	r.mu.Unlock()
	err := e.create(ctx)
	r.mu.Lock()
	made := e.rec.Pod != ""
	if err == nil || made {
		e.tend()
	}
	r.mu.Unlock()
	if err != nil && !made {
		e.forget()
		return nil, err
	}
	return e, nil
}

// create makes the pod of a process. One that is there is taken if it is ours: the answer to who
// made it may have been lost.
func (e *entry) create(ctx context.Context) error {
	e.rt.mu.Lock()
	p, restarts := e.rec.Process, e.rec.Restarts
	e.rt.mu.Unlock()
	e.rt.cfg.BeforeStart(p)
	pod, err := e.rt.api.create(ctx, podOf(&e.rt.cfg, p, restarts))
	if apierrors.IsAlreadyExists(err) {
		there, gerr := e.rt.api.get(ctx, p.Of.Namespace, p.Of.Name)
		switch {
		case gerr != nil:
			return fmt.Errorf("while reading the pod that is there: %w", gerr)
		case !isOurs(there, p, &e.rt.cfg):
			return fmt.Errorf("the pod %s in namespace %s exists and is not of this daemon: "+
				"delete it with 'kubectl delete pod -n %[2]s %[1]s'", p.Of.Name, p.Of.Namespace)
		}
		pod, err = there, nil
	}
	if err != nil {
		return err
	}
	e.rt.wrote(pod)
	return nil
}

// isOurs says whether a pod is that of a process, by whoever of our agents it was made.
func isOurs(pod *corev1.Pod, p runtime.Process, cfg *Config) bool {
	return pod.Annotations[annotationName] == p.Name && pod.Labels[labelManaged] == cfg.ManagedBy &&
		pod.Spec.NodeName == cfg.Node && (p.Of.UID == "" || ownerOf(pod) == types.UID(p.Of.UID))
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

// setProcess makes p what is started the next time.
func (e *entry) setProcess(p runtime.Process) error {
	e.rt.mu.Lock()
	if e.confirmed && reflect.DeepEqual(e.rec.Process, p) {
		e.rt.mu.Unlock()
		return nil // whoever starts it again and again has nothing done by that
	}
	e.rec.Process, e.confirmed = p, true
	if e.pod != nil {
		e.given = endsOf(e.pod)
	}
	e.wake()
	e.rt.mu.Unlock()
	return e.record()
}

// mustEnd says whether a process has to be stopped before it is started: a Stop was cut off, or it
// is that of a Daemon that is gone, with which its pod goes.
func (e *entry) mustEnd(p runtime.Process) bool {
	e.rt.mu.Lock()
	defer e.rt.mu.Unlock()
	if e.stopping() {
		return true
	}
	owner := types.UID(e.rec.Process.Of.UID)
	if e.pod != nil {
		owner = ownerOf(e.pod)
	}
	return owner != "" && p.Of.UID != "" && owner != types.UID(p.Of.UID)
}

// settle waits a little for a state that says something.
func (e *entry) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for {
		e.rt.mu.Lock()
		s, again := e.state(e.rt.cfg.Image, time.Now()), e.again
		e.rt.mu.Unlock()
		if s.Running || s.Problem != "" || s.LastExit != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-e.rt.ctx.Done():
			return
		case <-e.forgotten:
			return
		case <-again:
		}
	}
}
