package csi

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/node"
)

// The pods that carry volumes: their namespace, and the label that tells them from pods of daemons.
const (
	volumesNamespace = "holdfast-volumes"
	managedBy        = "holdfast-csi"
)

// The environment, as an agent has it: the image of the container, and when it is pulled.
const (
	imageVariable = "HOLDFAST_IMAGE"
	pullVariable  = "HOLDFAST_IMAGE_PULL_POLICY"
)

// home is where the driver of a node runs.
type home struct {
	// carriers runs the processes that carry volumes.
	carriers *carrier.Carriers
	// close is for when the driver ends. The processes go on, and the next run adopts them.
	close func() error
	// notify writes events for pods about their volumes; nil outside of Kubernetes.
	notify func(context.Context, node.Notice) error
}

// homeOf returns where the driver of a node runs: in a pod, or on the machine itself.
func homeOf(ctx context.Context, h Home, name, dir string, log *slog.Logger) (*home, error) {
	image := os.Getenv(imageVariable)
	if image == "" {
		r, err := detached.New(detached.Config{Dir: dir, Log: log})
		if err != nil {
			return nil, err
		}
		return &home{carriers: &carrier.Carriers{Runtime: r}, close: r.Close}, nil
	}
	config, err := h.REST()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	own, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("while reading the Node %s: %w", name, err)
	}
	r, err := pod.New(ctx, pod.Config{
		REST: config, Dir: dir, Node: name, Image: image, PullPolicy: corev1.PullPolicy(os.Getenv(pullVariable)),
		ManagedBy: managedBy, Namespace: volumesNamespace, Log: log,
		HostPID: true, // a client asks /proc for the groups of whoever reads or writes
	})
	if err != nil {
		return nil, err
	}
	carriers := &carrier.Carriers{
		Runtime: r, Node: name, Namespace: volumesNamespace, Owner: ofNode(string(own.UID)),
	}
	return &home{carriers: carriers, close: r.Close, notify: eventsOf(client, name)}, nil
}

// ofNode has pods of volumes go with the Node.
func ofNode(uid string) func(v backend.Volume, process string) runtime.Owner {
	return func(v backend.Volume, process string) runtime.Owner {
		return runtime.Owner{
			Namespace: volumesNamespace, Name: process, UID: uid, Node: true,
			Type: "volume", ID: v.Handle.Name, Cluster: v.Handle.Cluster,
		}
	}
}
