package instance

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// MachineVariable gives a machine an id by hand, for hosts that share a kernel.
const MachineVariable = "HOLDFAST_MACHINE"

// Machine is the id of this machine: of its board, as the firmware has it, or of its network
// adapters where the firmware has nothing of use. A disk carries none of that, as it does carry
// /etc/machine-id. It is empty where neither is known, as in a container.
func Machine() string {
	if name := os.Getenv(MachineVariable); name != "" {
		return digest([]string{name})
	}
	return machine("/sys")
}

// FormerMachine is the id that earlier versions gave this machine. It changes with each adapter.
func FormerMachine() string {
	if name := os.Getenv(MachineVariable); name != "" {
		return digest([]string{name})
	}
	return formerMachine("/sys")
}

func machine(sys string) string {
	if parts := slices.DeleteFunc(firmware(sys), isPlaceholder); len(parts) > 0 {
		return digest(parts)
	}
	return digest(permanentAddresses(sys))
}

func formerMachine(sys string) string {
	var macs []string
	for _, adapter := range adapters(sys) {
		macs = appendLine(macs, filepath.Join(adapter, "address"))
	}
	slices.Sort(macs)
	return digest(append(firmware(sys), macs...))
}

// firmware is what the firmware says of the board, as name=value.
func firmware(sys string) (parts []string) {
	for _, name := range []string{"product_uuid", "product_serial", "board_serial"} {
		parts = appendLine(parts, filepath.Join(sys, "class/dmi/id", name))
	}
	return parts
}

// adapters are the directories of the network adapters. Only what has a device is one: addresses of
// bridges and the like are made anew with each boot.
func adapters(sys string) []string {
	found, _ := filepath.Glob(filepath.Join(sys, "class/net/*/device")) // the pattern is good
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found
}

// permanentAddresses are the MAC addresses that adapters were made with. The one of a virtual
// function is random. A member of a bond has that of the bond, and keeps its own elsewhere. One
// that software set, and the address of an InfiniBand port, differ from boot to boot.
func permanentAddresses(sys string) []string {
	var macs []string
	for _, adapter := range adapters(sys) {
		const ethernet, permanent = "1", "0" // ARPHRD_ETHER, NET_ADDR_PERM
		own := line(filepath.Join(adapter, "bonding_slave/perm_hwaddr"))
		_, err := os.Lstat(filepath.Join(adapter, "device/physfn"))
		switch {
		case err == nil || !says(filepath.Join(adapter, "type"), ethernet):
		case own != "":
			macs = append(macs, "address="+own)
		case says(filepath.Join(adapter, "addr_assign_type"), permanent):
			macs = appendLine(macs, filepath.Join(adapter, "address"))
		}
	}
	slices.Sort(macs)
	return slices.Compact(macs)
}

// says compares the line of a file. A file that is not there says what is wanted.
func says(path, want string) bool {
	is := line(path)
	return is == "" || is == want
}

func appendLine(parts []string, path string) []string {
	if text := line(path); text != "" {
		return append(parts, filepath.Base(path)+"="+text)
	}
	return parts
}

// line is the text of a file of one line; empty where it cannot be read.
func line(path string) string {
	text, _ := os.ReadFile(path) // what cannot be read is not known
	return strings.TrimSpace(string(text))
}

func digest(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:16])
}
