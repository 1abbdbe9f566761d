package exclusions

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func host() *api.Host {
	h := &api.Host{}
	h.Name, h.Status.BootID = "h1", "boot"
	h.Status.Devices = []api.Device{
		{ID: "wwn-1", Path: "/dev/sda", Serial: "S1", WWN: "0x1"},
		{ID: "wwn-2", Path: "/dev/sdb", Serial: "S2", WWN: "0x2", Links: []string{"/dev/disk/by-id/two"}},
		{ID: "wwn-2-part1", Path: "/dev/sdb1", Serial: "S2", WWN: "0x2", Parent: "wwn-2"},
		{ID: "wwn-3", Path: "/dev/sdc", Serial: "S9"},
		{ID: "wwn-4", Path: "/dev/sdd", Serial: "S9"},
	}
	return h
}

// TestOf has each way to name a device, known by its record or by the host's inventory.
func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name              string
		devices           []string
		recorded          []api.ClaimedDevice
		exclude, replace  []string
		gone              bool
		leaves, replacing []string
		unmatched         int
	}{
		{name: "none", devices: []string{"wwn-1"}},
		{name: "id", devices: []string{"wwn-1", "S2"}, exclude: []string{"wwn-2"}, leaves: []string{"S2"}},
		{
			name: "a disk, not its partition", devices: []string{"wwn-2", "wwn-2-part1"},
			exclude: []string{"S2"}, leaves: []string{"wwn-2"},
		},
		{
			name: "link", devices: []string{"0x2"}, replace: []string{"disk/by-id/two", "/dev/disk/by-id/two"},
			leaves:    []string{"0x2"},
			replacing: []string{"wwn-2"}, unmatched: 1,
		},
		{
			name: "both lists", devices: []string{"wwn-1"}, exclude: []string{"S1"}, replace: []string{"wwn-1"},
			leaves: []string{"wwn-1"},
		},
		{name: "two disks", devices: []string{"wwn-3"}, exclude: []string{"S9"}, unmatched: 1},
		{name: "not among the devices", devices: []string{"wwn-1"}, exclude: []string{"wwn-2"}},
		{
			name: "a kernel name that means another disk now", devices: []string{"/dev/sdb"},
			recorded: []api.ClaimedDevice{{Name: "/dev/sdb", ID: "wwn-9"}},
			exclude:  []string{"wwn-2"},
		},
		{
			name: "the entry as devices has it", devices: []string{"/dev/sdb"},
			recorded: []api.ClaimedDevice{{Name: "/dev/sdb", ID: "wwn-9"}},
			exclude:  []string{"/dev/sdb"}, leaves: []string{"/dev/sdb"},
		},
		{
			name: "pulled", devices: []string{"wwn-9"},
			recorded: []api.ClaimedDevice{{Name: "wwn-9", ID: "wwn-9"}, {Name: "S-nine", ID: "wwn-9"}},
			replace:  []string{"S-nine"}, leaves: []string{"wwn-9"}, replacing: []string{"wwn-9"},
		},
		{name: "host unknown", devices: []string{"wwn-1"}, exclude: []string{"S1"}, gone: true},
		{
			name: "host unknown, recorded", devices: []string{"S1"},
			recorded: []api.ClaimedDevice{{Name: "S1", ID: "wwn-1"}}, exclude: []string{"wwn-1"},
			gone: true, leaves: []string{"S1"},
		},
	} {
		n, h := &api.StorageNode{}, host()
		n.Spec.Devices, n.Spec.Exclude, n.Spec.Replace, n.Status.Devices = tt.devices, tt.exclude, tt.replace, tt.recorded
		if tt.gone {
			h = nil
		}
		s := Of(n, h)
		var leaves []string
		for _, entry := range tt.devices {
			if s.Leaves(entry) {
				leaves = append(leaves, entry)
			}
		}
		if !cmp.Equal(leaves, tt.leaves) || !cmp.Equal(s.Replacing(), tt.replacing) || len(s.Unmatched) != tt.unmatched {
			t.Errorf("%s: %v leave, %v are replaced, %v", tt.name, leaves, s.Replacing(), s.Unmatched)
		}
		// What was recorded says the same without the host.
		n.Status.Devices = append(s.Records, api.ClaimedDevice{Name: "other", ID: "other"})
		if again := Of(n, nil); !cmp.Equal(again.Records, s.Records) {
			t.Errorf("%s: records %v, and then %v", tt.name, s.Records, again.Records)
		}
	}
}
