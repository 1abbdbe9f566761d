package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	clientlog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/holdfast-storage/holdfast/agent"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/internal/gctune"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
)

func newServer(g *globals) *cobra.Command {
	c := control.Config{}
	a := agentFlags{}
	cmd := &cobra.Command{
		Use:   "server [--init | --join TOKEN]",
		Short: "Run a server, which is also an agent",
		Long: `Runs a server until it is stopped. A server has a copy of the state or stands by, serves the API, may
lead, and runs an agent. Create the first server with --init. Others join with --join and a token
from 'holdfast token create --role server' on the first. Later starts need neither. To bring back a
server whose host was removed, use --join and a new token.

Stopping the server stops no storage daemon.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if c.JoinToken, err = joinToken(c.JoinToken, g.in); err != nil {
				return err
			}
			c.DataDir = g.dataDir
			c.Log = newLog(g)
			slog.SetDefault(c.Log)
			if set := g.waits.String(); set != "" {
				c.Log.Warn("waits are set, as for labs and tests; all servers need the same values", "waits", set)
			}
			return runServer(cmd.Context(), c, a, g.waits)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.Init, "init", false, "create a new control plane with this server")
	f.StringVar(&c.JoinToken, "join", "", joinUsage)
	f.StringVar(&c.Name, "name", "", "the name of this server and host (default: the host name)")
	f.StringVar(&c.Address, "address", "",
		"the IP address of this server for other machines (default: the one from which it reaches the servers that it "+
			"joins, or "+
			"that of its default route, or its first one)")
	f.IntVar(&c.APIPort, "api-port", 0, fmt.Sprintf("the port of the API (default %d)", control.DefaultAPIPort))
	f.IntVar(&c.EtcdPeerPort, "etcd-peer-port", 0, fmt.Sprintf("the port for etcd between servers (default %d)",
		control.DefaultEtcdPeerPort))
	f.IntVar(&c.EtcdClientPort, "etcd-client-port", 0, fmt.Sprintf("the port of etcd on loopback (default %d)", control.DefaultEtcdClientPort))
	f.DurationVar(&c.BackupEvery, "backup-interval", 0,
		"how often this server writes a backup to 'snapshots' below its data directory (default 1h)")
	f.IntVar(&c.BackupKeep, "backup-keep", 0, "how many of these backups it keeps (default 24)")
	f.DurationVar(&c.Quorum.Grace, "etcd-replace-after", 0,
		"how long a server may not answer before a standby takes over its member of etcd (default 5m)")
	a.bind(f)
	return cmd
}

// newLog makes the log of a server or agent, on standard error.
func newLog(g *globals) *slog.Logger {
	// What the client library does is told by those who use it.
	clientlog.SetLogger(logr.Discard())
	return slog.New(slog.NewTextHandler(g.err, &slog.HandlerOptions{Level: logLevel()}))
}

func logLevel() slog.Level {
	var level slog.Level
	// A level that cannot be read is no reason not to start.
	_ = level.UnmarshalText([]byte(envOr("HOLDFAST_LOG_LEVEL", "info")))
	return level
}

// runServer runs the server, the engine while it leads, and the agent of its host, until ctx ends or one of them cannot go
// on.
func runServer(ctx context.Context, c control.Config, a agentFlags, w waits.Waits) error {
	go gctune.Run(ctx)
	run, stop := context.WithCancelCause(ctx)
	var agents sync.WaitGroup
	// The agent does not wait for this server: it works with another one's API until this one is ready.
	c.Host = func(name string, config *rest.Config) {
		agents.Go(func() {
			err := a.run(run, agent.Config{
				Name: name, DataDir: c.DataDir, REST: config, Servers: knownServers(c.DataDir), Log: c.Log,
			})
			if err != nil {
				stop(&agentError{err})
			}
		})
	}
	err := serve(run, c, w, func() { stop(nil); agents.Wait() })
	if failed := (*agentError)(nil); errors.As(context.Cause(run), &failed) {
		return failed.error
	}
	return err
}

// agentError is why the agent of a server cannot run.
type agentError struct{ error }

// serve runs the server, and the engine while it leads. The agent ends before the server does.
func serve(ctx context.Context, c control.Config, w waits.Waits, endAgent func()) error {
	defer endAgent()
	server, err := control.Start(ctx, c)
	if err != nil {
		return err
	}
	defer server.Stop()
	defer endAgent()
	now := &leader.Metrics{}
	publishBackups(c.DataDir)
	legacyregistry.RawMustRegister(now, certificates{server.Certificates}, quorum{server.Quorum})
	c.Log.Info("the server is ready", "name", server.Name(), "endpoint", server.Endpoint())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Wait(ctx) })
	group.Go(func() error {
		return server.WhileSeated(ctx, func(ctx context.Context) error { return contend(ctx, server, now, w, c.Log) })
	})
	return group.Wait()
}
