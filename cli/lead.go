package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/guard"
	"github.com/holdfast-storage/holdfast/control"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/orch/apply"
	orch "github.com/holdfast-storage/holdfast/orch/server"
	"github.com/holdfast-storage/holdfast/orch/wire"
	"github.com/holdfast-storage/holdfast/orch/write"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// contend runs the engine whenever this server leads.
func contend(ctx context.Context, server *control.Server, now *leader.Metrics, w waits.Waits, log *slog.Logger) error {
	if err := store.Warm(ctx, server.Config()); err != nil && ctx.Err() == nil {
		log.Info("this server will need longer to become leader", "error", err)
	}
	e := &election.Election{
		REST: server.Config(), Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: server.Name(),
		Log: log.With("part", "election"),
	}
	return e.Run(ctx, func(ctx context.Context, token string) {
		if err := lead(ctx, server, token, now, w, log.With("part", "engine")); err != nil && ctx.Err() == nil {
			log.Error("releasing leadership", "error", err)
		}
	})
}

// lead runs the leader on this server until ctx ends. Whatever it writes carries token, so that
// nothing of it is done once another server leads: other parts than the Store write by way of
// bare.Fenced.
func lead(
	ctx context.Context, server *control.Server, token string, now *leader.Metrics, w waits.Waits, log *slog.Logger,
) error {
	store, err := bare.NewStore(ctx, server.Config(), token)
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	defer store.Close()
	authority, err := server.Rotation(bare.Fenced(server.Config(), token))
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	c := leads(w, authority)
	c.Store, c.Plans, c.Name, c.Metrics, c.Log = store, store.Plans(), server.Name(), now, log
	c.Guards = []hosts.Guard{guard.Etcd(server.Config(), store)}
	if c.Actions, err = store.Actions(ctx); err != nil {
		return fmt.Errorf("while starting the processing of actions: %w", err)
	}
	clients := &orch.Clients{InNameOf: bare.InNameOf(server.Config(), token)}
	c.Handlers = append(c.Handlers, &apply.Handler{Client: clients.Of})
	end := func() {}
	defer func() { end() }()
	c.Ready = func(asked *leader.Asked) {
		calls := orch.New(store, asked, clients, server.Name(), log.With("part", "orch"))
		calls.Leaving = func(v *engine.View) write.Leaving { return leaving.Of(v) }
		mux := http.NewServeMux()
		mux.Handle(wire.Prefix, calls)
		mux.Handle(livefigures.Prefix, &livefigures.Handler{Ask: asked.Figures})
		end = server.Leads.Lead(mux)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.TellLeader(ctx, bare.Fenced(server.Config(), token)) })
	group.Go(func() error { return leader.Run(ctx, c) })
	return group.Wait()
}

// leads is what every leader of this program knows and can do, whatever home it is in. handlers are the home's own.
func leads(w waits.Waits, handlers ...action.Handler) leader.Config {
	return leader.Config{Drivers: drivers(leaderAnswerIn, w), Handlers: handlers, Agents: agent.ActionKinds(), Waits: w}
}

// actionKinds are all kinds of actions, by name.
func actionKinds() map[string]action.Kind {
	return leads(waits.Waits{}, &rotation.Handler{}, &apply.Handler{}).Kinds()
}
