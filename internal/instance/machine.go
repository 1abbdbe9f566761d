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

// Machine is the id of this machine: of its board, as the firmware has it, and of its network adapters. A disk carries none of that, as it does
// carry /etc/machine-id. It is empty where neither is known, as in a container.
func Machine() string {
	if name := os.Getenv(MachineVariable); name != "" {
		return digest([]string{name})
	}
	return machine("/sys")
}

func machine(sys string) string {
	var parts []string
	for _, name := range []string{"product_uuid", "product_serial", "board_serial"} {
		parts = appendLine(parts, filepath.Join(sys, "class/dmi/id", name))
	}
	// Only what has a device is an adapter: addresses of bridges and the like are made anew with each boot.
	adapters, _ := filepath.Glob(filepath.Join(sys, "class/net/*/device")) // the pattern is good
	var macs []string
	for _, device := range adapters {
		macs = appendLine(macs, filepath.Join(filepath.Dir(device), "address"))
	}
	slices.Sort(macs)
	return digest(append(parts, macs...))
}

func appendLine(parts []string, path string) []string {
	text, err := os.ReadFile(path)
	line := strings.TrimSpace(string(text))
	if err != nil || line == "" {
		return parts
	}
	return append(parts, filepath.Base(path)+"="+line)
}

func digest(parts []string) string {
	if len(parts) == 0 {
		return ""
	}
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:16])
}
