package cli

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/plans"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/bare"
)

// addWipes raises the risk of each change of a StorageNode that takes devices which daemons use from a cluster that wipes what leaves it.
// What the storage system would do shows in its plan as a rule; a system that does not answer at the moment must not make the change
// look harmless.
func (p *proposal) addWipes(before, after *bare.Objects) {
	named := namedDevices(after)
	for i := range before.Nodes {
		n := &before.Nodes[i]
		if !wipes(before, n) {
			continue
		}
		object := plans.ObjectName(engine.KindNode, n.Namespace, n.Name)
		c := slices.IndexFunc(p.report.Changes, func(c plans.Change) bool { return c.Object == object })
		if c >= 0 && slices.ContainsFunc(n.Status.Devices, func(d api.ClaimedDevice) bool {
			return !named[[2]string{n.Status.Host, d.ID}] && inUse(before.Daemons, n.Status.Host, d.ID)
		}) {
			p.report.Changes[c].Risk = engine.HigherRisk(p.report.Changes[c].Risk, api.RiskData)
		}
	}
}

// namedDevices are the devices, by host and identity, that StorageNodes name and were accepted with.
func namedDevices(o *bare.Objects) map[[2]string]bool {
	named := map[[2]string]bool{}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		for _, d := range n.Status.Devices {
			if slices.Contains(n.Spec.Devices, d.Name) || slices.Contains(n.Spec.Devices, d.ID) {
				named[[2]string{n.Status.Host, d.ID}] = true
			}
		}
	}
	return named
}

// wipes says whether the node's cluster wipes what leaves it, as only Ceph does: GlusterFS leaves an empty disk with its file system.
func wipes(o *bare.Objects, n *api.StorageNode) bool {
	name := engine.ClusterOf(n, o.Clusters)
	return slices.ContainsFunc(o.Clusters, func(c api.StorageCluster) bool {
		return c.Namespace == n.Namespace && c.Name == name && c.Spec.Type == api.StorageCeph && c.PolicyOf() == api.DeletionWipe
	})
}

func inUse(daemons []api.Daemon, host, id string) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Host == host && slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.ID == id })
	})
}
