package drives

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// leave are the names of the disks that a group does not keep.
func leave(g *api.DriveGroup) []string { return slices.Concat(g.Spec.Exclude, g.Spec.Replace) }

// excluded says whether spec.exclude of a group names a disk, or the one that holds the database or the log
// of its OSD. Of one that is not there now its recorded names have to do.
func excluded(g *api.DriveGroup, at Place, d *api.Device) bool {
	if d != nil {
		return Named(d, leave(g))
	}
	entries := leave(g)
	return len(entries) > 0 && slices.ContainsFunc(g.Status.Devices, func(x api.GroupDevice) bool {
		return x.Host == at.Host && x.ID == at.ID && recordedIn(&x, entries)
	})
}

// recordedIn says whether entries name what a group has recorded of a device.
func recordedIn(x *api.GroupDevice, entries []string) bool {
	named := func(id, serial string) bool {
		wwn, has := strings.CutPrefix(id, "wwn-")
		return slices.ContainsFunc(entries, func(e string) bool {
			return e == id || e == serial && serial != "" || has && strings.TrimPrefix(e, "0x") == strings.TrimPrefix(wwn, "0x")
		})
	}
	return named(x.ID, x.Serial) || slices.ContainsFunc(Parts, func(p Part) bool {
		s := Slot(x, p)
		return s != nil && named(s.ID, s.Serial)
	})
}

// Replaces says whether spec.replace of a group names a device of a host, which may be gone.
func Replaces(g *api.DriveGroup, h *api.Host, id string) bool {
	if slices.Contains(g.Spec.Replace, id) {
		return true
	}
	if h == nil {
		return false
	}
	d := inventoried(h, id)
	return d != nil && Named(d, g.Spec.Replace) || slices.ContainsFunc(g.Status.Devices, func(x api.GroupDevice) bool {
		return x.Host == h.Name && x.ID == id && recordedIn(&x, g.Spec.Replace)
	})
}

// listed is the field that lists a disk which a group does not keep.
func listed(g *api.DriveGroup, d *api.Device) string {
	if Named(d, g.Spec.Exclude) {
		return "spec.exclude"
	}
	return "spec.replace"
}

// unmatched says which entries mean no disk of the hosts that a group selects. Partitions are left out:
// they may be gone, or not be made yet.
func unmatched(g *api.DriveGroup, hosts []api.Host) (all []string) {
	for _, list := range []struct {
		field   string
		entries []string
	}{{"spec.exclude", g.Spec.Exclude}, {"spec.replace", g.Spec.Replace}} {
		for _, entry := range list.entries {
			if !strings.HasPrefix(entry, "partuuid-") && !means(g, hosts, entry) {
				all = append(all, fmt.Sprintf("%s: no disk of the hosts of the group matches %s; see them with "+
					"'holdfast get hosts -o yaml', or remove the entry", list.field, entry))
			}
		}
	}
	return all
}

// means says whether an entry names a disk of a host that a group selects, or one that it has.
func means(g *api.DriveGroup, hosts []api.Host, entry string) bool {
	names := []string{entry}
	named := func(d api.Device) bool { return Named(&d, names) }
	return slices.ContainsFunc(hosts, func(h api.Host) bool {
		return g.Spec.Placement.Selects(&h) && slices.ContainsFunc(h.Status.Devices, named)
	}) || slices.ContainsFunc(g.Status.Devices, func(x api.GroupDevice) bool { return recordedIn(&x, names) })
}
