package engine

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// UsedHosts are the hosts that the cluster, its nodes and its resources select or were accepted on, and those
// where its daemons are. Nobody writes to the map. A view that AddNeighbours has seen remembers them: a run
// asks several times, and in a large fleet to find them is much of its work.
func (v *View) UsedHosts() map[string]bool {
	if v.used != nil {
		return v.used
	}
	return v.findUsed(newHostIndex(v.Hosts))
}

func (v *View) findUsed(hosts *hostIndex) map[string]bool {
	used := make(map[string]bool, len(v.Nodes))
	for i := range v.Nodes {
		if host := v.Nodes[i].Status.Host; host != "" {
			used[host] = true
		}
		for _, h := range hosts.selected(v.Nodes[i].Spec.NodeSelector) {
			used[h.Name] = true
		}
	}
	for i := range v.Daemons {
		used[v.Daemons[i].Spec.Host] = true
	}
	for i := range v.Hosts {
		if v.Cluster.Selects(&v.Hosts[i]) {
			used[v.Hosts[i].Name] = true
		}
	}
	for _, r := range OfKind[api.Placed](v.Resources) {
		for i := range v.Hosts {
			if r.SelectedHosts().Selects(&v.Hosts[i]) {
				used[v.Hosts[i].Name] = true
			}
		}
	}
	return used
}

// AddNeighbours fills in what of other clusters concerns this one, which is what they have on the hosts that it uses: Others and
// Claims. The rest of a large fleet costs it nothing. Nodes are those of all clusters, and others returns the daemons of other clusters
// on these hosts; either may have more. Cluster, Nodes, Resources, Daemons and Hosts must be there, and stay as they are.
func (v *View) AddNeighbours(nodes []api.StorageNode, others func(hosts map[string]bool) []*api.Daemon, clusters []api.StorageCluster) {
	hosts := newHostIndex(v.Hosts)
	v.used = v.findUsed(hosts)
	near := make([]api.StorageNode, 0, len(v.Nodes))
	for i := range nodes {
		isUsed := func(h *api.Host) bool { return v.used[h.Name] }
		if v.used[nodes[i].Status.Host] || slices.ContainsFunc(hosts.selected(nodes[i].Spec.NodeSelector), isUsed) {
			near = append(near, nodes[i])
		}
	}
	daemons := make([]*api.Daemon, 0, len(v.Daemons))
	for i := range v.Daemons {
		daemons = append(daemons, &v.Daemons[i])
	}
	for _, d := range others(v.used) {
		if v.used[d.Spec.Host] {
			v.Others = append(v.Others, d)
		}
	}
	slices.SortFunc(v.Others, func(a, b *api.Daemon) int { return compareKeys(keyOf(a), keyOf(b)) })
	v.Claims = ClaimsOf(near, append(daemons, v.Others...), v.Hosts, clusters)
}
