package cli

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/pod"
	"github.com/holdfast-storage/holdfast/agent/runtime/systemd"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/ceph"
	"github.com/holdfast-storage/holdfast/agent/service/ganesha"
	"github.com/holdfast-storage/holdfast/agent/service/gluster"
	"github.com/holdfast-storage/holdfast/agent/service/torus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/internal/version"
)

func newAgent(g *globals) *cobra.Command {
	c := control.AgentConfig{}
	a := agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent [--join TOKEN]",
		Short: "Run the agent of a host that is not a server",
		Long: `Runs the agent until it is stopped. The first start joins with a token from 'holdfast token create'
on a server. Later starts need no token. Stopping the agent stops no storage daemon.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.JoinToken, err = joinToken(c.JoinToken, g.in); err != nil {
				return err
			}
			c.DataDir = g.dataDir
			c.Log = newLog(g)
			slog.SetDefault(c.Log)
			identity, err := control.OpenAgent(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer identity.Close()
			return a.run(cmd.Context(), identity.Name(), g.dataDir, c.Log, identity.Config())
		},
	}
	cmd.Flags().StringVar(&c.JoinToken, "join", "", joinUsage)
	cmd.Flags().StringVar(&c.Name, "name", "", "the name of this host (default: the host name)")
	a.bind(cmd.Flags())
	return cmd
}

// agentFlags are the flags of the agent, which a server has as well.
type agentFlags struct {
	runDir       string
	deviceFilter string
	runtime      string
}

func (a *agentFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&a.runDir, "run-dir", "/run/holdfast", "the directory for sockets of daemons; a boot may remove it")
	f.StringVar(&a.deviceFilter, "device-filter", os.Getenv(inventory.FilterVariable),
		"report only devices whose id matches this pattern, for hosts that share a kernel (default $"+inventory.FilterVariable+")")
	f.StringVar(&a.runtime, "runtime", os.Getenv(runtimeVariable),
		"how daemons are run: systemd, detached (plain processes), or pod (on a node of Kubernetes) "+
			"(default $"+runtimeVariable+", or systemd where it runs the machine, and else detached)")
}

// runtimeVariable names the runtime of the agent.
const runtimeVariable = "HOLDFAST_RUNTIME"

// What the environment tells an agent in a pod of Kubernetes: the name of its node and its own
// image, and, where they are others than by default, how images are pulled and which priority
// daemons have.
const (
	nodeVariable          = "NODE_NAME"
	imageVariable         = "HOLDFAST_IMAGE"
	pullPolicyVariable    = "HOLDFAST_PULL_POLICY"
	pullSecretsVariable   = "HOLDFAST_PULL_SECRETS" //nolint:gosec // names of Secrets, separated by commas
	priorityClassVariable = "HOLDFAST_PRIORITY_CLASS"
)

// hostMounts are the mounts of the host for an agent in a container, whose own mount namespace
// shows hardly any of them.
const hostMounts = "/proc/1/mountinfo"

// run runs the agent until ctx ends.
func (a *agentFlags) run(ctx context.Context, name, dataDir string, log *slog.Logger, config *rest.Config) error {
	log = log.With("part", "agent")
	only, err := inventory.Filter(a.deviceFilter)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("--device-filter: %w", err)}
	}
	claims := &agent.Claims{}
	services := serviceAgents()
	machine, former := instance.Machine(), instance.FormerMachine()
	hold, release := holdElsewhere(dataDir, log, machine, former)
	parts := runtimeParts{dataDir: dataDir, services: services, hold: hold, config: config, log: log}
	supervisor, kind, err := newRuntime(ctx, a.runtime, parts)
	if err != nil {
		return fmt.Errorf("while starting the agent: %w", err)
	}
	defer supervisor.Close()
	mounts := ""
	if kind == api.RuntimePod {
		mounts = hostMounts
	}
	return agent.Run(ctx, agent.Config{
		Name: name, DataDir: dataDir, RunDir: a.runDir, REST: config, Version: version.Version,
		Runtime: supervisor, RuntimeKind: kind, Machine: machine, FormerMachine: former, Alone: release,
		Inventory: &inventory.Scanner{Only: only, Claimed: claims.Reason, Mounts: mounts}, Claims: claims, Mounts: mounts,
		Services: services, Log: log,
	})
}

// holdElsewhere returns what keeps daemons from being started after a boot where they may run on another machine, and what lets them.
func holdElsewhere(dataDir string, log *slog.Logger, machine ...string) (hold <-chan struct{}, release func()) {
	elsewhere, err := agent.Elsewhere(dataDir, machine...)
	switch {
	case err == nil && !elsewhere:
		return nil, func() {}
	case err != nil:
		log.Warn("whether the daemons of this data directory run on another machine is not known: they are started when a server has answered", "error", err)
	default:
		log.Warn("this data directory was used on another machine, or another one runs as this host: its daemons are started when no other one does")
	}
	held := make(chan struct{})
	return held, sync.OnceFunc(func() { close(held) })
}

// serviceAgents are those of all daemons that an agent can run. Each passes the suite of package servicetest.
func serviceAgents() []service.ServiceAgent {
	return slices.Concat(ceph.Agents(), gluster.Agents(), torus.Agents(), ganesha.Agents())
}

// runtimeParts is what runtimes are made of.
type runtimeParts struct {
	dataDir  string
	services []service.ServiceAgent
	hold     <-chan struct{}
	config   *rest.Config
	log      *slog.Logger
}

// newRuntime makes the runtime that is named, or else chooses systemd where it runs the machine,
// and plain processes elsewhere. Where systemd starts daemons after a boot, it has read before what
// the packages have for the kernel (sysctl.d).
func newRuntime(ctx context.Context, name string, p runtimeParts) (runtime.Runtime, api.RuntimeKind, error) {
	dir := func(name string) string { return filepath.Join(p.dataDir, "agent", name) }
	if name == "" && systemd.Running() {
		name = "systemd"
	}
	switch name {
	case "systemd":
		r, err := systemd.New(ctx, systemd.Config{Dir: dir("restarts"), Log: p.log})
		return r, api.RuntimeSystemd, err
	case "", "detached":
		r, err := detached.New(detached.Config{Dir: dir("runtime"), Log: p.log, BeforeStart: allow(p.services), Hold: p.hold})
		return r, api.RuntimeDetached, err
	case "pod":
		cfg, err := podConfig()
		if err != nil {
			return nil, "", err
		}
		cfg.REST, cfg.Dir, cfg.Log, cfg.BeforeStart = p.config, dir("pods"), p.log, allow(p.services)
		r, err := pod.New(ctx, cfg)
		return r, api.RuntimePod, err
	}
	err := fmt.Errorf("--runtime: there is no runtime %q: it is systemd, detached or pod", name)
	return nil, "", &exitError{exitUsage, err}
}

// podConfig is what the environment tells an agent in a pod.
func podConfig() (pod.Config, error) {
	var missing []string
	need := func(variable string) string {
		value := os.Getenv(variable)
		if value == "" {
			missing = append(missing, variable)
		}
		return value
	}
	cfg := pod.Config{
		Node: need(nodeVariable), Image: need(imageVariable), PullPolicy: corev1.PullPolicy(os.Getenv(pullPolicyVariable)),
		PriorityClass: os.Getenv(priorityClassVariable),
	}
	for name := range strings.SplitSeq(os.Getenv(pullSecretsVariable), ",") {
		if name = strings.TrimSpace(name); name != "" {
			cfg.PullSecrets = append(cfg.PullSecrets, name)
		}
	}
	if len(missing) > 0 {
		return cfg, &exitError{exitUsage, fmt.Errorf("the runtime pod needs %s in the environment of the agent: "+
			"set it in the DaemonSet (NODE_NAME from the field spec.nodeName, HOLDFAST_IMAGE to the image of the agent)",
			strings.Join(missing, " and "))}
	}
	return cfg, nil
}

// allow has the kernel allow what a program needs that is about to start.
func allow(services []service.ServiceAgent) func(runtime.Process) {
	return func(p runtime.Process) {
		for _, s := range services {
			if x, is := s.(service.Allower); is && len(p.Command) > 0 && filepath.Base(p.Command[0]) == s.Name() {
				x.Allow()
			}
		}
	}
}
