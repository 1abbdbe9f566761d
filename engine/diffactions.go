package engine

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// ActionsOf returns those of all actions that may concern a cluster: its own, and those of no cluster, which hosts have. They
// are sorted by namespace and name. Quiet ones are not among them.
func ActionsOf(all []api.Action, cluster types.NamespacedName) []api.Action {
	var actions []api.Action
	for i := range all {
		if a := &all[i]; action.Quiet(a) {
			continue
		} else if a.Spec.Cluster == "" || a.Namespace == cluster.Namespace && a.Spec.Cluster == cluster.Name {
			actions = append(actions, *a)
		}
	}
	slices.SortFunc(actions, func(a, b api.Action) int { return strings.Compare(actionKey(&a), actionKey(&b)) })
	return actions
}

func actionKey(a *api.Action) string { return a.Namespace + "/" + a.Name }

// actions tells of differences of the cluster's own actions, and of those on hosts that it uses. One that was removed after it
// had ended is no difference.
func (d *differ) actions(before, after *View) {
	used := after.UsedHosts()
	compare(before.Actions, after.Actions, actionKey, func(was, is *api.Action) {
		if is == nil || !concernsUsed(is, used) {
			return
		}
		if was == nil || was.UID != is.UID {
			d.add(ActionNew, "action/"+is.Name, "%s was requested%s", whatAction(is), byText(is.Spec.Requester))
			was = &api.Action{}
		}
		d.actionState(was.Status.State, is)
	})
}

// concernsUsed says whether an action is the cluster's own, or on one of the hosts that the cluster uses.
func concernsUsed(a *api.Action, used map[string]bool) bool {
	return a.Spec.Cluster != "" || used[a.Spec.Host]
}

func (d *differ) actionState(was api.ActionState, is *api.Action) {
	object, now := "action/"+is.Name, is.Status.State
	switch {
	case now == was:
	case now.Final():
		d.add(ActionFinished, object, "%s is %s: %s", whatAction(is), now, is.Status.Message)
	case is.Status.WaitsFor != "":
		d.add(ActionChanged, object, "%s is %s%s; it waits for %s", whatAction(is), now, wasText(string(was)), is.Status.WaitsFor)
	default:
		d.add(ActionChanged, object, "%s is %s%s", whatAction(is), now, wasText(string(was)))
	}
}

func whatAction(a *api.Action) string { return fmt.Sprintf("%s of %s", a.Spec.Kind, a.Spec.Target) }

func byText(who string) string {
	if who == "" {
		return ""
	}
	return " by " + who
}
