package leaving

import (
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives"
)

// Replaced says whether spec.replace of a StorageNode or DriveGroup names what an OSD lies on, so that
// Ceph keeps its number. was is that it did so before: a disk that was pulled is not to be found by its
// serial number any more.
func (x Set) Replaced(d *api.Daemon, was bool) bool {
	host := d.Spec.Host
	var ids []string
	for _, part := range d.Spec.Devices {
		ids = append(ids, part.ID)
		if part.Of != "" {
			ids = append(ids, part.Of)
		}
	}
	named := slices.ContainsFunc(ids, func(id string) bool {
		return slices.ContainsFunc(x.nodes[host], func(r replacer) bool {
			return r.out.Replaced(id) || !r.out.Has(id) && slices.Contains(r.node.Spec.Replace, id)
		}) || slices.ContainsFunc(x.groups, func(g *api.DriveGroup) bool { return drives.Replaces(g, x.hosts[host], id) })
	})
	return named || was && x.unknown(host)
}

// unknown says whether an entry that may mean a disk of a host means none that is there.
func (x Set) unknown(host string) bool {
	return slices.ContainsFunc(x.nodes[host], func(r replacer) bool { return len(r.out.Unmatched) > 0 }) ||
		slices.ContainsFunc(x.groups, func(g *api.DriveGroup) bool { return x.covers(g, host) && x.pulled(g) })
}

// Awaited says whether a disk is to come to a host that takes the number of one in spec.replace. An
// entry that means no disk that is there may have meant one of this host.
func (x Set) Awaited(host string) bool {
	return len(x.nodes[host]) > 0 || slices.ContainsFunc(x.groups, func(g *api.DriveGroup) bool {
		h := x.hosts[host]
		return x.covers(g, host) && (x.pulled(g) || slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool {
			return drives.Replaces(g, h, d.ID)
		}))
	})
}

func (x Set) covers(g *api.DriveGroup, host string) bool {
	h := x.hosts[host]
	return h != nil && g.Spec.Placement.Selects(h)
}

// pulled says whether an entry of a group's spec.replace means no disk of any of its hosts.
func (x Set) pulled(g *api.DriveGroup) bool {
	return slices.ContainsFunc(g.Spec.Replace, func(entry string) bool {
		for _, h := range x.hosts {
			if slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool { return drives.Named(&d, []string{entry}) }) {
				return false
			}
		}
		return true
	})
}
