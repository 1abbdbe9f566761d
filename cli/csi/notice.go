package csi

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/node"
)

const (
	// lookEvery is how often the driver looks whether the volumes of its node work.
	lookEvery = 2 * time.Second
	// notifyTimeout bounds one event.
	notifyTimeout = 10 * time.Second
)

// eventsOf returns what writes events of pods: what happened to a volume on a node. The name of an event comes from
// what it says, so none is there twice.
func eventsOf(client kubernetes.Interface, host string) func(context.Context, node.Notice) error {
	return func(ctx context.Context, n node.Notice) error {
		ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
		defer cancel()
		e := eventOf(n, host, metav1.Now())
		_, err := client.CoreV1().Events(n.Pod.Namespace).Create(ctx, e, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) ||
			apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil // it is there, or its namespace is gone with the pod
		}
		return err
	}
}

func eventOf(n node.Notice, host string, now metav1.Time) *corev1.Event {
	kind := corev1.EventTypeNormal
	if n.Reason == node.CarrierEnded {
		kind = corev1.EventTypeWarning
	}
	h := fnv.New64a()
	_, _ = fmt.Fprint(h, n.Pod.UID, n.Volume, n.Reason)
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: n.Pod.Namespace, Name: fmt.Sprintf("%s.%016x", n.Pod.Name, h.Sum64())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1", Kind: "Pod", Namespace: n.Pod.Namespace, Name: n.Pod.Name, UID: types.UID(n.Pod.UID),
		},
		Type: kind, Reason: string(n.Reason), Message: n.Message, Count: 1, FirstTimestamp: now, LastTimestamp: now,
		Source:              corev1.EventSource{Component: backend.DriverName, Host: host},
		ReportingController: backend.DriverName, ReportingInstance: host,
	}
}
