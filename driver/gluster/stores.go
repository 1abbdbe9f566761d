package gluster

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// store is a place for bricks on a node.
type store struct {
	glusterd.Store
	node     *node
	leaving  string // why its bricks are to go
	promised int64  // to bricks, in bytes
	bricks   int
}

// findStores takes the stores from the reports, and says which of them are to be emptied.
func (p *planner) findStores() {
	for _, n := range p.nodes {
		if n.report == nil {
			continue
		}
		for _, s := range n.report.Stores {
			n.stores = append(n.stores, &store{Store: s, node: n, leaving: n.whyLeaving(&s)})
		}
	}
}

// whyLeaving says why a store is to be emptied; nothing when it stays.
func (n *node) whyLeaving(s *glusterd.Store) string {
	switch {
	case n.leaving != "":
		return n.leaving
	case s.Device != "" && !slices.ContainsFunc(n.Devices, func(r engine.ResolvedDevice) bool { return r.ID == s.Device }):
		return fmt.Sprintf("device %s was taken from StorageNode %s", s.Device, n.name)
	case s.Device == "" && !slices.Contains(n.Node.Spec.Directories, s.Name):
		return fmt.Sprintf("directory %s was taken from StorageNode %s", s.Name, n.name)
	}
	return ""
}

// wantedDevices are the declared ones, and those that were and still have bricks.
func (p *planner) wantedDevices(n *node) []api.DaemonDevice {
	ids := map[string]bool{}
	for _, r := range n.Devices {
		if r.ID != "" && (n.uses(r.ID) || r.Problem == "" && r.Device != nil) {
			ids[r.ID] = true
		}
	}
	if n.daemon != nil {
		for _, d := range n.daemon.Spec.Devices {
			ids[d.ID] = ids[d.ID] || p.keepsStore(n, glusterd.StoreName(d.ID))
		}
	}
	var devices []api.DaemonDevice
	for _, id := range sortedKeys(ids) {
		if ids[id] {
			devices = append(devices, api.DaemonDevice{Name: glusterd.StoreName(id), ID: id})
		}
	}
	return devices
}

// wantedDirectories are the declared ones, and those that were and still have bricks.
func (p *planner) wantedDirectories(n *node) []string {
	var dirs []string
	if n.Node != nil {
		dirs = slices.DeleteFunc(slices.Clone(n.Node.Spec.Directories), func(dir string) bool { return p.directoryOwner(n, dir) != "" })
	}
	if n.daemon != nil {
		for _, dir := range directories(n.daemon) {
			if !slices.Contains(dirs, dir) && p.keepsStore(n, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	slices.Sort(dirs)
	return dirs
}

// keepsStore says whether a store that is not declared any more has to stay: a volume has a brick in it, or nobody can say.
func (p *planner) keepsStore(n *node, name string) bool {
	if p.speaker == nil || n.report == nil || n.leaving != "" {
		return true
	}
	i := slices.IndexFunc(n.stores, func(s *store) bool { return s.Name == name })
	return i >= 0 && (n.stores[i].bricks > 0 || n.stores[i].Problem == "" && p.leftover(n, n.stores[i]))
}
