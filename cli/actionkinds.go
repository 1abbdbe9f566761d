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
func leaderHandlers(c hosts.Config, mons *ceph.Driver, authority *rotation.Handler) []action.Handler {
	return append(hosts.Handlers(c), authority, gluster.Resolver{Store: c.Store},
		ceph.Recoverer{Store: c.Store, Driver: mons}, ceph.HandOver{Store: c.Store, Driver: mons})
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
	r := action.Runner{Handlers: leaderHandlers(hosts.Config{}, nil, &rotation.Handler{}), Agents: agent.ActionKinds()}
	return r.Kinds()
}

// runActions looks after all actions until ctx ends. c needs no Store, which is the one that is given.
func runActions(
	ctx context.Context, store *bare.Store, c hosts.Config, mons *ceph.Driver, authority *rotation.Handler,
	stats *action.Stats, log *slog.Logger,
) error {
	actions, err := store.Actions(ctx)
	if err != nil {
		return fmt.Errorf("while starting to look after actions: %w", err)
	}
	c.Store = store
	r := action.Runner{
		Store: actions, Handlers: leaderHandlers(c, mons, authority), Agents: agent.ActionKinds(),
		Accept: hosts.AcceptAgents(c), Ask: hosts.AskAgents(c), Waits: c.Waits, Stats: stats, Log: log.With("part", "actions"),
		OnStuck: func(ctx context.Context, a *api.Action, why error) error {
			return engine.TellStuck(ctx, store, a, why, time.Now())
		},
	}
	return r.Run(ctx)
}
