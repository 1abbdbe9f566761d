package cli

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// leaderHandlers carry out the kinds of actions that the leader carries out itself.
func leaderHandlers(store engine.Store, planners map[api.StorageType]hosts.Planner, authority *rotation.Handler) []action.Handler {
	return append(hosts.Handlers(hosts.Config{Store: store, Planners: planners}), authority)
}

// actionKinds are all kinds of actions, by name.
func actionKinds() map[string]action.Kind {
	r := action.Runner{Handlers: leaderHandlers(nil, nil, &rotation.Handler{}), Agents: agent.ActionKinds()}
	return r.Kinds()
}

// runActions looks after all actions until ctx ends.
func runActions(
	ctx context.Context, store *bare.Store, planners map[api.StorageType]hosts.Planner, authority *rotation.Handler, log *slog.Logger,
) error {
	actions, err := store.Actions(ctx)
	if err != nil {
		return fmt.Errorf("while starting to look after actions: %w", err)
	}
	r := action.Runner{
		Store: actions, Handlers: leaderHandlers(store, planners, authority), Agents: agent.ActionKinds(), Accept: hosts.AcceptAgents(store),
		Log: log.With("part", "actions"),
	}
	return r.Run(ctx)
}
