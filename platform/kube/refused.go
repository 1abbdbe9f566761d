package kube

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// eventReason is that of the event on a Node that becomes no Host.
	eventReason = "NoHost"
	// tellAgain is how often it is told: an API server forgets events after an hour.
	tellAgain = 50 * time.Minute
)

// told is why a node was said to be no host, and when.
type told struct {
	reason string
	at     time.Time
}

// tellRefused says of nodes that they become no hosts: in the log, and as an event that 'kubectl
// describe node' shows.
func (k *Keeper) tellRefused(ctx context.Context, nodes []corev1.Node,
	refused map[string]string,
) (writes []func() error) {
	before := k.told
	k.told = map[types.UID]told{}
	for i := range nodes {
		node := &nodes[i]
		reason, is := refused[node.Name]
		if !is {
			continue
		}
		if was := before[node.UID]; was.reason == reason && time.Since(was.at) < tellAgain {
			k.told[node.UID] = was
			continue
		}
		k.told[node.UID] = told{reason, time.Now()}
		k.log.Warn("a node cannot become a host", "node", node.Name, "reason", reason)
		writes = append(writes, func() error { return k.tellNode(ctx, node, reason) })
	}
	return writes
}

// tellNode writes an event on a Node. Those of objects in no namespace are in the namespace
// default.
func (k *Keeper) tellNode(ctx context.Context, node *corev1.Node, reason string) error {
	now := metav1.Now()
	err := k.client.Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "holdfast-node-"},
		InvolvedObject: corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		Type:           corev1.EventTypeWarning, Reason: eventReason, Message: "Holdfast makes no Host of the node: " + reason,
		Source: corev1.EventSource{Component: OperatorAccount}, FirstTimestamp: now, LastTimestamp: now, Count: 1,
	})
	if err != nil {
		return fmt.Errorf("while telling of node %s: %w", node.Name, err)
	}
	return nil
}
