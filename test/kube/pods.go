package kube

import (
	"context"
	"fmt"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// AwaitPods waits until so many pods with the labels are there, all of them Ready, and returns
// them.
func (p *Plane) AwaitPods(t hosts.T, namespace, labels string, count int) []core.Pod {
	t.Helper()
	var pods []core.Pod
	await(t, fmt.Sprintf("%d pods %s that are Ready", count, labels), func(ctx context.Context) error {
		list, err := p.client.CoreV1().Pods(namespace).List(ctx, meta.ListOptions{LabelSelector: labels})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			if problem := unready(pod); problem != "" {
				return fmt.Errorf("%s on %s %s", pod.Name, pod.Spec.NodeName, problem)
			}
		}
		if pods = list.Items; len(pods) != count {
			return fmt.Errorf("there are %d", len(pods))
		}
		return nil
	})
	return pods
}

// unready is why a pod is not Ready. It is empty for one that is.
func unready(pod core.Pod) string {
	if pod.DeletionTimestamp != nil {
		return "is deleted"
	}
	for _, c := range pod.Status.ContainerStatuses {
		if waits := c.State.Waiting; waits != nil {
			return fmt.Sprintf("waits: %s: %s", waits.Reason, waits.Message)
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == core.PodReady && c.Status == core.ConditionTrue {
			return ""
		}
	}
	return fmt.Sprintf("is %s: %s", pod.Status.Phase, pod.Status.Message)
}
