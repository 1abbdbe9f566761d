package pod

import (
	"fmt"
	"reflect"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// entry is what the runtime knows of one process. Its fields are the runtime's lock's.
type entry struct {
	rt   *Runtime
	name string
	rec  record
	// pod is as it was seen last, and is not written to; nil where there is none.
	pod *corev1.Pod
	// seen is the process of its container.
	seen seen
	// confirmed is set when Start was called in this agent's life: before that no pod is made anew,
	// as the Daemon may be gone.
	confirmed bool
	// given is how often the process had ended when Start was called last.
	given int
	// replaced is what the process was when the runtime itself deleted its pod, to make another
	// one; nil when it did not.
	replaced *runtime.State
	backOff  time.Time
	// left is a process of a pod that is gone, problem why no pod is made.
	left    int
	problem string
	// again is closed at each change, and put anew. forgotten is closed when the runtime forgets
	// it.
	again, forgotten chan struct{}
	// saved is the record as it was written last.
	saved record
}

// seen is a process, and the id of the container that it is of.
type seen struct {
	container string
	pid       int
}

func newEntry(r *Runtime, rec record) *entry {
	return &entry{rt: r, name: rec.Process.Name, rec: rec, again: make(chan struct{}), forgotten: make(chan struct{})}
}

// recordOf is what a pod of an earlier agent says by itself, where the record is lost. What it was
// made from it does not say.
func recordOf(pod *corev1.Pod) record {
	restarts, _ := strconv.Atoi(pod.Annotations[annotationRestarts]) // 0 where it says nothing
	return record{
		Process: runtime.Process{
			Name: pod.Annotations[annotationName],
			Of:   runtime.Owner{Namespace: pod.Namespace, Name: pod.Name},
		},
		Restarts: restarts,
	}
}

// take takes a version of a pod, and says whether that is news.
func (e *entry) take(pod *corev1.Pod) bool {
	if e.rec.Pod == pod.UID && e.rec.Ended {
		return false // it was seen to be gone
	}
	if e.rec.Pod != pod.UID {
		e.seen, e.replaced = seen{}, nil
	}
	e.rec.Pod, e.rec.Ended, e.pod, e.left, e.problem = pod.UID, false, pod, 0, ""
	e.rec.Stopping = e.rec.Stopping || isStopping(pod)
	return true
}

// stopping says whether Stop has asked for the end.
func (e *entry) stopping() bool { return e.rec.Stopping || e.pod != nil && isStopping(e.pod) }

// state is what is known of the process.
func (e *entry) state(image string, now time.Time) runtime.State {
	if e.pod != nil {
		s := stateOf(&e.rec, e.pod, e.pid(), image, now)
		if e.replaced != nil {
			s.Problem = ""
		}
		return s
	}
	s := runtime.State{Stopping: e.rec.Stopping, Restarts: e.rec.Restarts, LastExit: e.rec.LastExit, Problem: e.problem}
	if e.left != 0 {
		s.Running, s.PID = true, e.left
		s.Problem = fmt.Sprintf("its pod was removed while process %d still runs: "+
			"the agent makes another pod when that has ended", e.left)
	} else if !s.Stopping {
		s.BackOffUntil = e.backOff
	}
	return s
}

// pid is the process of the container that runs, 0 where it was not found.
func (e *entry) pid() int {
	if cs := containerStatus(e.pod); cs == nil || cs.ContainerID != e.seen.container {
		return 0
	}
	return e.seen.pid
}

// outdated says whether the pod is one that Start would not make now, and its container has ended
// since that is so: it is not ended for that.
func (e *entry) outdated(cfg *Config) bool {
	if !e.confirmed || e.pod.DeletionTimestamp != nil || e.rec.Process.Once {
		return false
	}
	cs := containerStatus(e.pod)
	runsOn := cs != nil && cs.State.Running != nil && endsOf(e.pod) <= e.given
	has := e.pod.Annotations
	other := has[annotationProcess] != hashOf(e.rec.Process) || has[annotationImage] != cfg.Image
	return other && !runsOn
}

// hasRun says whether there was a pod of the process.
func (e *entry) hasRun() bool {
	e.rt.mu.Lock()
	defer e.rt.mu.Unlock()
	return e.rec.Pod != ""
}

// ended notes that a pod is gone, as it was last. The caller holds the runtime's lock.
func (e *entry) ended(last *corev1.Pod) {
	now := time.Now()
	stopping := e.stopping() || isStopping(last)
	e.rec.Stopping, e.rec.Ended, e.pod = stopping, true, nil
	if was := e.replaced; was != nil && !stopping {
		e.rec.Restarts, e.rec.LastExit = was.Restarts, was.LastExit
		return
	}
	exit, began := endOf(last, now)
	if exit != nil {
		e.rec.LastExit = exit
	}
	e.rec.Restarts += endsOf(last)
	if stopping {
		return
	}
	if cs := containerStatus(last); cs != nil && cs.State.Running != nil {
		e.rec.Restarts++
	}
	if ended(last) {
		e.problem = problemOf(last, now)
	}
	if e.rec.Process.Once {
		return
	}
	if now.Sub(began) >= e.rt.cfg.BackOff.Reset {
		e.rec.Ends = 0 // it stayed
	}
	e.rec.Ends++
	e.backOff = now.Add(e.rt.cfg.BackOff.Delay(e.rec.Ends))
}

// endOf is how the last container of a pod that is gone ended, and when it began. The pod may have
// gone before that was told, or before there was one.
func endOf(last *corev1.Pod, now time.Time) (exit *runtime.Exit, began time.Time) {
	cs := containerStatus(last)
	switch {
	case cs == nil:
		return nil, last.CreationTimestamp.Time
	case cs.State.Running != nil:
		return &runtime.Exit{Time: now, Reason: "unknown"}, cs.State.Running.StartedAt.Time
	case terminatedOf(cs) != nil:
		t := terminatedOf(cs)
		return exitOf(t), t.StartedAt.Time
	}
	return nil, last.CreationTimestamp.Time
}

// wake has whoever waits for a change look. The caller holds the runtime's lock.
func (e *entry) wake() {
	close(e.again)
	e.again = make(chan struct{})
}

// changed tells whoever waits, and the agent.
func (e *entry) changed() {
	e.rt.mu.Lock()
	e.wake()
	e.rt.mu.Unlock()
	e.rt.changes.Notify(e.name)
}

// write writes the record of a process down. What cannot be written is known for as long as the
// agent lives.
func (e *entry) write() {
	if err := e.record(); err != nil {
		e.rt.log.Warn("what becomes of a daemon cannot be recorded", "daemon", e.name, "error", err)
	}
}

// record writes the record if it differs from what was written last.
func (e *entry) record() error {
	e.rt.mu.Lock()
	defer e.rt.mu.Unlock()
	select {
	case <-e.forgotten:
		return nil
	default:
	}
	if reflect.DeepEqual(e.rec, e.saved) {
		return nil
	}
	err := e.rec.write(e.rt.cfg.Dir)
	if err == nil {
		e.saved = e.rec
	}
	return err
}
