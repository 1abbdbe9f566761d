package hosts

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// modes are the modes that the kinds put their hosts in.
var modes = map[string]api.HostMode{
	EnterMaintenance: api.HostMaintenance, ExitMaintenance: api.HostActive, Drain: api.HostDrain, Remove: api.HostDrain, Replace: api.HostDrain,
}

// Knows says whether an action is one on a host.
func Knows(a *api.Action) bool { return modes[a.Spec.Kind] != "" }

// Removes says whether the host is gone when the action is done.
func Removes(a *api.Action) bool { return a.Spec.Kind == Remove || a.Spec.Kind == Replace }

// Outcome is what a host and the StorageNodes on it become by what an action itself writes; all else is what their clusters make of that.
// nodes are those of on that stay, in their order. It is pure.
func Outcome(a *api.Action, on *engine.HostView, heir *api.Host) (host *api.Host, nodes []api.StorageNode) {
	host = on.Host.DeepCopy()
	if mode := modes[a.Spec.Kind]; host.ModeOf() != mode {
		host.Spec.Mode, host.Spec.Reason = mode, string(a.Spec.Parameters[ParamReason])
	}
	disks(a, host)
	if a.Spec.Kind == Remove && a.Spec.Parameters[ParamNodes] == Delete {
		return host, nil
	}
	for i := range on.Nodes {
		n := on.Nodes[i].DeepCopy()
		if a.Spec.Kind == Replace {
			n.Status = api.StorageNodeStatus{}
			move(a, &n.Spec, heir)
		}
		nodes = append(nodes, *n)
	}
	return host, nodes
}

// disks notes on a host that is emptied whether its disks are kept. Who says that its machine is gone names no plan of what is wiped there:
// so nothing is, also should it come back. Who empties it otherwise does.
func disks(a *api.Action, host *api.Host) {
	if modes[a.Spec.Kind] == api.HostDrain {
		engine.KeepDisks(host, saysGone(a))
	}
}

// saysGone says whether who asked for an action said that the machine is off and will not come back.
func saysGone(a *api.Action) bool { return Removes(a) && a.Spec.Parameters[ParamGone] == Yes }

// granted says whether an action needs nobody's approval any more.
func granted(a *api.Action) bool {
	switch a.Spec.Approval {
	case api.ApprovalRequired, api.ApprovalRejected:
		return false
	case api.ApprovalGranted:
		return true
	}
	return a.Status.State != api.ActionPendingApproval
}

// move changes a StorageNode to the host that takes the place of the old one.
func move(a *api.Action, s *api.StorageNodeSpec, heir *api.Host) {
	s.NodeSelector = map[string]string{api.LabelHostname: heir.Hostname()}
	if said := a.Spec.Parameters[ParamDevices]; said != "" {
		s.Devices = strings.Split(string(said), ",")
	}
	if said := a.Spec.Parameters[ParamIPs]; said != "" {
		s.StorageNetwork.IPs = strings.Split(string(said), ",")
	}
}

// Gone are the hosts that are dead for good: their agents are silent, and who asked for an action that is granted and not over said that
// they will not come back. Of a host that is heard again, or whose action was given up, that word is worth nothing.
func Gone(all []api.Host, actions []api.Action) map[string]bool {
	said := map[string]bool{}
	for i := range actions {
		a := &actions[i]
		if saysGone(a) && granted(a) && a.Spec.Want != api.WantCancelled && !a.Status.State.Final() {
			said[a.Spec.Host] = true
		}
	}
	gone := map[string]bool{}
	for i := range all {
		if said[all[i].Name] && !all[i].AgentHeard() {
			gone[all[i].Name] = true
		}
	}
	return gone
}
