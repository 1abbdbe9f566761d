package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// precheck refuses what can be seen to be impossible before anything is created. It says whether the
// action takes something from a cluster that wipes what leaves it.
func (o *hostAction) precheck(ctx context.Context, c client.Client, a *api.Action, out io.Writer) (wiped bool, err error) {
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
	on, err := store.ReadHost(ctx, c, o.host)
	if err != nil {
		return false, err
	}
	if err := hosts.Precheck(a, on, heir); errors.Is(err, action.ErrRefused) {
		return false, &exitError{exitRefused, err}
	} else if err != nil {
		return false, err
	}
	waiting, err := underWayOn(ctx, c, on.Host)
	if err != nil {
		return false, err
	}
	o.tellWaiting(out, waiting)
	if o.kind == hosts.ExitMaintenance {
		return false, nil
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

// underWayOn refuses a second action on a host. It would wait, for hours perhaps, where most people want the first one to end. It returns
// those that wait for the host's silent agent, which are in nobody's way.
func underWayOn(ctx context.Context, c client.Client, host *api.Host) (waiting []string, err error) {
	actions, err := hostActions(ctx, c, host.Name)
	if err != nil {
		return nil, err
	}
	for i := range actions {
		switch a := &actions[i]; {
		case a.Status.State.Final(), action.Quiet(a):
		case waitsForSilent(a, host):
			waiting = append(waiting, fmt.Sprintf("%s (%s)", a.Name, a.Spec.Kind))
		default:
			return nil, &exitError{exitRefused, fmt.Errorf("action %s (%s) is in progress on host %s%s: cancel it with "+
				"'holdfast action cancel %s'",
				a.Name, a.Spec.Kind, host.Name, waitText(a), a.Name)}
		}
	}
	slices.Sort(waiting)
	return waiting, nil
}

// waitsForSilent says whether an action was not begun, and cannot be before the agent is heard that carries it out. One that the agent may have
// begun is none: nobody knows how far it is.
func waitsForSilent(a *api.Action, host *api.Host) bool {
	return a.Status.Executor == api.ByAgent && a.Status.State != api.ActionRunning && !host.AgentHeard()
}

// tellWaiting says what becomes of the actions that wait for the agent.
func (o *hostAction) tellWaiting(out io.Writer, waiting []string) {
	if len(waiting) == 0 {
		return
	}
	fate := "continue when it reconnects; cancel one with 'holdfast action cancel NAME'"
	if o.kind == hosts.Remove || o.kind == hosts.Replace {
		fate = "end as Failed, with nothing changed, when the host is removed"
	}
	fmt.Fprintf(out, "actions that wait for the disconnected agent of host %s: %s; they %s\n",
		o.host, strings.Join(waiting, ", "), fate)
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
