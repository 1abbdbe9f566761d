package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// precheck refuses what can be seen to be impossible before anything is created. It says whether the
// action takes something from a cluster that wipes what leaves it.
func (o *hostAction) precheck(ctx context.Context, c client.Client, a *api.Action) (wiped bool, err error) {
	all, err := readHosts(ctx, c)
	if err != nil {
		return false, err
	}
	if _, err := all.named(o.host); err != nil {
		return false, err
	}
	var heir *api.Host
	if name := o.parameters[hosts.ParamBy]; name != "" {
		if heir, err = all.named(name); err != nil {
			return false, err
		}
	}
	on, err := bare.ReadHost(ctx, c, o.host)
	if err != nil {
		return false, err
	}
	if err := hosts.Precheck(a, on, heir); errors.Is(err, action.ErrRefused) {
		return false, &exitError{exitRefused, err}
	} else if err != nil {
		return false, err
	}
	if err := underWayOn(ctx, c, o.host); err != nil || o.kind == hosts.ExitMaintenance {
		return false, err
	}
	return anyWipes(ctx, c, on.Clusters)
}

// anyWipes says whether one of the clusters wipes what leaves it: nothing else makes an action on a host destroy data.
func anyWipes(ctx context.Context, c client.Client, clusters []types.NamespacedName) (bool, error) {
	for _, key := range clusters {
		var cluster api.StorageCluster
		if err := c.Get(ctx, key, &cluster); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("while reading storagecluster/%s: %w", key.Name, err)
		}
		if cluster.PolicyOf() == api.DeletionWipe {
			return true, nil
		}
	}
	return false, nil
}

// underWayOn refuses a second action on a host. It would wait, for hours perhaps, where most people want the first one to end.
func underWayOn(ctx context.Context, c client.Client, host string) error {
	actions, err := hostActions(ctx, c, host)
	if err != nil {
		return err
	}
	for i := range actions {
		if a := &actions[i]; !a.Status.State.Final() {
			return &exitError{exitRefused, fmt.Errorf("action %s (%s) is under way on host %s%s: 'holdfast action cancel %s' ends it",
				a.Name, a.Spec.Kind, host, waitText(a), a.Name)}
		}
	}
	return nil
}

func waitText(a *api.Action) string {
	if a.Status.WaitsFor == "" {
		return ""
	}
	return " and waits for " + a.Status.WaitsFor
}

// hostActions returns the actions on a host, the newest first.
func hostActions(ctx context.Context, c client.Client, host string) ([]api.Action, error) {
	var list api.ActionList
	if err := c.List(ctx, &list, client.MatchingFields{"spec.host": host}); err != nil {
		return nil, fmt.Errorf("while reading actions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b api.Action) int { return b.CreationTimestamp.Compare(a.CreationTimestamp.Time) })
	return list.Items, nil
}
