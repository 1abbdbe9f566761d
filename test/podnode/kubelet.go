package podnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Kubelet is the stand-in for the kubelet of one node.
type Kubelet struct {
	// Pause is that before the second restart of a container, which doubles up to PauseMax. The
	// first is at once.
	Pause, PauseMax time.Duration

	api  *API
	node string
	dir  string
	wg   sync.WaitGroup
	end  chan struct{}

	mu     sync.Mutex
	pods   map[types.UID]*pod
	halted bool
	// images are those that can be had; nil is all.
	images map[string]bool
	refuse func(*corev1.Pod) (reason, message string)
	logs   map[string]string // the files of containers, by namespace/name, joined by newlines
}

// pod is one that the kubelet has. Its goroutine alone writes its status.
type pod struct {
	k *Kubelet
	// is what the API said first.
	is   *corev1.Pod
	wake chan struct{}
	// grace is how long it may take to end, where that was asked for.
	grace *int64
	// gone is set when the API has it no more, evicted why it ends.
	gone     bool
	evicted  string
	restarts int32
	last     *corev1.ContainerStateTerminated
}

// New starts the kubelet of a node, which ends with the test, and all containers with it.
func New(t *testing.T, api *API, node string) *Kubelet {
	t.Helper()
	k := &Kubelet{
		api: api, node: node, dir: t.TempDir(), Pause: 50 * time.Millisecond, PauseMax: 200 * time.Millisecond,
		end: make(chan struct{}), pods: map[types.UID]*pod{}, logs: map[string]string{},
	}
	k.wg.Go(k.follow)
	t.Cleanup(func() {
		close(k.end)
		k.wg.Wait()
	})
	return k
}

// Halt stops the kubelet, and lets containers run; or starts it again.
func (k *Kubelet) Halt(halted bool) {
	k.mu.Lock()
	k.halted = halted
	all := k.all()
	k.mu.Unlock()
	for _, p := range all {
		p.wakeUp()
	}
	k.api.mu.Lock()
	k.api.wake()
	k.api.mu.Unlock()
}

// Images has only these images be there.
func (k *Kubelet) Images(names ...string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.images = map[string]bool{}
	for _, n := range names {
		k.images[n] = true
	}
}

// Refuse has the kubelet refuse pods, as one does that has no room (OutOfcpu). An empty reason
// takes a pod.
func (k *Kubelet) Refuse(why func(*corev1.Pod) (reason, message string)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refuse = why
}

// Evict ends a pod as the kubelet does that is short of something. Nobody starts its container
// again.
func (k *Kubelet) Evict(t *testing.T, namespace, name, message string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, p := range k.all() {
		if p.is.Namespace == namespace && p.is.Name == name {
			p.evicted = message
			p.wakeUp()
			return
		}
	}
	t.Errorf("the node has no pod %s", name)
}

// Log is what the containers of a pod's name wrote, as 'kubectl logs' shows it.
func (k *Kubelet) Log(namespace, name string) string {
	k.mu.Lock()
	files := strings.Fields(k.logs[namespace+"/"+name])
	k.mu.Unlock()
	var text strings.Builder
	for _, f := range files {
		b, _ := os.ReadFile(f) // it may not be there yet
		text.Write(b)
	}
	return text.String()
}

func (k *Kubelet) all() (out []*pod) {
	for _, p := range k.pods {
		out = append(out, p)
	}
	return out
}

func (k *Kubelet) isHalted() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.halted
}

// follow takes what the API has for the node.
func (k *Kubelet) follow() {
	for {
		k.api.mu.Lock()
		changed := k.api.changed
		there := map[types.UID]*corev1.Pod{}
		for _, p := range k.api.pods {
			if p.Spec.NodeName == k.node {
				there[p.UID] = p
			}
		}
		k.api.mu.Unlock()
		if !k.isHalted() {
			k.sync(there)
		}
		select {
		case <-k.end:
			return
		case <-changed:
		}
	}
}

func (k *Kubelet) sync(there map[types.UID]*corev1.Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for uid, is := range there {
		p := k.pods[uid]
		if p == nil {
			p = &pod{k: k, wake: make(chan struct{}, 1), is: is, grace: is.DeletionGracePeriodSeconds}
			k.pods[uid] = p
			k.wg.Go(p.run)
		} else if p.grace == nil && is.DeletionTimestamp != nil {
			p.grace = is.DeletionGracePeriodSeconds
			p.wakeUp()
		}
	}
	for uid, p := range k.pods {
		if there[uid] == nil && !p.gone {
			p.gone = true
			p.wakeUp()
		}
	}
}

func (p *pod) wakeUp() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// mustEnd says whether a pod is to end, how long it may take, and why it failed if it did.
func (p *pod) mustEnd() (must bool, grace time.Duration, why string) {
	p.k.mu.Lock()
	defer p.k.mu.Unlock()
	grace = time.Duration(*p.is.Spec.TerminationGracePeriodSeconds) * time.Second
	if p.grace != nil {
		grace = time.Duration(*p.grace) * time.Second
	}
	return p.gone || p.grace != nil || p.evicted != "", grace, p.evicted
}

// await waits until something happened, or a time has passed where there is one; false at the end
// of the test. While the kubelet is halted nothing happens.
func (p *pod) await(c *container, until time.Time) (ended, goesOn bool) {
	var over chan struct{}
	if c != nil {
		over = c.ended
	}
	var passed <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(time.Until(until))
		defer timer.Stop()
		passed = timer.C
	}
	for {
		select {
		case <-p.k.end:
			return false, false
		case <-over:
			ended, over = true, nil
		case <-passed:
			passed = nil
		case <-p.wake:
		}
		if !p.k.isHalted() {
			return ended, true
		}
		if ended || passed == nil && !until.IsZero() {
			// It is looked at when the kubelet runs again.
			select {
			case <-p.k.end:
				return false, false
			case <-p.wake:
			}
			if !p.k.isHalted() {
				return ended, true
			}
		}
	}
}

