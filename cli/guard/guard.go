// Package guard says which hosts must stay for Holdfast's own control plane.
package guard

import (
	"context"
	"errors"
	"slices"

	"k8s.io/client-go/rest"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/quorumview"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
)

// Etcd keeps a server until the control plane goes on without it, whatever is switched off
// then: also those in maintenance.
func Etcd(config *rest.Config, store engine.HostStore) hosts.Guard {
	return func(ctx context.Context, host *api.Host) ([]hosts.Obstacle, error) {
		if _, server := host.Labels[api.LabelServer]; !server {
			return nil, nil
		}
		status, err := quorumview.Ask(ctx, config)
		switch {
		case errors.Is(err, quorumview.ErrUnseen):
			return []hosts.Obstacle{{Wait: "the leader of etcd to check its members"}}, nil
		case err != nil:
			return nil, err
		}
		there, err := store.Hosts(ctx)
		if err != nil {
			return nil, err
		}
		stays := func(name string) bool {
			return slices.ContainsFunc(there, func(h api.Host) bool {
				return h.Name == name && h.ModeOf() != api.HostMaintenance
			})
		}
		why := status.Needs(host.Name, stays)
		if why == "" {
			return nil, nil
		}
		return []hosts.Obstacle{{Wait: why, Refusal: status.Stuck(host.Name, stays)}}, nil
	}
}
