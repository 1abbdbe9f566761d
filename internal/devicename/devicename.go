// Package devicename finds out which device of an inventory a person means.
package devicename

import (
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// matchers are the ways in which an entry can name a device. The first that finds any decides, so
// that an ID never loses to another device's serial number that happens to read the same.
var matchers = []func(d *api.Device, entry string) bool{
	func(d *api.Device, entry string) bool { return d.ID == entry },
	func(d *api.Device, entry string) bool { return d.Path != "" && d.Path == entry },
	func(d *api.Device, entry string) bool {
		return slices.ContainsFunc(d.Links, func(l string) bool { return diskLink(l) == diskLink(entry) })
	},
	func(d *api.Device, entry string) bool { return d.WWN != "" && plainWWN(d.WWN) == plainWWN(entry) },
	func(d *api.Device, entry string) bool { return d.Serial != "" && d.Serial == entry },
}

// Match returns the devices that an entry means: by id, path, link, WWN or serial number. A
// partition has its disk's WWN and serial number too; then the disk is meant.
func Match(devices []api.Device, entry string) []*api.Device {
	for _, matches := range matchers {
		var found, whole []*api.Device
		for i := range devices {
			if !matches(&devices[i], entry) {
				continue
			}
			found = append(found, &devices[i])
			if devices[i].Parent == "" {
				whole = append(whole, &devices[i])
			}
		}
		if len(whole) > 0 {
			return whole
		}
		if len(found) > 0 {
			return found
		}
	}
	return nil
}

func diskLink(s string) string { return strings.TrimPrefix(s, "/dev/disk/") }

func plainWWN(s string) string {
	return strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(s), "wwn-"), "0x")
}

// IDs are those of devices, in one text.
func IDs(devices []*api.Device) string {
	ids := make([]string, len(devices))
	for i, d := range devices {
		ids[i] = d.ID
	}
	return strings.Join(ids, ", ")
}
