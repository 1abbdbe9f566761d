package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// objection is what a cluster has against the restart of a daemon.
type objection struct {
	// who is the cluster, and why what it says; empty when nothing is against it.
	who, why string
	// lasts is set when nothing that is under way will change it.
	lasts bool
}

// againstRestart asks a daemon's cluster whether the others can do without it for a moment, unless who asked for the restart wants it at any
// price. A daemon that does not run, by its agent's word, is missed already: its restart mends that.
func (c Config) againstRestart(ctx context.Context, a *api.Action, d *api.Daemon) (*objection, error) {
	found := &objection{}
	forced := a.Spec.Kind == api.ActionDaemonRestart && a.Spec.Parameters[ParamForce] == Yes
	if forced || d.Status.State != api.DaemonRunning || d.Spec.Cluster == "" {
		return found, nil
	}
	cluster := types.NamespacedName{Namespace: d.Namespace, Name: d.Spec.Cluster}
	view, plan, err := c.suppose(ctx, cluster, func(v *engine.View) { v.Restart = d.Name })
	if err == nil && ctx.Err() != nil { // what was not asked to the end is no answer
		err = fmt.Errorf("while checking cluster %s: %w", cluster.Name, context.Cause(ctx))
	}
	if err != nil || plan == nil {
		return found, err
	}
	var why []string
	for _, x := range plan.AgainstRestart(d.Name) {
		why = append(why, x.Message)
		found.lasts = found.lasts || x.Verdict == api.VerdictRefuse
	}
	if len(why) == 0 {
		return found, nil
	}
	found.lasts = found.lasts && !UnderWay(view, d, a)
	found.who = fmt.Sprintf("%s %s", view.Cluster.Spec.Type, cluster.Name)
	if found.why = strings.Join(why, "; "); a.Spec.Kind == api.ActionDaemonRestart {
		found.why += fmt.Sprintf("; to restart it in any case: 'holdfast daemon restart %s --force'", d.Name)
	}
	return found, nil
}

// UnderWay says whether an action that came before another one may change what the cluster of a daemon says:
// one that is carried out, or that is about to be. A restart that waits changes nothing, and may wait for this
// one.
func UnderWay(v *engine.View, d *api.Daemon, than *api.Action) bool {
	used := v.UsedHosts()
	return slices.ContainsFunc(v.Actions, func(a api.Action) bool {
		concerns := a.Namespace == d.Namespace && a.Spec.Cluster == d.Spec.Cluster || used[a.Spec.Host]
		return a.UID != than.UID && concerns && begins(&a) && !than.CreationTimestamp.Before(&a.CreationTimestamp)
	})
}

func begins(a *api.Action) bool {
	state, kind := a.Status.State, a.Spec.Kind
	waits := kind == api.ActionDaemonRestart || kind == api.ActionDaemonStop
	turn := state == api.ActionNew || state == api.ActionRunning || state == api.ActionPendingSchedule && !waits
	return turn && !action.Quiet(a)
}
