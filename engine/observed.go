package engine

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// observed returns what becomes of a plan while the cluster is only observed: it changes nothing, and its decisions say what
// it would change. What it tells of the storage system stays, also what it tells of resources: they are looked at, and not adopted.
func observed(view *View, p *Plan) *Plan {
	would := wouldDo(p)
	held := *p
	held.Secrets, held.Daemons, held.Remove, held.Commands, held.Nodes, held.Resources = nil, nil, nil, nil, nil, nil
	for _, c := range p.Resources {
		if !c.Gone {
			c.Unadopted = true
			held.Resources = append(held.Resources, c)
		}
	}
	held.Decisions = slices.DeleteFunc(slices.Clone(p.Decisions), func(d api.Decision) bool { return d.Verdict == api.VerdictDo })
	held.Finished = p.Finished && (view.Cluster.Spec.DeletionPolicy != api.DeletionWipe || len(view.Secrets) == 0)
	if p.Finished && !held.Finished {
		would = append(would, notDone("cluster/"+view.Cluster.Name, "remove its Secrets and finalizer"))
	}
	held.Decisions = append(held.Decisions, would...)
	held.Held = len(would)
	held.Done = p.Done && held.Held == 0
	if held.Held > 0 {
		held.Recheck = 0
	}
	return &held
}

// wouldDo says of each change in the plan that it is not made.
func wouldDo(p *Plan) []api.Decision {
	var all []api.Decision
	for _, s := range p.Secrets {
		what := "create it"
		if s.Gone {
			what = "remove it"
		}
		all = append(all, notDone("secret/"+s.Name, what))
	}
	for _, c := range p.Daemons {
		verb := "change it"
		if c.New {
			verb = "place it on host " + c.Daemon.Spec.Host
		}
		all = append(all, notDone("daemon/"+c.Daemon.Name, withReason(verb, c.Reason)))
	}
	for _, r := range p.Remove {
		all = append(all, notDone("daemon/"+r.Name, withReason("remove it", r.Reason)))
	}
	for _, c := range p.Resources {
		if c.Gone {
			all = append(all, notDone(c.Object(), "remove its finalizer"))
		}
	}
	for _, c := range p.Commands {
		all = append(all, notDone(cmp.Or(c.Line, c.Object), withReason("run '"+c.Verb+"' in the storage system", c.Reason)))
	}
	return all
}

func notDone(object, what string) api.Decision {
	return api.Decision{Object: object, Verdict: api.VerdictSkip, Reason: api.ReasonObserveOnly, Message: "mode " +
		"Observed: would " + what}
}

func withReason(what, reason string) string {
	if reason == "" {
		return what
	}
	return what + ": " + reason
}

func observedText(n int) string {
	if n == 1 {
		return "mode Observed: 1 change not made; set spec.mode to Active to make it"
	}
	return fmt.Sprintf("mode Observed: %d changes not made; set spec.mode to Active to make them", n)
}
