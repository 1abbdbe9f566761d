package kube

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// agentsApp is the label app.kubernetes.io/name of the agents' pods, and the name of their DaemonSet.
const agentsApp = "holdfast-agent"

// maxSaid bounds what a condition repeats of the words of others.
const maxSaid = 500

// agentPod is the condition of a Host that tells why its agent is silent, as far as Kubernetes knows.
// ok is false for a Host whose agent is heard, or of which nobody knows yet.
func agentPod(h *api.Host, ready metav1.Condition, pods []corev1.Pod) (c metav1.Condition, ok bool) {
	if h == nil || !meta.IsStatusConditionFalse(h.Status.Conditions, api.HostAgentConnected) {
		return c, false
	}
	c = metav1.Condition{Type: api.HostAgentPod, Status: metav1.ConditionFalse}
	pod := newestOn(h.Name, pods)
	switch {
	case ready.Status != metav1.ConditionTrue:
		c.Reason = "NodeNotReady"
		c.Message = fmt.Sprintf("the kubelet of node %[1]s does not report either: check that the machine is on and "+
			"reaches the API server; see 'kubectl describe node %[1]s'", h.Name)
	case pod == nil:
		c.Reason = "NoPod"
		c.Message = fmt.Sprintf("node %s has no pod of the DaemonSet %s: see 'kubectl -n %s describe daemonset %[2]s'",
			h.Name, agentsApp, api.SystemNamespace)
	default:
		c.Reason, c.Message = podSays(pod)
	}
	return c, true
}

// newestOn is the pod on a node that was made last.
func newestOn(node string, pods []corev1.Pod) (newest *corev1.Pod) {
	for i := range pods {
		p := &pods[i]
		if p.Spec.NodeName == node && (newest == nil || newest.CreationTimestamp.Before(&p.CreationTimestamp)) {
			newest = p
		}
	}
	return newest
}

// podSays is what the kubelet says of an agent's pod whose agent is silent.
func podSays(p *corev1.Pod) (reason, message string) {
	var c corev1.ContainerStatus
	if len(p.Status.ContainerStatuses) > 0 {
		c = p.Status.ContainerStatuses[0]
	}
	ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
	switch {
	case ended != nil && ended.ExitCode != 0:
		return endSays(p, ended)
	case c.State.Running != nil:
		return "Silent", fmt.Sprintf("its pod %s runs, but the agent does not report: %s", p.Name, see(p, "logs"))
	}
	return startSays(p, c.State.Waiting)
}

// endSays is what is said of a pod that ended, or in which no program could be started.
func endSays(p *corev1.Pod, ended *corev1.ContainerStateTerminated) (reason, message string) {
	if ended.Reason == startError {
		return "DoesNotStart", fmt.Sprintf("its pod %s does not start: %s: compare the DaemonSet %s with "+
			"deploy/kubernetes/30-holdfast.yaml", p.Name, lastLine(ended.Message), agentsApp)
	}
	said := strings.TrimPrefix(lastLine(ended.Message), "holdfast: ")
	said = cmp.Or(said, fmt.Sprintf("exit code %d, %s", ended.ExitCode, ended.Reason))
	return "AgentFails", fmt.Sprintf("the agent in pod %s fails: %s (%s)", p.Name, said, see(p, "logs"))
}

// startSays is what is said of a pod that does not start.
func startSays(p *corev1.Pod, waits *corev1.ContainerStateWaiting) (reason, message string) {
	why := "the kubelet pulls its image or waits for a mount"
	switch {
	case waits != nil && waits.Message != "":
		why = waits.Reason + ": " + lastLine(waits.Message)
	case p.Status.Message != "":
		why = p.Status.Reason + ": " + lastLine(p.Status.Message)
	}
	return "DoesNotStart", fmt.Sprintf("its pod %s does not run: %s (%s)", p.Name, why, see(p, "describe pod"))
}

func see(p *corev1.Pod, verb string) string {
	return fmt.Sprintf("see 'kubectl -n %s %s %s'", p.Namespace, verb, p.Name)
}

// startError is the kubelet's word for a container in which no program could be started.
const startError = "StartError"

// lastLine is the last line of a text that says something, not too much of it.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	line := strings.ToValidUTF8(text[strings.LastIndexByte(text, '\n')+1:], "")
	if len(line) > maxSaid {
		line = strings.ToValidUTF8(line[:maxSaid], "") + "…"
	}
	return line
}
