// Package daemonaction carries out the Actions that stop and start a daemon of Ceph, and that restart
// all daemons of a service. It writes what is asked into annotations of the Daemons (package asked);
// the planner does the work, so that any leader continues it.
package daemonaction

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
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
)

// soon is when to look again at a daemon that stops or starts.
const soon = time.Second / 2

// Store is what the handlers read and write. An engine.Store is one.
type Store interface {
	engine.ClusterReader
	// Secrets is that of engine.SecretStore.
	Secrets(cluster types.NamespacedName) engine.SecretReader
	// AnnotateDaemon is that of engine.DaemonStore.
	AnnotateDaemon(ctx context.Context, daemon types.NamespacedName, change func(annotations map[string]string)) error
}

// Config is what the handlers need.
type Config struct {
	Store Store
	// Driver is asked whether Ceph can do without a daemon.
	Driver engine.Driver
	// Types are the types of daemons that Ceph itself has.
	Types []string
}

// Handlers carry out these kinds of Actions.
func Handlers(c Config) []action.Handler { return []action.Handler{stop{c}, start{c}, service{c}} }

// job is an Action with its cluster as it is now.
type job struct {
	Config
	action *api.Action
	view   *engine.View
}

func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: %s", action.ErrRefused, fmt.Sprintf(format, args...))
}

// open reads the cluster of an Action.
func (c Config) open(ctx context.Context, a *api.Action) (*job, error) {
	view, err := c.Store.View(ctx, types.NamespacedName{Namespace: a.Namespace, Name: a.Spec.Cluster})
	switch {
	case errors.Is(err, engine.ErrNotFound):
		return nil, refuse("StorageCluster %s does not exist in namespace %s", a.Spec.Cluster, a.Namespace)
	case err != nil:
		return nil, fmt.Errorf("while reading StorageCluster %s: %w", a.Spec.Cluster, err)
	}
	return &job{c, a, view}, nil
}

// active refuses while nobody would act on what is asked.
func (j *job) active() error {
	switch c := j.view.Cluster; {
	case c.DeletionTimestamp != nil:
		return refuse("StorageCluster %s is being deleted", c.Name)
	case c.ModeOf() != api.ClusterActive:
		return refuse("StorageCluster %s is in mode %s: set its spec.mode to Active first", c.Name, c.ModeOf())
	}
	return nil
}

// target is the daemon of an Action.
func (j *job) target() (*api.Daemon, error) {
	name, ok := strings.CutPrefix(j.action.Spec.Target, "daemon/")
	d := j.view.DaemonsByName()[name]
	switch {
	case !ok:
		return nil, refuse("the target %q is not a daemon: it must be daemon/NAME", j.action.Spec.Target)
	case d == nil:
		return nil, refuse("daemon %s of StorageCluster %s does not exist: see 'holdfast get daemons'",
			name, j.view.Cluster.Name)
	case d.DeletionTimestamp != nil:
		return nil, refuse("daemon %s is being removed", name)
	case !slices.Contains(j.Types, d.Spec.Type):
		return nil, refuse("daemon %s cannot be stopped alone: it is a %s", name, d.Spec.Type)
	}
	return d, nil
}

// inService refuses where the mode of a daemon's host decides whether it runs.
func (j *job) inService(d *api.Daemon) error {
	host := j.view.HostsByName()[d.Spec.Host]
	if mode := host.ModeOf(); mode != api.HostActive {
		return refuse("host %s is in mode %s: return it to service first", d.Spec.Host, mode)
	}
	return nil
}

// may asks Ceph whether it can do without a daemon that runs. What passes by itself is waited for.
func (j *job) may(ctx context.Context, d *api.Daemon) error {
	if d.Status.State != api.DaemonRunning {
		return nil // it is missed already
	}
	view := *j.view
	view.Restart, view.Supposed = d.Name, true
	key := types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}
	system, err := j.Driver.Observe(ctx, &view, j.Store.Secrets(key))
	if err != nil {
		return fmt.Errorf("while asking Ceph whether %s may stop: %w", d.Name, err)
	}
	view.System = system
	against := j.Driver.Plan(&view, time.Now()).AgainstRestart(d.Name)
	if len(against) == 0 {
		return nil
	}
	lasts := func(x api.Decision) bool { return x.Verdict == api.VerdictRefuse && x.Reason != api.ReasonNotAnswering }
	if i := slices.IndexFunc(against, lasts); i >= 0 && !hosts.UnderWay(&view, d, j.action) {
		return refuse("%s", against[i].Message)
	}
	return fmt.Errorf("waiting: %s", against[0].Message)
}

// reached says whether a daemon is wanted in a state, and is there by its agent's word.
func reached(d *api.Daemon, want api.WantedState) bool {
	return d.Spec.State == want && d.Status.State == want.Reached() && d.Status.ObservedGeneration == d.Generation
}

// awaits says what is waited for until a daemon stops or starts.
func (j *job) awaits(d *api.Daemon, what string) string {
	if h := j.view.HostsByName()[d.Spec.Host]; h == nil || !h.AgentHeard() {
		return fmt.Sprintf("the agent of host %s to connect", d.Spec.Host)
	}
	text := fmt.Sprintf("%s on host %s to %s", d.Name, d.Spec.Host, what)
	if d.Status.Message != "" && d.Status.State != api.DaemonRunning {
		text += ": " + d.Status.Message
	}
	return text
}

// annotate changes what is asked of a daemon.
func (j *job) annotate(ctx context.Context, d *api.Daemon, change func(map[string]string)) error {
	err := j.Store.AnnotateDaemon(ctx, types.NamespacedName{Namespace: d.Namespace, Name: d.Name}, change)
	if err != nil {
		return fmt.Errorf("while recording what is asked of daemon %s: %w", d.Name, err)
	}
	return nil
}
