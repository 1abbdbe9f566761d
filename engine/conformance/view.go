package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// View is a view of copies of all that the world has, as a Store makes it; others are daemons of other clusters. Tests of drivers that have a
// world of their own use it, too.
func (w *World) View(others ...*api.Daemon) *engine.View {
	v := &engine.View{Cluster: w.Cluster.DeepCopy()}
	for i := range w.Hosts {
		v.Hosts = append(v.Hosts, *w.Hosts[i].DeepCopy())
	}
	for i := range w.Nodes {
		v.Nodes = append(v.Nodes, *w.Nodes[i].DeepCopy())
	}
	for _, r := range w.Resources {
		v.Resources = append(v.Resources, engine.CopyResource(r))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Daemons)) {
		v.Daemons = append(v.Daemons, *w.Daemons[name].DeepCopy())
	}
	slices.SortFunc(v.Hosts, func(a, b api.Host) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(v.Nodes, func(a, b api.StorageNode) int { return strings.Compare(a.Name, b.Name) })
	engine.SortResources(v.Resources)
	v.AddNeighbours(v.Nodes, func(map[string]bool) []*api.Daemon { return others }, []api.StorageCluster{*v.Cluster})
	return v
}

// Decisions are those of a plan that have one of the verdicts, or all, as "Verdict object: message".
func Decisions(p *engine.Plan, verdicts ...api.Verdict) []string {
	var all []string
	for _, d := range p.Decisions {
		if len(verdicts) == 0 || slices.Contains(verdicts, d.Verdict) {
			all = append(all, fmt.Sprintf("%s %s: %s", d.Verdict, d.Object, d.Message))
		}
	}
	return all
}
