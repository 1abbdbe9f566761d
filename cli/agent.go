package cli

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
	"github.com/spf13/pflag"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/agent/prepare"
	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/systemd"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/ceph"
	"github.com/holdfast-storage/holdfast/agent/service/ganesha"
	"github.com/holdfast-storage/holdfast/agent/service/gluster"
	"github.com/holdfast-storage/holdfast/agent/service/torus"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/internal/version"
)

func newAgent(g *globals) *cobra.Command {
	c := control.AgentConfig{}
	a := agentFlags{}
	kubernetes := false
	cmd := &cobra.Command{
		Use:   "agent [--join TOKEN | --kubernetes]",
		Short: "Run the agent of a host that is not a server",
		Long: `Runs the agent until it is stopped. The first start joins with a token from 'holdfast token create'
on a server. Later starts need no token. Stopping the agent stops no storage daemon.

With --kubernetes the host is a Node of a Kubernetes cluster: the agent reaches the API as the pod that it runs in, or with
--kubeconfig, and acts as the ServiceAccount that the operator made for the Node.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.JoinToken, err = joinToken(c.JoinToken, g.in); err != nil {
				return err
			}
			c.DataDir = g.dataDir
			c.Log = newLog(g)
			slog.SetDefault(c.Log)
			if kubernetes {
				return a.runOfNode(cmd.Context(), g, cmp.Or(c.Name, os.Getenv("NODE_NAME")), c)
			}
			identity, err := control.OpenAgent(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer identity.Close()
			return a.run(cmd.Context(), agent.Config{
				Name: identity.Name(), DataDir: g.dataDir, REST: identity.Config(), Servers: knownServers(g.dataDir), Log: c.Log,
			})
		},
	}
	cmd.Flags().StringVar(&c.JoinToken, "join", "", joinUsage)
	cmd.Flags().StringVar(&c.Name, "name", "", "the name of this host (default: the host name; with --kubernetes $NODE_NAME)")
	cmd.Flags().BoolVar(&kubernetes, "kubernetes", false, "this host is a Node of a Kubernetes cluster")
	cmd.MarkFlagsMutuallyExclusive("join", "kubernetes")
	a.bind(cmd.Flags())
	return cmd
}

// knownServers are the servers that the host of a data directory knows at the time, as IP:port.
func knownServers(dataDir string) func() []string {
	return func() []string { return endpoints.Known(control.HostDir(dataDir)) }
}

// agentFlags are the flags of the agent, which a server has as well.
type agentFlags struct {
	runDir       string
	deviceFilter string
}

func (a *agentFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&a.runDir, "run-dir", "/run/holdfast", "the directory for sockets of daemons; a boot may remove it")
	f.StringVar(&a.deviceFilter, "device-filter", os.Getenv(inventory.FilterVariable),
		"report only devices whose id matches this pattern, for hosts that share a kernel (default $"+inventory.FilterVariable+")")
}

// run runs the agent until ctx ends. c has its name, its data directory and its way to the API.
func (a *agentFlags) run(ctx context.Context, c agent.Config) error {
	dataDir, log := c.DataDir, c.Log.With("part", "agent")
	only, err := inventory.Filter(a.deviceFilter)
	if err != nil {
		return &exitError{exitUsage, fmt.Errorf("--device-filter: %w", err)}
	}
	claims := &prepare.Claims{}
	services := serviceAgents()
	machine, former := instance.Machine(), instance.FormerMachine()
	hold, release := holdElsewhere(dataDir, log, machine, former)
	var newRuntime makesRuntime = newRuntime
	if c.OfNode {
		newRuntime = podRuntime(c)
	}
	supervisor, kind, err := newRuntime(ctx, dataDir, services, hold, log)
	if err != nil {
		return fmt.Errorf("while starting the agent: %w", err)
	}
	defer supervisor.Close()
	c.RunDir, c.Version, c.Log = a.runDir, version.Version, log
	c.Runtime, c.RuntimeKind, c.Services = supervisor, kind, services
	c.Machine, c.FormerMachine, c.Alone = machine, former, release
	if kind == api.RuntimePod {
		c.Mounts = hostMounts
	}
	c.Inventory, c.Claims = &inventory.Scanner{Only: only, Claimed: claims.Reason, Mounts: c.Mounts}, claims
	return agent.Run(ctx, c)
}

// holdElsewhere returns what keeps daemons from being started after a boot where they may run on another machine, and what lets them.
func holdElsewhere(dataDir string, log *slog.Logger, machine ...string) (hold <-chan struct{}, release func()) {
	elsewhere, err := agent.Elsewhere(dataDir, machine...)
	switch {
	case err == nil && !elsewhere:
		return nil, func() {}
	case err != nil:
		log.Warn("this data directory may be in use on another machine: its daemons start when a server has answered",
			"error", err)
	default:
		log.Warn("this data directory was used on another machine, or another machine runs as this host: its daemons " +
			"start when no other machine does")
	}
	held := make(chan struct{})
	return held, sync.OnceFunc(func() { close(held) })
}

// serviceAgents are those of all daemons that an agent can run. Each passes the suite of package servicetest.
func serviceAgents() []service.ServiceAgent {
	return slices.Concat(ceph.Agents(), gluster.Agents(), torus.Agents(), ganesha.Agents())
}

// newRuntime chooses systemd where it runs the machine, and plain processes elsewhere. Where systemd starts daemons after a boot, it has read before what
// the packages have for the kernel (sysctl.d).
func newRuntime(ctx context.Context, dataDir string, services []service.ServiceAgent, hold <-chan struct{}, log *slog.Logger) (runtime.Runtime, api.RuntimeKind, error) {
	if systemd.Running() {
		r, err := systemd.New(ctx, systemd.Config{Dir: filepath.Join(dataDir, "agent", "restarts"), Log: log})
		return r, api.RuntimeSystemd, err
	}
	r, err := detached.New(detached.Config{Dir: filepath.Join(dataDir, "agent", "runtime"), Log: log, BeforeStart: service.BeforeStart(services, log), Hold: hold})
	return r, api.RuntimeDetached, err
}
