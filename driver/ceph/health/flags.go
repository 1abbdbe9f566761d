package health

import (
	"slices"
	"strings"
)

// flags are those that people set for the whole cluster, as Ceph prints them, in its order.
var flags = []string{
	"full", "pauserd", "pausewr", "noup", "nodown", "noout", "noin", "nobackfill", "norebalance", "norecover", "noscrub",
	"nodeep-scrub", "nosnaptrim", "notieragent",
}

// Unset is the command that unsets a flag that Ceph prints so. Ceph sets and unsets pauserd and pausewr together, by
// the name pause, and refuses their own names (OSDMonitor, "osd unset").
func Unset(flag string) string {
	if flag == "pauserd" || flag == "pausewr" {
		flag = "pause"
	}
	return "holdfast ceph osd unset " + flag
}

// UnsetAll is the next step where flags are set; empty where people set none of them.
func UnsetAll(set []string) string {
	var commands []string
	for _, flag := range flags {
		if command := "'" + Unset(flag) + "'"; slices.Contains(set, flag) && !slices.Contains(commands, command) {
			commands = append(commands, command)
		}
	}
	if len(commands) == 0 {
		return ""
	}
	return "when the reason is over, run " + strings.Join(commands, " and ")
}
