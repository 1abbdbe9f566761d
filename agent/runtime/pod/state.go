package pod

import (
	"fmt"
	"strconv"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// What the kubelet does, as of v1.36: a container is started again at once after its first end, and
// then after pauses that double, until it has run for long.
const (
	kubeletPause    = 10 * time.Second
	kubeletPauseMax = 5 * time.Minute
	kubeletForgives = 2 * kubeletPauseMax
)

const (
	// lateAfter is how long a pod may take to start before that is told, and unseenAfter how long
	// a process may run unseen: one that has just ended is in the status still.
	lateAfter   = 30 * time.Second
	unseenAfter = 5 * time.Second
	// tailSize bounds Exit.Log, and problemSize what is told of a problem, in bytes.
	tailSize    = 4096
	problemSize = 1024
)

// stateOf is what a pod says of its process. pid is the process that was found, or 0.
func stateOf(rec *record, pod *corev1.Pod, pid int, image string, now time.Time) runtime.State {
	s := runtime.State{
		Stopping: rec.Stopping || isStopping(pod), Restarts: rec.Restarts + endsOf(pod), LastExit: rec.LastExit,
		Outdated: pod.Annotations[annotationImage] != image,
		Problem:  problemOf(pod, now),
	}
	cs := containerStatus(pod)
	if cs == nil {
		return s
	}
	if t := terminatedOf(cs); t != nil {
		s.LastExit = exitOf(t)
	}
	switch {
	case ended(pod):
	case cs.State.Running != nil:
		s.Running, s.PID, s.Started = true, pid, cs.State.Running.StartedAt.Time
		if s.Problem == "" && pid == 0 && now.Sub(s.Started) > unseenAfter {
			s.Problem = "the agent does not see the process of the pod: the pod of the agent needs hostPID"
		}
	case cs.State.Waiting != nil && cs.State.Waiting.Reason == "CrashLoopBackOff" && !s.Stopping:
		s.BackOffUntil = startsAgain(cs)
	}
	return s
}

// containerStatus is that of the one container; nil while the kubelet has not taken the pod.
func containerStatus(pod *corev1.Pod) *corev1.ContainerStatus {
	if len(pod.Status.ContainerStatuses) == 0 {
		return nil
	}
	return &pod.Status.ContainerStatuses[0]
}

// isStopping says whether the agent has asked for the end of a pod.
func isStopping(pod *corev1.Pod) bool { return pod.Annotations[AnnotationStop] != "" }

// ended says whether a pod has come to its end, after which nobody starts its container again.
func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// terminatedOf is how the container ended last; nil when it never did.
func terminatedOf(cs *corev1.ContainerStatus) *corev1.ContainerStateTerminated {
	if cs.State.Terminated != nil {
		return cs.State.Terminated
	}
	return cs.LastTerminationState.Terminated
}

// endsOf counts the ends of a pod's container that were not asked for. The kubelet counts an end
// when it starts the container again.
func endsOf(pod *corev1.Pod) int {
	cs := containerStatus(pod)
	if cs == nil {
		return 0
	}
	n := int(cs.RestartCount)
	if cs.State.Running == nil && terminatedOf(cs) != nil && !isStopping(pod) {
		n++
	}
	return n
}

// exitOf tells in words how a container ended.
func exitOf(t *corev1.ContainerStateTerminated) *runtime.Exit {
	log := t.Message
	if len(log) > tailSize {
		log = log[len(log)-tailSize:]
	}
	return &runtime.Exit{Time: t.FinishedAt.Time, Reason: reasonOf(t), Log: log}
}

// maxSignal is the last signal that a shell's exit code of 128 and more stands for.
const maxSignal = 64

func reasonOf(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason == "OOMKilled":
		return runtime.OutOfMemory
	case t.Reason == "ContainerStatusUnknown", t.Reason == "Unknown": // as after a boot
		return "unknown"
	case t.Reason == "StartError", t.Reason == "ContainerCannotRun":
		return runtime.NotStarted
	case t.Signal > 0:
		return "signal: " + syscall.Signal(t.Signal).String()
	case t.ExitCode > 128 && t.ExitCode <= 128+maxSignal:
		return "signal: " + syscall.Signal(t.ExitCode-128).String()
	}
	return "exit code " + strconv.Itoa(int(t.ExitCode))
}

// startsAgain is when the kubelet starts a container again that has ended, as far as the status has
// it. Zero is at once.
func startsAgain(cs *corev1.ContainerStatus) time.Time {
	t := terminatedOf(cs)
	if t == nil || cs.RestartCount == 0 || t.FinishedAt.Sub(t.StartedAt.Time) > kubeletForgives {
		return time.Time{}
	}
	pause := kubeletPause
	for range cs.RestartCount - 1 {
		pause = min(2*pause, kubeletPauseMax)
	}
	return t.FinishedAt.Add(pause)
}

// waits are the reasons of a waiting container that is on its way.
var waits = map[string]bool{"": true, "ContainerCreating": true, "PodInitializing": true, "CrashLoopBackOff": true}

// problemOf is why the process of a pod does not run; empty when it does, or is on its way.
func problemOf(pod *corev1.Pod, now time.Time) string {
	cs := containerStatus(pod)
	switch {
	case ended(pod) && pod.Status.Reason != "":
		return limit(fmt.Sprintf("the kubelet ended the pod: %s: %s", pod.Status.Reason, pod.Status.Message))
	case ended(pod):
		return "the kubelet ended the pod"
	case pod.DeletionTimestamp != nil && !isStopping(pod):
		return "the pod is being deleted, which the agent did not ask for: the agent makes another one when it has ended"
	case cs != nil && cs.State.Waiting != nil && !waits[cs.State.Waiting.Reason]:
		return limit(fmt.Sprintf("the pod does not start: %s: %s", cs.State.Waiting.Reason, cs.State.Waiting.Message))
	case cs != nil && (cs.State.Waiting == nil || terminatedOf(cs) != nil):
		return ""
	case now.Sub(pod.CreationTimestamp.Time) < lateAfter:
		return ""
	case pod.Status.StartTime == nil:
		return fmt.Sprintf("the pod does not start: the kubelet of node %s has not taken it; "+
			"see 'kubectl get node %[1]s'", pod.Spec.NodeName)
	}
	return fmt.Sprintf("the pod has not started yet: the kubelet pulls its image or waits for a mount; "+
		"see 'kubectl describe pod -n %s %s'", pod.Namespace, pod.Name)
}

// lateIn is how long it takes until a pod that does not start is late; zero when it is, or has
// started.
func lateIn(pod *corev1.Pod, now time.Time) time.Duration {
	if cs := containerStatus(pod); cs != nil && cs.State.Waiting == nil {
		return 0
	}
	return max(0, pod.CreationTimestamp.Add(lateAfter).Sub(now))
}

// limit cuts what others wrote.
func limit(text string) string {
	if len(text) > problemSize {
		return text[:problemSize] + "…"
	}
	return text
}
