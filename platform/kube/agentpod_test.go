package kube

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func agentsPod(node string, made int64, c corev1.ContainerStatus) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: api.SystemNamespace, Name: "agent-" + node, CreationTimestamp: metav1.NewTime(time.Unix(made, 0)),
	}}
	p.Spec.NodeName, p.Status.ContainerStatuses = node, []corev1.ContainerStatus{c}
	return p
}

func ended(code int32, reason, message string) *corev1.ContainerStateTerminated {
	return &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}
}

// TestAgentPod: a Host whose agent is silent says what Kubernetes knows of the agent's pod, and what to
// do. One whose agent is heard, or of which nobody knows yet, says nothing.
func TestAgentPod(t *testing.T) {
	ready := metav1.Condition{Type: api.HostNodeReady, Status: metav1.ConditionTrue}
	runs := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := func(reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message},
		}}
	}
	fails := corev1.ContainerStatus{State: runs, LastTerminationState: corev1.ContainerState{
		Terminated: ended(1, "Error", "a line\nholdfast: no /dev\n"),
	}}
	pod := func(made int64, c corev1.ContainerStatus) corev1.Pod { return agentsPod("h1", made, c) }
	ends := func(code int32, reason, message string) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: ended(code, reason, message)}}
	}
	evicted := agentsPod("h1", 1, corev1.ContainerStatus{})
	evicted.Status.Reason, evicted.Status.Message = "Evicted", "low on memory"
	for name, test := range map[string]struct {
		pods            []corev1.Pod
		reason, message string
	}{
		"no pod": {[]corev1.Pod{agentsPod("h2", 1, fails)}, "NoPod", "describe daemonset holdfast-agent"},
		"it fails": {
			[]corev1.Pod{pod(1, fails)},
			"AgentFails",
			"fails: no /dev (see 'kubectl -n holdfast-system logs agent-h1')",
		},
		"it is mute": {[]corev1.Pod{pod(1, corev1.ContainerStatus{State: runs})}, "Silent", "logs agent-h1"},
		"no words":   {[]corev1.Pod{pod(1, ends(137, "OOMKilled", ""))}, "AgentFails", "exit code 137, OOMKilled"},
		"no program": {
			[]corev1.Pod{pod(1, ends(128, startError, "stat /dev/null"))},
			"DoesNotStart",
			"stat /dev/null: compare the DaemonSet",
		},
		"no image": {
			[]corev1.Pod{pod(1, waits("ImagePullBackOff", "not found"))},
			"DoesNotStart",
			"ImagePullBackOff: not found",
		},
		"no mount": {[]corev1.Pod{pod(1, waits("ContainerCreating", ""))}, "DoesNotStart", "waits for a mount"},
		"evicted":  {[]corev1.Pod{evicted}, "DoesNotStart", "Evicted: low on memory"},
		"another one": {
			[]corev1.Pod{pod(2, waits("ContainerCreating", "")), pod(1, fails)},
			"DoesNotStart",
			"waits for a mount",
		},
	} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}
		if c, ok := agentPod(h, ready, test.pods); ok {
			t.Errorf("%s: a Host of which nobody knows says %+v", name, c)
		}
		h.Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
		c, ok := agentPod(h, ready, test.pods)
		if !ok || c.Reason != test.reason || !strings.Contains(c.Message, test.message) {
			t.Errorf("%s: %v %+v, want %s, %q", name, ok, c, test.reason, test.message)
		}
		if c, _ := agentPod(h, nodeGone(), test.pods); c.Reason != "NodeNotReady" {
			t.Errorf("%s: of a node that is not ready it is said: %+v", name, c)
		}
		h.Status.Conditions[0].Status = metav1.ConditionTrue
		if c, ok := agentPod(h, ready, test.pods); ok {
			t.Errorf("%s: a Host whose agent is heard says %+v", name, c)
		}
	}
}

// TestConditionsDiffer: what the agent's pod said is taken back when the agent is heard.
func TestConditionsDiffer(t *testing.T) {
	ready := metav1.Condition{Type: api.HostNodeReady, Status: metav1.ConditionTrue, Reason: "KubeletReady"}
	pod := metav1.Condition{Type: api.HostAgentPod, Status: metav1.ConditionFalse, Reason: "NoPod", Message: "a"}
	other := pod
	other.Message = "b"
	h := &api.Host{}
	for _, test := range []struct {
		have, want []metav1.Condition
		differ     bool
	}{
		{nil, []metav1.Condition{ready}, true},
		{[]metav1.Condition{ready}, []metav1.Condition{ready}, false},
		{[]metav1.Condition{ready}, []metav1.Condition{ready, pod}, true},
		{[]metav1.Condition{ready, pod}, []metav1.Condition{ready}, true},
		{[]metav1.Condition{ready, pod}, []metav1.Condition{ready, other}, true},
		{[]metav1.Condition{ready, pod}, []metav1.Condition{ready, pod}, false},
	} {
		if h.Status.Conditions = test.have; conditionsDiffer(h, test.want) != test.differ {
			t.Errorf("%+v and %+v: %v", test.have, test.want, !test.differ)
		}
	}
}
