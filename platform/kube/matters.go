package kube

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// matters says whether a change of an object can change what the keeper writes. Most changes are
// reports: of daemons, of hosts, and of kubelets, which write to their Nodes every few seconds.
func matters(was, is any) bool {
	switch is := is.(type) {
	case *corev1.Node:
		was := was.(*corev1.Node)
		return !maps.Equal(was.Labels, is.Labels) || nodeReady(was) != nodeReady(is)
	case *corev1.Pod:
		return saysOf(was.(*corev1.Pod)) != saysOf(is)
	case *corev1.Namespace:
		return !maps.Equal(was.(*corev1.Namespace).Labels, is.Labels)
	case *api.Host:
		was := was.(*api.Host)
		return !maps.Equal(was.Labels, is.Labels) || !equality.Semantic.DeepEqual(kept(was), kept(is))
	case *api.Action:
		was := was.(*api.Action)
		return was.Generation != is.Generation || was.Status.State.Final() != is.Status.State.Final()
	case *api.Daemon, *api.StorageCluster:
		return was.(client.Object).GetGeneration() != is.(client.Object).GetGeneration()
	}
	return true
}

// kept are the conditions of a Host that the keeper writes or goes by.
func kept(h *api.Host) (all [3]*metav1.Condition) {
	for i, name := range []string{api.HostNodeReady, api.HostAgentPod, api.HostAgentConnected} {
		all[i] = meta.FindStatusCondition(h.Status.Conditions, name)
	}
	return all
}

// saysOf is what a Host may say of its agent's pod.
func saysOf(p *corev1.Pod) string {
	_, message := podSays(p)
	return p.Spec.NodeName + " " + message
}
