package pod

import (
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// store takes what the watch tells into the runtime.
type store struct {
	rt     *Runtime
	synced bool
}

var _ cache.ReflectorStore = (*store)(nil)

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.Update(obj) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error {
	pod, err := as(obj)
	if err == nil {
		s.rt.observe(pod)
	}
	return err
}

// Delete implements cache.ReflectorStore.
func (s *store) Delete(obj any) error {
	pod, err := as(obj)
	if err != nil {
		return err
	}
	s.rt.lose(pod.Annotations[annotationName], pod.UID, pod)
	s.rt.mu.Lock()
	defer s.rt.mu.Unlock()
	delete(s.rt.gone, pod.UID)
	return nil
}

// Replace implements cache.ReflectorStore: what is not in a list is gone, unless it was written
// after the list.
func (s *store) Replace(objs []any, version string) error {
	there := map[types.UID]bool{}
	for _, obj := range objs {
		pod, err := as(obj)
		if err != nil {
			return err
		}
		there[pod.UID] = true
		s.rt.observe(pod)
	}
	s.rt.loseOthers(there, version)
	if !s.synced {
		s.synced = true
		s.rt.adopt()
		close(s.rt.synced)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (s *store) Resync() error { return nil }

func as(obj any) (*corev1.Pod, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("%T is no pod", obj)
	}
	return pod, nil
}

// newer says whether one version of an object comes after another one. Versions of one kind are
// numbers that grow, as Kubernetes promises.
func newer(a, b string) bool {
	x, errX := strconv.ParseUint(a, 10, 64)
	y, errY := strconv.ParseUint(b, 10, 64)
	return errX != nil || errY != nil || x > y
}

// observe takes what the watch says of a pod. That of a process that is not known was made by an
// earlier agent.
func (r *Runtime) observe(pod *corev1.Pod) { r.see(pod, true) }

// wrote takes what the API server answers to a request about a pod. The process may have been
// forgotten meanwhile.
func (r *Runtime) wrote(pod *corev1.Pod) { r.see(pod, false) }

// see takes a version of a pod, unless later things are known.
func (r *Runtime) see(pod *corev1.Pod, adopts bool) {
	name := pod.Annotations[annotationName]
	if name == "" || pod.Spec.NodeName != r.cfg.Node {
		return
	}
	process := r.identify(name, pod)
	r.mu.Lock()
	e := r.entries[name]
	if r.gone[pod.UID] || e == nil && !adopts {
		r.mu.Unlock()
		return
	}
	if e == nil {
		e = newEntry(r, recordOf(pod))
		r.entries[name] = e
		if r.isSynced() {
			e.tend()
		}
	}
	if e.pod != nil && e.pod.UID != pod.UID && newer(pod.ResourceVersion, e.pod.ResourceVersion) {
		e.ended(e.pod) // nothing was heard of its end
	}
	took := (e.pod == nil || newer(pod.ResourceVersion, e.pod.ResourceVersion)) && e.take(pod)
	if took && process.pid != 0 {
		e.seen = process
	}
	r.mu.Unlock()
	if took {
		e.write()
		e.changed()
	}
}

// lose takes the end of a pod. last is the pod as it was last, or nil.
func (r *Runtime) lose(name string, uid types.UID, last *corev1.Pod) {
	r.mu.Lock()
	e := r.entries[name]
	if e == nil || e.pod == nil || e.pod.UID != uid {
		r.mu.Unlock()
		return
	}
	if last == nil {
		last = e.pod
	}
	e.ended(last)
	r.mu.Unlock()
	e.write()
	e.changed()
}

// loseNow takes the end of a pod by the answer to a request, of which the watch is to tell still.
func (e *entry) loseNow(pod *corev1.Pod) {
	e.rt.mu.Lock()
	e.rt.gone[pod.UID] = true
	e.rt.mu.Unlock()
	e.rt.lose(e.name, pod.UID, nil)
}

func (r *Runtime) isSynced() bool {
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// loseOthers takes the end of the pods that are not in a list, which has a version.
func (r *Runtime) loseOthers(there map[types.UID]bool, version string) {
	r.mu.Lock()
	lost := map[string]types.UID{}
	for name, e := range r.entries {
		if e.pod != nil && !there[e.pod.UID] && !newer(e.pod.ResourceVersion, version) {
			lost[name] = e.pod.UID
		}
	}
	for uid := range r.gone {
		if !there[uid] {
			delete(r.gone, uid)
		}
	}
	r.mu.Unlock()
	for name, uid := range lost {
		r.lose(name, uid, nil)
	}
}

// identify finds the process of a pod whose container runs, unless it is known. It is found again
// when another container takes the place of that one.
func (r *Runtime) identify(name string, pod *corev1.Pod) seen {
	cs := containerStatus(pod)
	if cs == nil || cs.State.Running == nil || cs.ContainerID == "" {
		return seen{}
	}
	r.mu.Lock()
	if e := r.entries[name]; e != nil && e.seen.container == cs.ContainerID && e.seen.pid != 0 {
		defer r.mu.Unlock()
		return e.seen
	}
	r.mu.Unlock()
	all, err := r.cfg.Processes(pod.UID)
	if err != nil {
		r.log.Warn("the process of a pod cannot be found", "daemon", name, "pod", pod.Name, "error", err)
	}
	return seen{container: cs.ContainerID, pid: mainOf(all, cs.ContainerID)}
}
