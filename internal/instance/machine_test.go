package instance

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

const (
	uuid, product, serial = "dmi/id/product_uuid", "dmi/id/product_serial", "dmi/id/board_serial"
	mac, is, bridge       = "net/eth0/address", "net/eth0/device/uevent", "net/br0/address"
)

// sysOf writes a /sys with files of some classes.
func sysOf(t *testing.T, files ...map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, some := range files {
		for name, text := range some {
			path := filepath.Join(dir, "class", name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// changes is what differs of a machine, and whether it is the same machine.
type changes map[string]struct {
	files map[string]string
	same  bool
}

func (c changes) check(t *testing.T, board map[string]string) {
	t.Helper()
	first := machine(sysOf(t, board))
	if first == "" {
		t.Fatal("the machine has no id")
	}
	for name, tt := range c {
		all := maps.Clone(board)
		maps.Copy(all, tt.files)
		if got := machine(sysOf(t, all)); got == "" || (got == first) != tt.same {
			t.Errorf("%s: %s and %s, want the same: %v", name, first, got, tt.same)
		}
	}
}

// TestMachine: another board is another machine. What moves with a disk, what a boot makes anew,
// and adapters that come and go change nothing.
func TestMachine(t *testing.T) {
	board := map[string]string{uuid: "u1", serial: "s1", product: "Default string", mac: "m1", is: "", bridge: "b1"}
	changes{
		"a boot":             {map[string]string{bridge: "b2"}, true},
		"another board":      {map[string]string{serial: "s2"}, false},
		"another machine":    {map[string]string{uuid: "u2"}, false},
		"another adapter":    {map[string]string{mac: "m2"}, true},
		"one more adapter":   {map[string]string{"net/usb0/address": "m2", "net/usb0/device/uevent": ""}, true},
		"a virtual function": {map[string]string{"net/v0/address": "r1", "net/v0/device/physfn": ""}, true},
		"a bond":             {map[string]string{mac: "b1", "net/eth0/bonding_slave/perm_hwaddr": "m1"}, true},
		"a new placeholder":  {map[string]string{product: "To Be Filled By O.E.M."}, true},
	}.check(t, board)
	if got := machine(sysOf(t, map[string]string{bridge: "b1"})); got != "" {
		t.Errorf("a container is taken for the machine %s", got)
	}
	t.Setenv(MachineVariable, "one")
	if got := Machine(); got != digest([]string{"one"}) || got != FormerMachine() {
		t.Errorf("the id given by hand is %s, and was %s", got, FormerMachine())
	}
}

// TestMachine_adapters: where the firmware tells nothing, the addresses that adapters were made
// with do.
func TestMachine_adapters(t *testing.T) {
	board := map[string]string{
		uuid: "00000000-0000-0000-0000-000000000000", product: "Default string", serial: "..............",
		mac: "m1", is: "", "net/eth0/type": "1", "net/eth0/addr_assign_type": "0", "net/eth1/address": "m2", "net/eth1/device/uevent": "",
	}
	changes{
		"a boot":             {map[string]string{bridge: "b2"}, true},
		"another adapter":    {map[string]string{mac: "m3"}, false},
		"a virtual function": {map[string]string{"net/v0/address": "r1", "net/v0/device/physfn": ""}, true},
		"a random address":   {map[string]string{"net/v0/address": "r1", "net/v0/device/uevent": "", "net/v0/addr_assign_type": "1"}, true},
		"an InfiniBand port": {map[string]string{"net/ib0/address": "q1", "net/ib0/device/uevent": "", "net/ib0/type": "32"}, true},
		"a bond": {map[string]string{
			mac: "b1", "net/eth0/addr_assign_type": "3", "net/eth0/bonding_slave/perm_hwaddr": "m1",
			"net/eth1/address": "b1", "net/eth1/addr_assign_type": "3", "net/eth1/bonding_slave/perm_hwaddr": "m2",
		}, true},
		"a port with the address of another": {map[string]string{"net/lan1/address": "m1", "net/lan1/device/uevent": ""}, true},
	}.check(t, board)
}

func TestIsPlaceholder(t *testing.T) {
	for value, want := range map[string]bool{
		"": true, "0": true, "None": true, "N/A": true, "To be filled by O.E.M.": true, "Default string": true, "System Serial Number": true,
		"Not Specified": true, "xxxxxxxx": true, "0123456789": true, "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF": true,
		"03000200-0400-0500-0006-000700080009": true, "00000000-0000-0000-0000-ac1f6b123456": false, "VM-1": false, "CZJ0420B8L": false,
		"4c4c4544-0042-3510-8054-b4c04f4c4e32": false,
	} {
		if got := isPlaceholder("board_serial=" + value); got != want {
			t.Errorf("%q is a placeholder: %v, want %v", value, got, want)
		}
	}
}

// TestFormerMachine: the id is the one that earlier versions wrote on disks.
func TestFormerMachine(t *testing.T) {
	sys := sysOf(t, map[string]string{uuid: "u1", serial: "s1", product: "Default string", mac: "m1", is: "", bridge: "b1"})
	const written = "bda3e428020b77eff5270ce2b4536811"
	if got := formerMachine(sys); got != written {
		t.Errorf("%s, and earlier versions wrote %s", got, written)
	}
	note := &Note{Machine: written}
	if note.Moved(machine(sys), formerMachine(sys)) || !note.Moved(machine(sys)) {
		t.Error("the machine of an earlier note is taken for another one")
	}
}
