package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/agent/podmounts"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/hosttoken"
)

// The environment of an agent in a pod.
const (
	// nodeVariable is the name of its Node, addressVariable the address that other nodes know it
	// by.
	nodeVariable, addressVariable = "NODE_NAME", "HOST_IP"
	// imageVariable is the image of its own container, which the pods of its daemons get.
	imageVariable = "HOLDFAST_IMAGE"
	// pullVariable is when the image is pulled, secretsVariable with which Secrets of the
	// namespaces of daemons (names, separated by commas), and priorityVariable the priority class
	// of the pods.
	pullVariable     = "HOLDFAST_IMAGE_PULL_POLICY"
	secretsVariable  = "HOLDFAST_IMAGE_PULL_SECRETS" //nolint:gosec // names of Secrets
	priorityVariable = "HOLDFAST_PRIORITY_CLASS"
)

// hostMounts are the mounts of the host for an agent in a pod, whose own mount namespace shows
// hardly any of them.
const hostMounts = "/proc/1/mountinfo"

// runOfNode runs the agent of a Kubernetes node until ctx ends.
func (a *agentFlags) runOfNode(ctx context.Context, g *globals, node string, c control.AgentConfig) error {
	if err := checkNode(node); err != nil {
		return err
	}
	if err := mayServe("/proc", os.Getpid()); err != nil {
		return err
	}
	if err := podmounts.HasOfNode("/proc", "/dev", c.DataDir, a.runDir); err != nil {
		return err
	}
	own, err := g.clusterConfig()
	if err != nil {
		return err
	}
	config, err := hosttoken.Config(ctx, own, node)
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

// checkNode says what is missing for the pods of daemons.
func checkNode(node string) error {
	var text string
	switch {
	case node == "":
		text = "the name of the Node is not known: set $" + nodeVariable + " in the pod, or use --name"
	case os.Getenv(imageVariable) == "":
		text = "the image of the daemons' pods is not known: set $" + imageVariable + " to that of the agent's " +
			"container"
	default:
		return nil
	}
	return &exitError{exitUsage, errors.New(text)}
}

// makesRuntime is what makes the runtime of an agent, as newRuntime does.
type makesRuntime func(
	ctx context.Context, dataDir string, services []service.ServiceAgent, hold <-chan struct{}, log *slog.Logger,
) (runtime.Runtime, api.RuntimeKind, error)

// podRuntime runs daemons as pods. It is newRuntime for the agent of a Kubernetes node.
func podRuntime(c agent.Config) makesRuntime {
	return func(
		ctx context.Context, dataDir string, services []service.ServiceAgent, _ <-chan struct{}, log *slog.Logger,
	) (runtime.Runtime, api.RuntimeKind, error) {
		cfg := podConfig(c.Name)
		cfg.REST, cfg.Dir, cfg.Log, cfg.BeforeStart = c.REST, filepath.Join(dataDir, "agent", "pods"), log,
			service.BeforeStart(services, log)
		r, err := pod.New(ctx, cfg)
		return r, api.RuntimePod, err
	}
}

// podConfig is what the environment says of the pods of a node.
func podConfig(node string) pod.Config {
	cfg := pod.Config{
		Node: node, Image: os.Getenv(imageVariable), PullPolicy: corev1.PullPolicy(os.Getenv(pullVariable)),
		PriorityClass: os.Getenv(priorityVariable),
	}
	for name := range strings.SplitSeq(os.Getenv(secretsVariable), ",") {
		if name = strings.TrimSpace(name); name != "" {
			cfg.PullSecrets = append(cfg.PullSecrets, name)
		}
	}
	return cfg
}
