package kube

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestMatters: reports wake nobody, and each change that something is written for does.
func TestMatters(t *testing.T) {
	node := func(ready corev1.ConditionStatus, beat time.Duration, rack string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": rack}}}
		n.Status.Conditions = []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, Reason: "R",
			LastHeartbeatTime: metav1.NewTime(time.Unix(0, 0).Add(beat)),
		}}
		return n
	}
	host := func(version string, ready metav1.ConditionStatus, label string) *api.Host {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"rack": label}}}
		h.Status.AgentVersion = version
		h.Status.Conditions = []metav1.Condition{{Type: api.HostNodeReady, Status: ready}}
		return h
	}
	daemon := func(generation int64, state api.DaemonState) *api.Daemon {
		d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		d.Status.State = state
		return d
	}
	action := func(generation int64, state api.ActionState) *api.Action {
		a := &api.Action{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		a.Status.State = state
		return a
	}
	heard := func(status metav1.ConditionStatus) *api.Host {
		h := host("1", "True", "1")
		h.Status.Conditions = append(h.Status.Conditions, metav1.Condition{Type: api.HostAgentConnected, Status: status})
		return h
	}
	runs := agentsPod("h1", 1, corev1.ContainerStatus{State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{},
	}})
	touched, fails := runs.DeepCopy(), agentsPod("h1", 1, corev1.ContainerStatus{State: corev1.ContainerState{
		Terminated: ended(1, "Error", "no /dev"),
	}})
	touched.ResourceVersion = "2"
	labelled := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}}
	for name, test := range map[string]struct {
		was, is any
		want    bool
	}{
		"heartbeat of a node":    {node("True", 0, "1"), node("True", time.Minute, "1"), false},
		"node not ready":         {node("True", 0, "1"), node("False", 0, "1"), true},
		"label of a node":        {node("True", 0, "1"), node("True", 0, "2"), true},
		"report of a host":       {host("1", "True", "1"), host("2", "True", "1"), false},
		"condition of a host":    {host("1", "True", "1"), host("1", "False", "1"), true},
		"label of a host":        {host("1", "True", "1"), host("1", "True", "2"), true},
		"agent is not heard":     {heard("True"), heard("False"), true},
		"pod of an agent":        {&runs, touched, false},
		"end of an agent":        {&runs, &fails, true},
		"report of a daemon":     {daemon(1, api.DaemonPrepared), daemon(1, api.DaemonRunning), false},
		"spec of a daemon":       {daemon(1, api.DaemonRunning), daemon(2, api.DaemonRunning), true},
		"progress of an action":  {action(1, api.ActionNew), action(1, api.ActionRunning), false},
		"end of an action":       {action(1, api.ActionRunning), action(1, api.ActionDone), true},
		"wish of an action":      {action(1, api.ActionRunning), action(2, api.ActionRunning), true},
		"label of a namespace":   {&corev1.Namespace{}, labelled, true},
		"anything of the rights": {&rbacv1.Role{}, &rbacv1.Role{}, true},
	} {
		if got := matters(test.was, test.is); got != test.want {
			t.Errorf("%s matters: %v", name, got)
		}
	}
}
