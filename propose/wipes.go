package propose

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// addWipes raises the risk of each change of a StorageNode, a DriveGroup or a host's mode that
// takes devices which daemons use from a cluster that wipes what leaves it. What the storage system
// would do shows in its plan as a rule; a system that does not answer at the moment must not make
// the change look harmless. So it is with a resource that is deleted with its data, which may wait
// until its clients have stopped.
func (p *Proposal) addWipes(before, after *engine.Objects) {
	named, dead := map[drives.Place]bool{}, hosts.Gone(after.Hosts, after.Actions)
	for _, x := range holders(after) {
		for _, at := range x.places {
			named[at] = named[at] || drained(before, at.Host) || !drained(after, at.Host)
		}
	}
	for _, x := range holders(before) {
		w := p.wiper(before, x.cluster)
		for _, at := range x.places {
			if w != nil && !named[at] && !dead[at.Host] && inUse(before.Daemons, at) && !elsewhere(w, before, at) {
				p.risksData(x.object)
				p.risksData(plans.ObjectName(engine.KindHost, "", at.Host))
			}
		}
	}
	for _, t := range p.Targets {
		if t.After == nil && wipedWith(before.Resources, t) {
			p.risksData(plans.NameOf(t.Unstructured))
		}
	}
}

// drained says whether a host is emptied without its disks being kept.
func drained(o *engine.Objects, host string) bool {
	h := hostIn(o, host)
	return h != nil && h.ModeOf() == api.HostDrain && !engine.DisksKept(h)
}

// risksData raises the risk of the change of an object, if it is changed.
func (p *Proposal) risksData(object string) {
	if c := slices.IndexFunc(p.Report.Changes, func(c plans.Change) bool { return c.Object == object }); c >= 0 {
		p.Report.Changes[c].Risk = engine.HigherRisk(p.Report.Changes[c].Risk, api.RiskData)
	}
}

// wipedWith says whether something was made for a resource, and its data goes with it.
func wipedWith(all []api.Resource, t Target) bool {
	i := indexOfResource(all, t)
	if i < 0 || t.Live == nil {
		return false
	}
	policy, _, _ := unstructured.NestedString(t.Live.Object, "spec", "deletionPolicy")
	s := all[i].Common()
	return policy == string(api.DeletionWipe) && (s.Served || s.State != "" && s.State != api.ResourcePending)
}

// holder is an object that gives devices to a cluster.
type holder struct {
	object  string
	cluster types.NamespacedName
	places  []drives.Place
}

// holders are the StorageNodes and DriveGroups with the devices that they were accepted with and
// still name.
func holders(o *engine.Objects) []holder {
	var all []holder
	for i := range o.Nodes {
		n := &o.Nodes[i]
		x := holder{object: plans.ObjectName(engine.KindNode, n.Namespace, n.Name)}
		x.cluster = types.NamespacedName{Namespace: n.Namespace, Name: engine.ClusterOf(n, o.Clusters)}
		out := exclusions.Of(n, hostIn(o, n.Status.Host))
		for _, d := range n.Status.Devices {
			if out.Has(d.ID) {
				continue
			}
			if slices.Contains(n.Spec.Devices, d.Name) || slices.Contains(n.Spec.Devices, d.ID) {
				x.places = append(x.places, drives.Place{Host: n.Status.Host, ID: d.ID})
			}
		}
		all = append(all, x)
	}
	for _, g := range engine.OfKind[*api.DriveGroup](o.Resources) {
		x := holder{object: plans.ObjectName(g.ResourceKind(), g.Namespace, g.Name), cluster: engine.ClusterOfResource(g)}
		for _, d := range g.Status.Devices {
			if at := (drives.Place{Host: d.Host, ID: d.ID}); drives.Holds(g, at) {
				x.places = append(x.places, at)
			}
		}
		all = append(all, x)
	}
	return all
}

// wiper is the driver of a cluster that wipes what leaves it, nil of any other cluster.
func (p *Proposal) wiper(o *engine.Objects, cluster types.NamespacedName) engine.Wiper {
	i := slices.IndexFunc(o.Clusters, func(c api.StorageCluster) bool { return nameOf(&c) == cluster })
	if i < 0 || o.Clusters[i].PolicyOf() != api.DeletionWipe {
		return nil
	}
	w, _ := p.home.driver(o.Clusters[i].Spec.Type).(engine.Wiper)
	return w
}

// elsewhere says whether the one device of a daemon is in another host, where it is not wiped.
func elsewhere(w engine.Wiper, o *engine.Objects, at drives.Place) bool {
	i := slices.IndexFunc(o.Daemons, func(d api.Daemon) bool {
		one := len(d.Spec.Devices) == 1 && d.Spec.Devices[0].ID == at.ID
		return d.Spec.Host == at.Host && d.Spec.OnRemoval != api.DeletionWipe && one
	})
	return i >= 0 && w.Elsewhere(&o.Daemons[i], o.Hosts)
}

func inUse(daemons []api.Daemon, at drives.Place) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Host == at.Host && slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.ID == at.ID })
	})
}