// run is the life of a pod.
func (p *pod) run() {
	defer func() {
		p.k.mu.Lock()
		delete(p.k.pods, p.is.UID)
		p.k.mu.Unlock()
	}()
	if !p.admitted() {
		if p.awaitRemoval() {
			p.k.api.remove(p.is)
		}
		return
	}
	p.status(func(s *corev1.PodStatus) { s.StartTime = ptr.To(metav1.Now()) })
	for {
		if must, _, _ := p.mustEnd(); must {
			break
		}
		c, err := p.start()
		if err != nil {
			p.fails(err)
		} else if !p.serve(c) {
			return
		} else if p.is.Spec.RestartPolicy == corev1.RestartPolicyNever {
			break
		}
		if !p.pause(err) {
			return
		}
	}
	p.over()
}

// admitted says whether the node takes the pod.
func (p *pod) admitted() bool {
	p.k.mu.Lock()
	refuse := p.k.refuse
	p.k.mu.Unlock()
	if refuse == nil {
		return true
	}
	reason, message := refuse(p.is)
	if reason == "" {
		return true
	}
	p.status(func(s *corev1.PodStatus) { s.Phase, s.Reason, s.Message = corev1.PodFailed, reason, message })
	return false
}

// awaitRemoval waits until a pod is to be taken from the API; false at the end of the test.
func (p *pod) awaitRemoval() bool {
	for {
		p.k.mu.Lock()
		must := p.gone || p.grace != nil
		p.k.mu.Unlock()
		if must {
			return true
		}
		if _, goesOn := p.await(nil, time.Time{}); !goesOn {
			return false
		}
	}
}

// serve waits for the end of a container, and has it end when the pod is to; false at the end of
// the test.
func (p *pod) serve(c *container) bool {
	for {
		ended, goesOn := p.await(c, time.Time{})
		if !goesOn {
			c.kill()
			return false
		}
		if must, grace, _ := p.mustEnd(); must && !ended {
			ended = true
			c.end(grace)
		}
		if ended {
			p.last = c.terminated()
			return true
		}
	}
}

// fails tells that a container cannot be started.
func (p *pod) fails(err error) {
	p.status(func(s *corev1.PodStatus) {
		s.ContainerStatuses = []corev1.ContainerStatus{p.container(corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reasonOf(err), Message: err.Error()},
		}, "")}
	})
}

// pause tells how the container ended, and waits for its next start; false at the end of the test.
func (p *pod) pause(err error) bool {
	if must, _, _ := p.mustEnd(); must {
		return true
	}
	wait := p.k.Pause
	if err == nil {
		wait = 0
		for i := range p.restarts {
			wait = min(p.k.Pause<<i, p.k.PauseMax)
		}
		p.status(func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{p.container(corev1.ContainerState{
				Waiting: &corev1.ContainerStateWaiting{
					Reason: "CrashLoopBackOff", Message: fmt.Sprintf("back-off %s restarting failed container", wait),
				},
			}, "")}
		})
		defer func() { p.restarts++ }()
	}
	until := time.Now().Add(wait)
	for time.Now().Before(until) {
		if _, goesOn := p.await(nil, until); !goesOn {
			return false
		}
		if must, _, _ := p.mustEnd(); must {
			return true
		}
	}
	return true
}

// over tells how a pod ended, and takes it from the API if that is asked for.
func (p *pod) over() {
	_, _, why := p.mustEnd()
	p.status(func(s *corev1.PodStatus) {
		s.Phase = corev1.PodFailed
		if why != "" {
			s.Reason, s.Message = "Evicted", why
		}
		if p.last != nil {
			s.ContainerStatuses = []corev1.ContainerStatus{p.container(corev1.ContainerState{Terminated: p.last}, "")}
		}
	})
	if !p.awaitRemoval() {
		return
	}
	p.k.api.remove(p.is)
}

func (p *pod) status(change func(*corev1.PodStatus)) { p.k.api.setStatus(p.is, change) }

func (p *pod) container(state corev1.ContainerState, id string) corev1.ContainerStatus {
	cs := corev1.ContainerStatus{
		Name: p.is.Spec.Containers[0].Name, Image: p.is.Spec.Containers[0].Image, State: state, RestartCount: p.restarts,
		ContainerID: id, Ready: state.Running != nil, Started: ptr.To(state.Running != nil),
	}
	if state.Terminated == nil && p.last != nil {
		cs.LastTerminationState.Terminated = p.last
	}
	return cs
}

// prepare makes and looks for the directories of a pod.
func (p *pod) prepare() error {
	for _, v := range p.is.Spec.Volumes {
		kind, path := ptr.Deref(v.HostPath.Type, corev1.HostPathUnset), v.HostPath.Path
		if kind == corev1.HostPathDirectoryOrCreate {
			if err := os.MkdirAll(path, 0o755); err != nil {
				return err
			}
		}
		if st, err := os.Stat(path); kind == corev1.HostPathDirectory && (err != nil || !st.IsDir()) {
			return fmt.Errorf("hostPath type check failed: %s is not a directory", path)
		}
	}
	dir := p.is.Spec.Containers[0].WorkingDir
	for _, m := range p.is.Spec.Containers[0].VolumeMounts {
		if dir == m.MountPath || strings.HasPrefix(dir, m.MountPath+string(filepath.Separator)) {
			return nil
		}
	}
	return fmt.Errorf("the working directory %s is in no volume", dir)
}
