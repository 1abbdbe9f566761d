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
	"github.com/holdfast-storage/holdfast/csi/rbd"
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

// owner says whose a volume's process is.
type owner = func(v backend.Volume, process string) runtime.Owner

// carrier is a rbd.Carriers that is closed when the driver ends.
type carrier interface {
	rbd.Carriers
	Close() error
}

// carriersOf returns what runs the processes that carry volumes.
func carriersOf(ctx context.Context, h Home, node, dir string, log *slog.Logger) (carrier, owner, error) {
	image := os.Getenv(imageVariable)
	if image == "" {
		r, err := detached.New(detached.Config{Dir: dir, Log: log})
		return r, nil, err
	}
	config, err := h.REST()
	if err != nil {
		return nil, nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, err
	}
	own, err := client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if err != nil {
		return nil, nil, fmt.Errorf("while reading the Node %s: %w", node, err)
	}
	r, err := pod.New(ctx, pod.Config{
		REST: config, Dir: dir, Node: node, Image: image, PullPolicy: corev1.PullPolicy(os.Getenv(pullVariable)),
		ManagedBy: managedBy, Namespace: volumesNamespace, Log: log,
	})
	return r, ofNode(string(own.UID)), err
}

// ofNode has pods of volumes go with the Node.
func ofNode(uid string) owner {
	return func(v backend.Volume, process string) runtime.Owner {
		return runtime.Owner{
			Namespace: volumesNamespace, Name: process, UID: uid, Node: true,
			Type: "volume", ID: v.Handle.Name, Cluster: v.Handle.Cluster,
		}
	}
}
