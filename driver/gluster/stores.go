package gluster

import (
	"fmt"
	"maps"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/closed"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// store is a place for bricks on a node.
type store struct {
	glusterd.Store
	node     *node
	leaving  string // why its bricks are to go
	closed   bool   // it takes no new bricks
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
			n.stores = append(n.stores, &store{
				Store: s, node: n, leaving: n.whyLeaving(&s), closed: closed.Store(n.ResolvedNode, s.Device, s.Name),
			})
		}
	}
}

// whyLeaving says why a store is to be emptied; nothing when it stays.
func (n *node) whyLeaving(s *glusterd.Store) string {
	if n.leaving != "" {
		return n.leaving
	}
	if s.Device != "" {
		return n.undeclared(s.Device, "")
	}
	return n.undeclared("", s.Name)
}

// undeclared says that a device or a directory was taken from the node; nothing when it was not.
func (n *node) undeclared(device, directory string) string {
	switch {
	case n.Node == nil:
	case device != "" && !slices.ContainsFunc(n.Devices, func(r engine.ResolvedDevice) bool { return r.ID == device }):
		return fmt.Sprintf("device %s was removed from StorageNode %s", device, n.name)
	case directory != "" && !slices.Contains(n.Node.Spec.Directories, directory):
		return fmt.Sprintf("directory %s was taken from StorageNode %s", directory, n.name)
	}
	return ""
}

// wantedDevices are the declared ones, and those that were and still have bricks. One that is not on the host is left out while it
// is away: an agent cannot bring a glusterd up that asks for it, and all other bricks of the node would be down with it.
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
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		if ids[id] && !n.misses(id) {
			devices = append(devices, api.DaemonDevice{Name: glusterd.StoreName(id), ID: id})
		}
	}
	return devices
}

// misses says whether the node's host says that a device is not there.
func (n *node) misses(id string) bool {
	return n.Host != nil && n.Host.AgentHeard() && len(n.Host.Status.Devices) > 0 &&
		!slices.ContainsFunc(n.Host.Status.Devices, func(d api.Device) bool { return d.ID == id })
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

// comingPlace names a place for bricks that is declared and not there yet; nothing when there is none to wait for. A device becomes a
// store after it was accepted.
func (p *planner) comingPlace() string {
	for _, n := range p.nodes {
		if p.onItsWay(n) {
			return "node " + n.name
		}
		if n.Node == nil || n.leaving != "" || len(n.Problems)+len(n.problems) > 0 {
			continue
		}
		for _, r := range n.Devices {
			if r.ID != "" && r.Problem == "" && r.Device != nil && !n.hasStore(glusterd.StoreName(r.ID)) {
				return fmt.Sprintf("device %s of node %s", r.ID, n.name)
			}
		}
		for _, dir := range n.Node.Spec.Directories {
			if !n.hasStore(dir) {
				return fmt.Sprintf("directory %s of node %s", dir, n.name)
			}
		}
	}
	return ""
}

func (n *node) hasStore(name string) bool {
	return slices.ContainsFunc(n.stores, func(s *store) bool { return s.Name == name })
}
