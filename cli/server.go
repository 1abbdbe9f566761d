package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/component-base/metrics/legacyregistry"
	clientlog "sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

func newServer(g *globals) *cobra.Command {
	c := control.Config{}
	a := agentFlags{}
	cmd := &cobra.Command{
		Use:   "server [--init | --join TOKEN]",
		Short: "Run a server: it holds a copy of the state, serves the API, may lead, and is an agent, too",
		Long: `Runs a server until it is stopped. The first server is made with --init. Others join with --join and a token that
'holdfast token create --role server' prints on the first. Later starts need neither; a server whose host was removed comes back with --join and a new token.

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
				c.Log.Warn("waits are set, as for labs and tests; all servers need the same", "waits", set)
			}
			return runServer(cmd.Context(), c, a, g.waits)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&c.Init, "init", false, "make a new control plane, of which this is the first server")
	f.StringVar(&c.JoinToken, "join", "", joinUsage)
	f.StringVar(&c.Name, "name", "", "the name of this server and host (default: the host name)")
	f.StringVar(&c.Address, "address", "", "the IP address that others reach this server at (default: the first one of the machine)")
	f.IntVar(&c.APIPort, "api-port", 0, fmt.Sprintf("the port of the API (default %d)", control.DefaultAPIPort))
	f.IntVar(&c.EtcdPeerPort, "etcd-peer-port", 0, fmt.Sprintf("the port that the servers' etcd members talk on (default %d)", control.DefaultEtcdPeerPort))
	f.IntVar(&c.EtcdClientPort, "etcd-client-port", 0, fmt.Sprintf("the port of etcd on loopback (default %d)", control.DefaultEtcdClientPort))
	f.DurationVar(&c.BackupEvery, "backup-interval", 0, "how often this server takes a backup into 'snapshots' below its data directory (default 1h)")
	f.IntVar(&c.BackupKeep, "backup-keep", 0, "how many of them it keeps (default 24)")
	f.DurationVar(&c.Quorum.Grace, "etcd-replace-after", 0, "how long a server may be silent before a standby takes its member of etcd (default 5m)")
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
	go tuneCollector(ctx)
	server, err := control.Start(ctx, c)
	if err != nil {
		return err
	}
	defer server.Stop()
	now := &leading{}
	publishBackups(c.DataDir)
	legacyregistry.RawMustRegister(now, certificates{server.Certificates}, quorum{server.Quorum})
	c.Log.Info("the server is ready", "name", server.Name(), "endpoint", server.Endpoint())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Wait(ctx) })
	group.Go(func() error {
		return server.WhileSeated(ctx, func(ctx context.Context) error { return contend(ctx, server, now, w, c.Log) })
	})
	group.Go(func() error { return a.run(ctx, server.Name(), c.DataDir, c.Log, server.AgentConfig()) })
	return group.Wait()
}

// contend runs the engine whenever this server leads.
func contend(ctx context.Context, server *control.Server, now *leading, w waits.Waits, log *slog.Logger) error {
	if err := bare.Warm(ctx, server.Config()); err != nil && ctx.Err() == nil {
		log.Info("this server will be slow to begin when it leads", "error", err)
	}
	election := &leader.Election{
		REST: server.Config(), Namespace: bare.SystemNamespace, Name: bare.LeaderLease, Server: server.Name(), Log: log.With("part", "election"),
	}
	return election.Run(ctx, func(ctx context.Context, token string) {
		if err := lead(ctx, server, token, now, w, log.With("part", "engine")); err != nil && ctx.Err() == nil {
			log.Error("giving up leadership", "error", err)
		}
	})
}

// lead orchestrates all clusters until ctx ends. Whatever the leader writes carries token, so that nothing of it is done once
// another server leads: other parts than the Store write by way of bare.Fenced.
func lead(
	ctx context.Context, server *control.Server, token string, now *leading, w waits.Waits, log *slog.Logger,
) error {
	store, err := bare.NewStore(ctx, server.Config(), token)
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	defer store.Close()
	now.store.Store(store)
	defer now.store.Store(nil)
	var managers []engine.ServiceManager
	planners := map[api.StorageType]hosts.Planner{}
	var mons *ceph.Driver
	for _, driver := range drivers(leaderAnswerIn, w) {
		if d, ok := driver.(*ceph.Driver); ok {
			mons = d
		}
		o := &engine.Orchestrator{Store: store, Driver: driver, Leader: server.Name(), Log: log}
		managers = append(managers, o)
		planners[api.StorageType(o.Name())] = o
	}
	authority, err := server.Rotation(bare.Fenced(server.Config(), token))
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return store.WatchAgents(ctx, w.OrDefault().AgentSilent) })
	group.Go(func() error { return store.ClearPlans(ctx) })
	group.Go(func() error { return server.TellLeader(ctx, bare.Fenced(server.Config(), token)) })
	group.Go(func() error {
		c := hosts.Config{Planners: planners, Guards: []hosts.Guard{etcdGuard(server.Config(), store)}, Waits: w}
		return runActions(ctx, store, c, mons, authority, &now.actions, log)
	})
	group.Go(func() error {
		return engine.Run(ctx, engine.Config{Store: store, Managers: managers, Stats: &now.stats, Log: log})
	})
	return group.Wait()
}
