package hosts

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// replace puts a host in the place of another one, which is then removed.
func (c Config) replace() *handler {
	empty := func(ctx context.Context, j *job) (action.Progress, error) {
		// A run of a cluster that began before its node was moved may have written the old host into the node once more, and
		// one that goes on now may do so again: after a move, the nodes are looked at anew.
		if p, err := moveNodes(ctx, j); err != nil || !p.Done {
			return p, err
		}
		return emptied(ctx, j, j.says(ParamGone, Yes))
	}
	return &handler{
		Config: c,
		kind: action.Kind{
			Name: Replace, Mode: action.Rolling, Timeout: slowly,
			Summary: "replace a host by another that has joined",
		},
		check: checkReplace,
		steps: []step{
			beginDrain(),
			{name: stepMove, do: moveNodes, undo: keepMoved},
			{name: "empty-host", do: empty},
			{name: stepDelete, do: deleteHost},
		},
	}
}

// checkReplace finds out whether the new host can do what the old one did: it supposes that the StorageNodes are moved, and
// looks what the clusters would then refuse that they do not refuse today.
func checkReplace(ctx context.Context, j *job) error {
	heir, err := j.heir(ctx)
	if err != nil {
		return err
	}
	if err := j.serversAllow(ctx); err != nil {
		return err
	}
	if err := j.active(ctx); err != nil {
		return err
	}
	for _, cluster := range j.Clusters {
		reasons, err := j.newRefusals(ctx, cluster, heir)
		if err != nil {
			return err
		}
		if len(reasons) > 0 {
			return Unfit(j.Host, heir, reasons)
		}
	}
	return nil
}

// Unfit refuses a host that cannot take the place of another one, with the reasons and what could be chosen.
func Unfit(host, heir *api.Host, reasons []string) error {
	return refuse("host %s cannot replace %s: %s%s", heir.Name, host.Name, strings.Join(reasons, "; "), hint(heir))
}

// hint names the devices that could be used.
func hint(heir *api.Host) string {
	var free []string
	for _, d := range heir.Status.Devices {
		if d.Taken() == "" {
			free = append(free, cmp.Or(d.Path, d.ID))
		}
	}
	if len(free) == 0 {
		return fmt.Sprintf(". No device of %s is free", heir.Name)
	}
	return fmt.Sprintf(". Free on %s: %s; choose with --devices", heir.Name, words.Few(free))
}

// heir reads the host that takes the place of the old one.
func (j *job) heir(ctx context.Context) (*api.Host, error) {
	name := string(j.action.Spec.Parameters[ParamBy])
	v, err := j.Store.Host(ctx, name)
	if isGone(err) {
		return nil, refuse("host %s does not exist: join the new machine first", name)
	} else if err != nil {
		return nil, err
	}
	return v.Host, nil
}

// newRefusals are what a cluster would refuse if the nodes were moved, and does not refuse today.
func (j *job) newRefusals(ctx context.Context, cluster types.NamespacedName, heir *api.Host) ([]string, error) {
	_, today, err := j.suppose(ctx, cluster, nil)
	if err != nil || today == nil {
		return nil, err
	}
	host, nodes := Outcome(j.action, j.HostView, heir)
	_, then, err := j.suppose(ctx, cluster, func(v *engine.View) {
		v.SetHostMode(host.Name, host.ModeOf())
		for i := range v.Nodes {
			if k := slices.IndexFunc(nodes, func(n api.StorageNode) bool { return n.UID == v.Nodes[i].UID }); k >= 0 {
				v.Nodes[i] = nodes[k]
			}
		}
	})
	if err != nil || then == nil {
		return nil, err
	}
	var reasons []string
	for _, d := range then.Decisions {
		same := func(o api.Decision) bool {
			return o.Object == d.Object && o.Verdict == d.Verdict && o.Reason == d.Reason
		}
		if d.Verdict == api.VerdictRefuse && !slices.ContainsFunc(today.Decisions, same) {
			reasons = append(reasons, d.Object+": "+d.Message)
		}
	}
	return reasons, nil
}

// moveNodes moves the StorageNodes to the new host. What was found out of their devices on the old one is forgotten: by the
// record of it a node is held to its host.
func moveNodes(ctx context.Context, j *job) (action.Progress, error) {
	if len(j.Nodes) == 0 {
		return action.Progress{Done: true, Message: "the StorageNodes were moved"}, nil
	}
	heir, err := j.heir(ctx)
	if err != nil {
		return action.Progress{}, err
	}
	for i := range j.Nodes {
		n := types.NamespacedName{Namespace: j.Nodes[i].Namespace, Name: j.Nodes[i].Name}
		if j.Nodes[i].Spec.NodeSelector[api.LabelHostname] != heir.Hostname() {
			if err := j.Store.PutNode(ctx, n, func(s *api.StorageNodeSpec) { move(j.action, s, heir) }); err != nil && !isGone(err) {
				return action.Progress{}, fmt.Errorf("while moving StorageNode %s: %w", n, err)
			}
		}
		if err := j.Store.PutNodeStatus(ctx, n.Namespace, engine.NodeStatus{Name: n.Name}); err != nil {
			return action.Progress{}, fmt.Errorf("while moving StorageNode %s: %w", n, err)
		}
	}
	return action.Progress{Message: fmt.Sprintf("%s moved to host %s", words.Few(nodeNames(j.Nodes)), heir.Name)}, nil
}

// keepMoved says what is left of an action that was undone after its StorageNodes were moved: their daemons may have data on
// the new host already.
func keepMoved(_ context.Context, j *job) (action.Progress, error) {
	return action.Progress{Done: true, Message: fmt.Sprintf("StorageNodes that were moved to host %s stay there",
		j.action.Spec.Parameters[ParamBy])}, nil
}
