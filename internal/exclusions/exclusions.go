// Package exclusions says which devices spec.exclude and spec.replace of a StorageNode mean. The engine
// leaves those devices out of spec.devices, and a driver asks which of them are replaced. It is pure.
package exclusions

import (
	"cmp"
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/devicename"
)

// Set is what the two lists of a StorageNode come to.
type Set struct {
	// Records are what the node's status has of the entries: the identity of each device that is among
	// spec.devices and leaves. A disk that is gone from its host is known by its record alone.
	Records []api.ClaimedDevice
	// Unmatched says of each entry that means no device, or several, what to do.
	Unmatched []string

	entries map[string]string // what leaves: each entry of spec.devices with its device
	leaves  map[string]bool   // by the identity of each device that an entry means: whether it is replaced
}

// Of finds out what the lists mean on the node's host. Without a host, its records have to do.
func Of(n *api.StorageNode, h *api.Host) Set {
	if len(n.Spec.Exclude)+len(n.Spec.Replace) == 0 {
		return Set{}
	}
	s := Set{entries: map[string]string{}, leaves: map[string]bool{}}
	meant := map[string]string{}
	s.resolve(n, h, "spec.exclude", n.Spec.Exclude, meant)
	s.resolve(n, h, "spec.replace", n.Spec.Replace, meant)
	s.record(n, h, meant)
	return s
}

// resolve finds the devices of one list. A device in both lists leaves for good: exclude is what a
// person says who changed their mind.
func (s *Set) resolve(n *api.StorageNode, h *api.Host, field string, list []string, meant map[string]string) {
	for _, entry := range list {
		id, why := identity(n, h, entry)
		if why != "" {
			s.Unmatched = append(s.Unmatched, fmt.Sprintf("%s: %s", field, why))
		}
		if id == "" {
			continue
		}
		meant[entry] = id
		if _, known := s.leaves[id]; !known {
			s.leaves[id] = field == "spec.replace"
		}
	}
}

// record notes which entries of spec.devices leave, and keeps the identities.
func (s *Set) record(n *api.StorageNode, h *api.Host, meant map[string]string) {
	named := map[string]bool{}
	for _, entry := range n.Spec.Devices {
		id := cmp.Or(meant[entry], recorded(n, entry))
		if id == "" {
			id, _ = identity(n, h, entry)
		}
		if _, leaves := s.leaves[id]; leaves {
			s.entries[entry], named[id] = id, true
			s.Records = append(s.Records, api.ClaimedDevice{Name: entry, ID: id})
		}
	}
	for _, entry := range slices.Concat(n.Spec.Exclude, n.Spec.Replace) {
		r := api.ClaimedDevice{Name: entry, ID: meant[entry]}
		if named[r.ID] && s.entries[entry] == "" && !slices.Contains(s.Records, r) {
			s.Records = append(s.Records, r)
		}
	}
}

// identity is the identity of the device that an entry means, or why there is none.
func identity(n *api.StorageNode, h *api.Host, entry string) (id, why string) {
	if id := recorded(n, entry); id != "" {
		return id, ""
	}
	if h == nil || h.Status.BootID == "" && len(h.Status.Devices) == 0 {
		return "", "" // its devices are not known yet
	}
	switch found := devicename.Match(h.Status.Devices, entry); len(found) {
	case 0:
		return "", fmt.Sprintf("no device of host %s matches %s; list its devices with 'holdfast get host %s -o yaml', or "+
			"remove the entry", h.Name, entry, h.Name)
	case 1:
		return found[0].ID, ""
	default:
		return "", fmt.Sprintf("%s matches %d devices of host %s: name one of them by its id", entry, len(found), h.Name)
	}
}

// recorded is the identity that the node's status has of an entry, or that the entry is.
func recorded(n *api.StorageNode, entry string) string {
	for _, d := range n.Status.Devices {
		if d.Name == entry {
			return d.ID
		}
	}
	if slices.ContainsFunc(n.Status.Devices, func(d api.ClaimedDevice) bool { return d.ID == entry }) {
		return entry
	}
	return ""
}

// Leaves says whether an entry of spec.devices counts as if it were not there.
func (s Set) Leaves(entry string) bool { return s.entries[entry] != "" }

// Has says whether an entry means a device.
func (s Set) Has(id string) bool {
	_, is := s.leaves[id]
	return is
}

// Excluded says whether a device leaves for good.
func (s Set) Excluded(id string) bool { return s.Has(id) && !s.leaves[id] }

// Replaced says whether another device takes the place of one.
func (s Set) Replaced(id string) bool { return s.leaves[id] }

// Replacing are the devices among those of spec.devices that others take the place of.
func (s Set) Replacing() (ids []string) {
	for _, r := range s.Records {
		if s.leaves[r.ID] && !slices.Contains(ids, r.ID) {
			ids = append(ids, r.ID)
		}
	}
	return ids
}
