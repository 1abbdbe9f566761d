package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The steps that others ask after.
const (
	stepMove   = "move-nodes"
	stepNodes  = "delete-nodes"
	stepDelete = "delete-host"
)

// watchful is how often it is looked whether the agent of a host that is said to be gone is heard.
const watchful = 5 * time.Second

// remove takes a host out for good.
func (c Config) remove() *handler {
	return &handler{
		Config: c,
		kind: action.Kind{
			Name: Remove, Mode: action.Rolling, Timeout: slowly,
			Summary: "drain a host and remove it for good, even if its machine is dead",
		},
		check: func(ctx context.Context, j *job) error {
			if err := j.serversAllow(ctx); err != nil {
				return err
			}
			return j.allow(ctx, api.HostDrain)
		},
		steps: []step{
			beginDrain(),
			{name: "empty-host", do: func(ctx context.Context, j *job) (action.Progress, error) {
				return emptied(ctx, j, j.says(ParamGone, Yes))
			}},
			{name: stepNodes, do: deleteNodes, undo: keepDeleted},
			{name: stepDelete, do: deleteHost},
		},
	}
}

// serversAllow refuses the removal of a server that the others cannot do without.
func (j *job) serversAllow(ctx context.Context) error {
	hosts, err := j.Store.Hosts(ctx)
	if err != nil {
		return err
	}
	if lost := quorumLost(j.Host, hosts); lost != "" {
		return refuse("%s", lost)
	}
	return nil
}

// guarded says what besides storage is waited for before the host may go.
func (j *job) guarded(ctx context.Context) ([]string, error) {
	if err := j.serversAllow(ctx); errors.Is(err, action.ErrRefused) {
		return []string{err.Error()}, nil
	} else if err != nil {
		return nil, err
	}
	all, err := j.obstacles(ctx)
	return waitsOf(all), err
}

// quorumLost says what is wrong with the removal of a server: of those that are left, a majority has to be there. Which of them
// hold a member of etcd is for others to see to.
func quorumLost(host *api.Host, hosts []api.Host) string {
	if _, server := host.Labels[api.LabelServer]; !server {
		return ""
	}
	left, silent := 0, []string{}
	for i := range hosts {
		if _, server := hosts[i].Labels[api.LabelServer]; !server || hosts[i].Name == host.Name {
			continue
		}
		left++
		if !hosts[i].AgentHeard() {
			silent = append(silent, hosts[i].Name)
		}
	}
	switch {
	case left == 0:
		return fmt.Sprintf("host %s is the only server: join another one first ('holdfast token create --role server')",
			host.Name)
	case left-len(silent) <= left/2:
		return fmt.Sprintf("cannot remove server %s: of the %d other servers %s do not answer, and the control plane "+
			"needs a majority", host.Name, left, words.Few(silent))
	}
	return ""
}

// emptied waits until nothing is left on the host. The daemons of a host that is gone for good are let go without their agent's
// word, but only those that their cluster's plan removed: so it does not need them any more. That none is left is believed when the host has been silent for
// as long as it takes to let them go.
func emptied(ctx context.Context, j *job, gone bool) (action.Progress, error) {
	since, silent := j.Host.SilentSince()
	if !gone || !silent {
		return moved(ctx, j)
	}
	p, err := j.emptying(ctx)
	if err != nil {
		return p, err
	}
	hostDead := j.Waits.OrDefault().HostDead
	if wait := hostDead - time.Since(since); wait > 0 {
		if p.Done { // an agent that is back, and not heard yet, may have cleared the last away
			p.Done, p.Message = false, fmt.Sprintf("host %s is empty", j.Host.Name)
		}
		p.WaitsFor = fmt.Sprintf("the agent of host %s to stay disconnected until %s",
			j.Host.Name, since.Add(hostDead).UTC().Format("15:04:05 MST"))
		p.Recheck = min(wait, watchful)
		return p, nil
	}
	if p.Done {
		return p, nil
	}
	return p, j.letGo(ctx)
}

func (j *job) letGo(ctx context.Context) error {
	for i := range j.Daemons {
		d := types.NamespacedName{Namespace: j.Daemons[i].Namespace, Name: j.Daemons[i].Name}
		if err := j.Store.ReleaseDaemon(ctx, d); err != nil {
			return fmt.Errorf("while releasing daemon %s: %w", d.Name, err)
		}
	}
	return nil
}

func deleteNodes(ctx context.Context, j *job) (action.Progress, error) {
	for i := range j.Nodes {
		n := types.NamespacedName{Namespace: j.Nodes[i].Namespace, Name: j.Nodes[i].Name}
		if !j.says(ParamNodes, Delete) {
			return action.Progress{}, refuse("%s on host %s since this action began", declared(j.Nodes), j.Host.Name)
		}
		if err := j.Store.RemoveNode(ctx, n); err != nil {
			return action.Progress{}, fmt.Errorf("while deleting StorageNode %s: %w", n, err)
		}
	}
	return action.Progress{Done: true}, nil
}

// keepDeleted says what is left of an action that was undone after its StorageNodes were deleted.
func keepDeleted(context.Context, *job) (action.Progress, error) {
	return action.Progress{Done: true, Message: "deleted StorageNodes stay deleted"}, nil
}

// deleteHost is the end. Whatever came to the host since it was found empty keeps it. What else would break by now, as while
// another server is started anew, is waited for: to give the host back that was emptied for days would help nobody.
func deleteHost(ctx context.Context, j *job) (action.Progress, error) {
	switch reasons, err := j.guarded(ctx); {
	case err != nil:
		return action.Progress{}, err
	case len(reasons) > 0:
		return action.Progress{
			Message:  "the host is empty; do not power it off yet",
			WaitsFor: strings.Join(reasons, "; "),
		}, nil
	}
	if len(j.Daemons)+len(j.Nodes) > 0 {
		names := slices.Concat(j.left(func(*api.Daemon) bool { return true }), nodeNames(j.Nodes))
		return action.Progress{WaitsFor: words.Few(names) + " to be gone"}, nil
	}
	if err := j.Store.RemoveHost(ctx, j.Host.Name); err != nil {
		return action.Progress{}, err
	}
	return action.Progress{Done: true, Message: fmt.Sprintf("host %s was removed", j.Host.Name)}, nil
}

func nodeNames(nodes []api.StorageNode) []string {
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = "StorageNode " + nodes[i].Name
	}
	return names
}
