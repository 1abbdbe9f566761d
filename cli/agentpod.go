package cli

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/hosttoken"
)

// The environment of an agent in a pod.
const (
	// nodeVariable is the name of its Node, addressVariable the address that other nodes know it by.
	nodeVariable, addressVariable = "NODE_NAME", "HOST_IP"
	// imageVariable is the image of its own container, which the pods of its daemons get, and pullVariable when that is pulled.
	imageVariable, pullVariable = "HOLDFAST_IMAGE", "HOLDFAST_IMAGE_PULL_POLICY"
)

// runOfNode runs the agent of a Kubernetes node until ctx ends.
func (a *agentFlags) runOfNode(ctx context.Context, g *globals, node string, c control.AgentConfig) error {
	if node == "" {
		return &exitError{exitUsage, errors.New("the name of the Node is not known: set $" + nodeVariable + " in the pod, or use --name")}
	}
	if os.Getenv(imageVariable) == "" {
		return &exitError{exitUsage, errors.New("the image of the daemons' pods is not known: set $" + imageVariable + " to that of the agent's container")}
	}
	if err := mayServe("/proc", os.Getpid()); err != nil {
		return err
	}
	own, err := g.clusterConfig()
	if err != nil {
		return err
	}
	config, err := hosttoken.Config(own, node)
	if err != nil {
		return err
	}
	unlock, err := control.Lock(c.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	return a.run(ctx, agent.Config{
		Name: node, DataDir: c.DataDir, REST: config, Address: os.Getenv(addressVariable), OfNode: true, Log: c.Log,
	})
}

// podRuntime runs daemons as pods. It is newRuntime for the agent of a Kubernetes node.
func podRuntime(
	c agent.Config,
) func(context.Context, string, []service.ServiceAgent, <-chan struct{}, *slog.Logger) (runtime.Runtime, api.RuntimeKind, error) {
	return func(
		ctx context.Context, dataDir string, services []service.ServiceAgent, _ <-chan struct{}, log *slog.Logger,
	) (runtime.Runtime, api.RuntimeKind, error) {
		r, err := pod.New(ctx, pod.Config{
			REST: c.REST, Dir: filepath.Join(dataDir, "agent", "runtime"), Node: c.Name, Image: os.Getenv(imageVariable),
			PullPolicy: cmp.Or(corev1.PullPolicy(os.Getenv(pullVariable)), corev1.PullIfNotPresent), Log: log, BeforeStart: allow(services),
		})
		return r, api.RuntimePod, err
	}
}
