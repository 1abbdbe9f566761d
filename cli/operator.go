package cli

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/cli/csi"
	"github.com/holdfast-storage/holdfast/cli/operator"
	"github.com/holdfast-storage/holdfast/internal/gctune"
)

func newOperator(g *globals) *cobra.Command {
	c := operator.Config{}
	nodes := ""
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator in a Kubernetes cluster",
		Long: `Runs the operator until it is stopped: it leads, or waits until the operator that leads ends.

The operator keeps no state outside the API. It reaches the API with its pod's ServiceAccount, or with --kubeconfig. The
manifests in deploy/kubernetes hold its rights and the policies that it needs. Stopping the operator stops no storage daemon.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			c.Log = newLog(g)
			slog.SetDefault(c.Log)
			if c.Nodes, err = labels.Parse(nodes); err != nil {
				return &exitError{exitUsage, fmt.Errorf("--node-selector: %w", err)}
			}
			if c.REST, err = g.clusterConfig(); err != nil {
				return err
			}
			c.Name = cmp.Or(c.Name, os.Getenv("POD_NAME"), hostname())
			go gctune.Run(cmd.Context())
			c.Leader, c.VolumeBackends = leads(g.waits), csi.Backends()
			return operator.Run(cmd.Context(), c)
		},
	}
	f := cmd.Flags()
	f.StringVar(&c.Name, "name", "",
		"the name of this operator, unique among the operators (default $POD_NAME, or the host name)")
	f.StringVar(&nodes, "node-selector", "kubernetes.io/os=linux",
		"the labels of the Nodes that become Hosts: those that the agents' DaemonSet selects")
	f.StringVar(&c.Listen, "listen", ":8081",
		"the address that serves health, metrics and figures of clusters, without authentication; empty: none")
	f.BoolVar(&c.Unfenced, "unfenced", false,
		"lead although the admission policies, which refuse writes of a replaced operator, are missing")
	return cmd
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// clusterConfig says how to reach the API of a Kubernetes cluster: by the kubeconfig that is given,
// or as the pod that this is.
func (g *globals) clusterConfig() (*rest.Config, error) {
	if g.kubeconfig != "" || os.Getenv("KUBECONFIG") != "" {
		return g.restConfig()
	}
	config, err := inCluster()
	if err != nil {
		return nil, fmt.Errorf("this is no pod of a Kubernetes cluster: set --kubeconfig to reach the API: %w", err)
	}
	return config, nil
}

// asPod is rest.InClusterConfig but in tests.
var asPod = rest.InClusterConfig

// inCluster says how a pod reaches the API, without client-go's limit of five requests a second:
// heartbeats would wait for reports in it, and an operator that starts for its own requests. The
// API server has limits of its own.
func inCluster() (*rest.Config, error) {
	config, err := asPod()
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}
