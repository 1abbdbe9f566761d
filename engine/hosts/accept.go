package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// AcceptAgents looks at an action that an agent carries out before it is accepted: the daemon that it is meant for has to be on
// the host. Its agent, which may be silent for now, looks again before it begins.
func AcceptAgents(store engine.Store) func(ctx context.Context, a *api.Action) error {
	return func(ctx context.Context, a *api.Action) error {
		if !strings.HasPrefix(a.Spec.Kind, "daemon.") {
			return nil
		}
		v, err := store.Host(ctx, a.Spec.Host)
		if isGone(err) {
			return nil // what that means is said elsewhere
		}
		if err != nil {
			return fmt.Errorf("while reading host %s: %w", a.Spec.Host, err)
		}
		name, ok := strings.CutPrefix(a.Spec.Target, "daemon/")
		if !ok {
			return refuse("the target %q is no daemon: it has to be daemon/NAME", a.Spec.Target)
		}
		i := slices.IndexFunc(v.Daemons, func(d api.Daemon) bool { return d.Namespace == a.Namespace && d.Name == name })
		switch {
		case i < 0:
			return refuse("there is no daemon %s of namespace %s on host %s: see 'holdfast get daemons'", name, a.Namespace, a.Spec.Host)
		case v.Daemons[i].DeletionTimestamp != nil:
			return refuse("daemon %s is being removed", name)
		case v.Daemons[i].Spec.State != api.WantRunning:
			return refuse("daemon %s is wanted %s, not Running: host %s is in mode %s", name, v.Daemons[i].Spec.State, a.Spec.Host, v.Host.ModeOf())
		}
		return nil
	}
}
