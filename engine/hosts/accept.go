package hosts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/backoff"
)

// confirmAfter is how long after a refusal a storage system is asked once more: it may not have been asked for long, or be choosing who leads it.
const confirmAfter = time.Second

// AcceptAgents looks at an action that an agent carries out before it is accepted: the daemon that it is meant for has to be on
// the host, and its storage system has to do without it, now or after what is under way. Its agent, which may be silent for now, looks again
// before it begins.
func AcceptAgents(c Config) func(ctx context.Context, a *api.Action) error {
	return func(ctx context.Context, a *api.Action) error {
		if !onDaemon(a) {
			return nil
		}
		if err := checkForce(a); err != nil {
			return err
		}
		d, err := c.daemonOf(ctx, a)
		if err != nil || d == nil {
			return err
		}
		found, err := c.againstRestart(ctx, a, d)
		if err != nil || !found.lasts {
			return err
		}
		if !backoff.Wait(ctx, confirmAfter) {
			return context.Cause(ctx)
		}
		if found, err = c.againstRestart(ctx, a, d); err == nil && found.lasts {
			err = refuse("%s: %s", found.who, found.why)
		}
		return err
	}
}

// AskAgents says what is to come first when nothing else is in the way of an action that an agent carries out. What its agent refuses
// goes to its agent.
func AskAgents(c Config) func(ctx context.Context, a *api.Action) (string, error) {
	return func(ctx context.Context, a *api.Action) (string, error) {
		d, err := c.daemonOf(ctx, a)
		if d == nil || err != nil {
			if errors.Is(err, action.ErrRefused) {
				err = nil
			}
			return "", err
		}
		found, err := c.againstRestart(ctx, a, d)
		if err != nil || found.why == "" {
			return "", err
		}
		return found.who + " to allow it: " + found.why, nil
	}
}

// daemonOf is the daemon that an action is meant for; nil without a host. One that the leader stops is found without.
func (c Config) daemonOf(ctx context.Context, a *api.Action) (*api.Daemon, error) {
	if a.Spec.Kind == api.ActionDaemonStop {
		cluster, err := c.Store.View(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
		if isGone(err) {
			return nil, nil //nolint:nilnil // who carries it out says so
		}
		if err != nil {
			return nil, fmt.Errorf("while reading cluster %s: %w", a.Spec.Cluster, err)
		}
		return cluster.DaemonsByName()[strings.TrimPrefix(a.Spec.Target, "daemon/")], nil
	}
	v, err := c.Store.Host(ctx, a.Spec.Host)
	if isGone(err) {
		return nil, nil //nolint:nilnil // what that means is said elsewhere
	}
	if err != nil {
		return nil, fmt.Errorf("while reading host %s: %w", a.Spec.Host, err)
	}
	return daemonOn(a, v)
}

// daemonOn is the daemon of a host that an action is meant for.
func daemonOn(a *api.Action, v *engine.HostView) (*api.Daemon, error) {
	name, ok := strings.CutPrefix(a.Spec.Target, "daemon/")
	if !ok {
		return nil, refuse("the target %q is not a daemon: it must be daemon/NAME", a.Spec.Target)
	}
	i := slices.IndexFunc(v.Daemons, func(d api.Daemon) bool { return d.Namespace == a.Namespace && d.Name == name })
	switch {
	case i < 0:
		return nil, refuse("daemon %s of namespace %s does not exist on host %s: see 'holdfast get daemons'",
			name, a.Namespace, a.Spec.Host)
	case v.Daemons[i].DeletionTimestamp != nil:
		return nil, refuse("daemon %s is being removed", name)
	case v.Daemons[i].Spec.State != api.WantRunning:
		return nil, refuse("the desired state of daemon %s is %s, not Running: %s",
			name, v.Daemons[i].Spec.State, unwantedWhy(&v.Daemons[i], v.Host))
	}
	return &v.Daemons[i], nil
}

// unwantedWhy says what has a daemon not run, and what helps: the mode of its host, or that it is held back, as an OSD that went down again and again.
func unwantedWhy(d *api.Daemon, h *api.Host) string {
	if mode := h.ModeOf(); mode != api.HostActive || d.Spec.State != api.WantStopped {
		return fmt.Sprintf("host %s is in mode %s", h.Name, mode)
	}
	return fmt.Sprintf("see 'holdfast why %s'; if it is held back, start it with 'holdfast daemon start %s'",
		d.Name, d.Name)
}

func onDaemon(a *api.Action) bool { return a.Spec.Kind == api.ActionDaemonRestart }

func checkForce(a *api.Action) error {
	if force, said := a.Spec.Parameters[ParamForce]; said && force != Yes {
		return refuse("the parameter %q is %q, but must be %q", ParamForce, force, Yes)
	}
	return nil
}

// PrecheckDaemon refuses what can be seen to be impossible on a daemon without asking a storage system, as Precheck does on a host. It is pure.
func PrecheckDaemon(a *api.Action, on *engine.HostView) error {
	if !onDaemon(a) {
		return nil
	}
	_, err := daemonOn(a, on)
	return cmp.Or(checkForce(a), err)
}
