package hosts

import (
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// PrecheckTarget refuses an action on a host that does not say which. It is pure.
func PrecheckTarget(a *api.Action) error {
	if !Knows(a) {
		return nil
	}
	return checkTarget(a)
}

// Precheck refuses what can be seen to be impossible without asking a storage system. heir is the host that shall take the
// place of the other one, nil where there is none. It is pure, so that a command can refuse before an action is made. The error
// wraps action.ErrRefused.
func Precheck(a *api.Action, on *engine.HostView, heir *api.Host) error {
	switch host := on.Host.Name; {
	case a.Spec.Kind == EnterMaintenance && on.Host.ModeOf() == api.HostDrain:
		return refuse("host %s is being drained: cancel that first with 'holdfast host maintenance exit %s'", host, host)
	case a.Spec.Kind == Drain && on.Host.ModeOf() == api.HostMaintenance:
		return refuse("host %s is in maintenance, so its data cannot be read: end maintenance first with 'holdfast host "+
			"maintenance exit %s', or, if the host will not come back, run 'holdfast host remove %s'", host, host, host)
	case a.Spec.Kind == Remove && len(on.Nodes) > 0 && a.Spec.Parameters[ParamNodes] != Delete:
		return refuse("%s on host %s; delete with --delete-nodes, or move to another host with 'holdfast host replace'",
			declared(on.Nodes), host)
	case a.Spec.Kind == Remove:
		return dead(on.Host, a.Spec.Parameters[ParamGone] == Yes)
	case a.Spec.Kind == Replace:
		if err := fit(a, on, heir); err != nil {
			return err
		}
		return dead(on.Host, a.Spec.Parameters[ParamGone] == Yes)
	}
	return nil
}

func declared(nodes []api.StorageNode) string {
	names := make([]string, len(nodes))
	for i := range nodes {
		names[i] = nodes[i].Namespace + "/" + nodes[i].Name
	}
	if len(names) == 1 {
		return "the StorageNode " + names[0] + " is"
	}
	return "the StorageNodes " + words.Few(names) + " are"
}

// dead refuses to take out a host that is silent unless somebody says that it is gone for good, and one that is said to be
// gone and is heard.
func dead(host *api.Host, said bool) error {
	switch silent := !host.AgentHeard(); {
	case silent && !said:
		return refuse("agent of host %s disconnected; its daemons may still run: if the machine is off and will not come "+
			"back, use --gone", host.Name)
	case said && !silent:
		return refuse("--gone refused: the agent of host %s is connected; power the machine off, or leave out --gone",
			host.Name)
	}
	return nil
}

// fit refuses a host that cannot take the place of another one now.
func fit(a *api.Action, on *engine.HostView, heir *api.Host) error {
	if heir == nil || heir.Name == on.Host.Name {
		return refuse("the parameter %q must name another host", ParamBy)
	}
	if !heir.AgentHeard() {
		return refuse("agent of host %s disconnected: start 'holdfast agent' there first", heir.Name)
	}
	if mode := heir.ModeOf(); mode != api.HostActive {
		return refuse("host %s is in mode %s: run 'holdfast host maintenance exit %s' first", heir.Name, mode, heir.Name)
	}
	if said := a.Spec.Parameters; said[ParamDevices]+said[ParamIPs] != "" && len(on.Nodes) != 1 {
		return refuse("devices or addresses apply to one StorageNode, but host %s has %d: change nodeSelector and "+
			"devices of each StorageNode instead", on.Host.Name, len(on.Nodes))
	}
	return nil
}
