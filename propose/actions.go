package propose

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/devices"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// followActions finds out what the actions on hosts among the targets write themselves: their
// hosts, and the StorageNodes on these. It is shown, and changes what the clusters plan; nobody but
// the leader writes it.
func (p *Proposal) followActions(before *engine.Objects) error {
	for _, t := range p.Targets {
		if t.kind() != engine.KindAction || t.After == nil {
			continue
		}
		a := &api.Action{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(t.After.Object, a); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
		if t.Live == nil {
			p.foresee(before, a)
		}
		if hosts.Knows(a) && a.Spec.Want != api.WantCancelled && !a.Status.State.Final() {
			p.followAction(before, a, t.Live == nil)
		}
	}
	return nil
}

// foresee finds out whether a new action would be refused by who carries it out, as far as that can
// be seen without asking a storage system. What the server or a command refuses itself, such as an
// action on a host that there is not, is not looked for.
func (p *Proposal) foresee(before *engine.Objects, a *api.Action) {
	why := action.Impossible(a, p.home.Kinds)
	if err := hosts.PrecheckTarget(a); why == "" && err != nil {
		why = err.Error()
	}
	if host := hostIn(before, a.Spec.Host); why == "" && host != nil {
		on := engine.OnHost(host, before.Nodes, before.Daemons, before.Clusters)
		if err := hosts.PrecheckDaemon(a, on); err != nil {
			why = err.Error()
		}
		if devices.Knows(a) {
			if err := devices.Precheck(a, on, before.Clusters, before.Resources); err != nil {
				why = err.Error()
			}
		}
	}
	if why != "" {
		p.Foreseen = append(p.Foreseen, fmt.Sprintf("action/%s: %s", a.Name, why))
	}
}

// followAction adds what one action writes. Whether it can be done is asked of one that is not
// there yet.
func (p *Proposal) followAction(before *engine.Objects, a *api.Action, fresh bool) {
	host, heir := hostIn(before, a.Spec.Host), hostIn(before, string(a.Spec.Parameters[hosts.ParamBy]))
	if host == nil {
		return // the server lets no action be made on a host that there is not
	}
	on := engine.OnHost(host, before.Nodes, before.Daemons, before.Clusters)
	p.addUnderWay(before, a)
	if err := hosts.Precheck(a, on, heir); fresh && errors.Is(err, action.ErrRefused) {
		p.Refused = append(p.Refused, err.Error())
	} else if a.Spec.Kind == hosts.Replace {
		p.Host, p.Heir = host, heir
	}
	if a.Spec.Kind != hosts.Replace || heir != nil {
		p.follow(a, on, heir)
	}
}

// follow adds what becomes of a host and of the StorageNodes on it.
func (p *Proposal) follow(a *api.Action, on *engine.HostView, heir *api.Host) {
	host, nodes := hosts.Outcome(a, on, heir)
	p.follows = append(p.follows, followed(engine.KindHost, on.Host, host))
	for i := range on.Nodes {
		var becomes *api.StorageNode
		if k := slices.IndexFunc(nodes, func(n api.StorageNode) bool { return n.UID == on.Nodes[i].UID }); k >= 0 {
			becomes = &nodes[k]
		}
		if becomes != nil && equality.Semantic.DeepEqual(on.Nodes[i].Spec, becomes.Spec) {
			continue
		}
		p.follows = append(p.follows, followed(engine.KindNode, &on.Nodes[i], becomes))
	}
	if hosts.Removes(a) {
		p.ends = append(p.ends, plans.Change{
			Verb: plans.VerbDelete, Object: plans.ObjectName(engine.KindHost, "", host.Name), Reason: "deleted when it is " +
				"empty",
		})
	}
}

func hostIn(o *engine.Objects, name string) *api.Host {
	if i := slices.IndexFunc(o.Hosts, func(h api.Host) bool { return h.Name == name }); i >= 0 {
		return &o.Hosts[i]
	}
	return nil
}

// addUnderWay binds the proposal to the other actions on a host: one that began meanwhile was not
// reckoned with.
func (p *Proposal) addUnderWay(before *engine.Objects, a *api.Action) {
	f := plans.Facts{UID: "-", Fields: map[string]string{"host": a.Spec.Host}}
	for i := range before.Actions {
		other := &before.Actions[i]
		if mine := other.Namespace == a.Namespace && other.Name == a.Name; other.Spec.Host == a.Spec.Host && !mine && !other.Status.State.Final() {
			f.Fields["action "+other.Name] = other.Spec.Kind
		}
	}
	p.Basis["actions on "+plans.ObjectName(engine.KindHost, "", a.Spec.Host)] = f
}

// followed is an object as it is and as it will be, nil where it is deleted.
func followed[T any, P interface {
	*T
	object
}](kind string, was, is P) Target {
	t := Target{Unstructured: plans.Unstructured(kind, was)}
	t.Live = t.Unstructured
	if is != nil {
		t.After = plans.Unstructured(kind, is)
	}
	return t
}
