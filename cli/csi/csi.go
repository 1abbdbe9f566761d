// Package csi has the commands that run the parts of the CSI driver. They run in pods; people have
// no need of them.
package csi

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/csi/carrier"
	"github.com/holdfast-storage/holdfast/csi/cephfs"
	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/csi/controller"
	"github.com/holdfast-storage/holdfast/csi/gluster"
	"github.com/holdfast-storage/holdfast/csi/node"
	"github.com/holdfast-storage/holdfast/csi/rbd"
	"github.com/holdfast-storage/holdfast/csi/server"
)

// socketDir is where the kubelet has sockets of drivers.
const socketDir = "/var/lib/kubelet/plugins/" + backend.DriverName

// Backends are the names of the back ends that the driver has.
func Backends() []string { return []string{rbd.Name, cephfs.Name, gluster.Name} }

// Home is what the commands take from the command line that they are part of.
type Home struct {
	// Log is made when a command runs.
	Log func() *slog.Logger
	// REST says how to reach the API of Kubernetes.
	REST func() (*rest.Config, error)
}

// api returns what connects to the API of Holdfast when it is first used.
func (h Home) api() func() (client.WithWatch, error) {
	return sync.OnceValues(func() (client.WithWatch, error) {
		config, err := h.REST()
		if err != nil {
			return nil, err
		}
		return gluster.Connect(config)
	})
}

// New returns the command csi.
func New(h Home) *cobra.Command {
	cmd := &cobra.Command{Use: "csi", Short: "Run a part of the CSI driver in a pod of Kubernetes"}
	cmd.AddCommand(newController(h), newNode(h))
	return cmd
}

func newController(h Home) *cobra.Command {
	var endpoint string
	var names []string
	cmd := &cobra.Command{
		Use:   "controller",
		Short: "Make, attach, grow and delete volumes",
		Long: `Serves the controller part of the CSI driver holdfast.io on a socket until it is stopped, for the sidecars
of the same pod. It keeps no state: the keys come with each call, from the Secrets that a StorageClass names. Volumes of
GlusterFS it declares as Volumes, by the API of Holdfast. While a cluster is OFFLINE, claims of its classes wait, and
say why.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			nodes, err := nodesOf(names, h.REST)
			if err != nil {
				return err
			}
			clusters, err := clustersOf(names, h.REST)
			if err != nil {
				return err
			}
			clients := &conn.Clients{}
			defer clients.Close()
			return server.Run(cmd.Context(), server.Config{
				Endpoint: endpoint, Log: h.Log(), Controller: controller.New(nodes,
					&rbd.Controller{Clients: clients}, &cephfs.Controller{Clients: clients},
					&gluster.Controller{API: h.api()}).WithClusters(clusters),
			})
		},
	}
	cmd.Flags().StringVar(&endpoint, "endpoint", "/csi/csi.sock", "the path of the socket")
	cmd.Flags().StringSliceVar(&names, "nodes", nil,
		"the names of all nodes (default: the Nodes of the Kubernetes cluster)")
	return cmd
}

func newNode(h Home) *cobra.Command {
	var endpoint, name, dir, registration string
	cmd := &cobra.Command{
		Use:   "node",
		Short: "Mount volumes on this node",
		Long: `Serves the node part of the CSI driver holdfast.io on a socket until it is stopped, and registers it with the
kubelet. Stopping it unmounts nothing.

The processes that carry volumes are pods in the namespace holdfast-volumes if $HOLDFAST_IMAGE is the image of the
container, and else processes of this machine.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := nameOf(name)
			if err != nil {
				return err
			}
			log := h.Log()
			home, err := homeOf(cmd.Context(), h, name, filepath.Join(dir, "processes"), log)
			if err != nil {
				return err
			}
			defer func() { _ = home.close() }()
			clients, files := &conn.Clients{}, carrier.FileNode{Carriers: home.carriers}
			defer clients.Close()
			service := node.New(node.Config{
				Name: name, Dir: dir, Log: log, Backends: []backend.Node{
					&rbd.Node{Clients: clients, Carriers: home.carriers},
					&cephfs.Node{Clients: clients, FileNode: files}, &gluster.Node{FileNode: files},
				},
			})
			if home.notify != nil {
				ctx, stop := context.WithCancel(cmd.Context())
				var watch sync.WaitGroup
				watch.Go(func() { service.Watch(ctx, lookEvery, home.notify) })
				defer watch.Wait()
				defer stop()
			}
			return server.Run(cmd.Context(), server.Config{
				Endpoint: endpoint, Registration: registration, Log: log, Node: service,
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&endpoint, "endpoint", filepath.Join(socketDir, "csi.sock"),
		"the path of the socket, the same for the driver and the kubelet")
	f.StringVar(&name, "node", "", "the name of this node in Kubernetes (default $NODE_NAME, or the host name)")
	f.StringVar(&dir, "dir", "/var/lib/holdfast/csi", "the directory with the records of volumes")
	f.StringVar(&registration, "registration-dir", "/var/lib/kubelet/plugins_registry",
		"the directory where the kubelet looks for drivers; empty: do not register")
	return cmd
}

func nameOf(given string) (string, error) {
	if name := cmp.Or(given, os.Getenv("NODE_NAME")); name != "" {
		return name, nil
	}
	name, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("while reading the host name: %w; set --node", err)
	}
	return name, nil
}

// nodesOf returns who knows the nodes: the names that are given, or the API.
func nodesOf(names []string, config func() (*rest.Config, error)) (controller.Nodes, error) {
	if len(names) > 0 {
		return given(names), nil
	}
	c, err := config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		return nil, err
	}
	return cluster{client}, nil
}

type given []string

func (g given) Has(_ context.Context, node string) (bool, error) {
	return slices.Contains(g, node), nil
}

type cluster struct{ client kubernetes.Interface }

func (c cluster) Has(ctx context.Context, node string) (bool, error) {
	_, err := c.client.CoreV1().Nodes().Get(ctx, node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}
