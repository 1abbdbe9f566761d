package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/rotation"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/gluster"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// leaderHandlers carry out the kinds of actions that the leader carries out itself.
func leaderHandlers(
	store engine.Store, planners map[api.StorageType]hosts.Planner, mons *ceph.Driver, authority *rotation.Handler, guards ...hosts.Guard,
) []action.Handler {
	return append(hosts.Handlers(hosts.Config{Store: store, Planners: planners, Guards: guards}), authority, gluster.Resolver{Store: store}, ceph.Recoverer{Store: store, Driver: mons}, ceph.HandOver{Store: store, Driver: mons})
}

// etcdGuard keeps a server until the control plane goes on without it, whatever is switched off then: also those in maintenance.
func etcdGuard(config *rest.Config, store engine.Store) hosts.Guard {
	return func(ctx context.Context, host *api.Host) ([]hosts.Obstacle, error) {
		if _, server := host.Labels[api.LabelServer]; !server {
			return nil, nil
		}
		status, err := control.Quorum(ctx, config)
		switch {
		case errors.Is(err, control.ErrQuorumUnseen):
			return []hosts.Obstacle{{Wait: "the leader of etcd to look at its members"}}, nil
		case err != nil:
			return nil, err
		}
		there, err := store.Hosts(ctx)
		if err != nil {
			return nil, err
		}
		stays := func(name string) bool {
			return slices.ContainsFunc(there, func(h api.Host) bool { return h.Name == name && h.ModeOf() != api.HostMaintenance })
		}
		why := status.Needs(host.Name, stays)
		if why == "" {
			return nil, nil
		}
		return []hosts.Obstacle{{Wait: why, Refusal: status.Stuck(host.Name, stays)}}, nil
	}
}

// actionKinds are all kinds of actions, by name.
func actionKinds() map[string]action.Kind {
	r := action.Runner{Handlers: leaderHandlers(nil, nil, nil, &rotation.Handler{}), Agents: agent.ActionKinds()}
	return r.Kinds()
}

// runActions looks after all actions until ctx ends.
func runActions(
	ctx context.Context, store *bare.Store, planners map[api.StorageType]hosts.Planner, mons *ceph.Driver, authority *rotation.Handler, stats *action.Stats, log *slog.Logger,
	guards ...hosts.Guard,
) error {
	actions, err := store.Actions(ctx)
	if err != nil {
		return fmt.Errorf("while starting to look after actions: %w", err)
	}
	judges := hosts.Config{Store: store, Planners: planners}
	r := action.Runner{
		Store: actions, Handlers: leaderHandlers(store, planners, mons, authority, guards...), Agents: agent.ActionKinds(), Accept: hosts.AcceptAgents(judges), Ask: hosts.AskAgents(judges),
		Stats: stats, Log: log.With("part", "actions"),
		OnStuck: func(ctx context.Context, a *api.Action, why error) error {
			return engine.TellStuck(ctx, store, a, why, time.Now())
		},
	}
	return r.Run(ctx)
}
