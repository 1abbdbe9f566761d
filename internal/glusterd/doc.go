// Package glusterd holds what the driver for GlusterFS and the agents that run glusterd must agree on: the report that an agent
// makes of its glusterd, the commands that it carries out, and the names in a Daemon. It reads what the program gluster prints
// (--xml); it runs nothing itself.
package glusterd

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Type is the type of the Daemon, as in Daemon.spec.type.
const Type = "glusterd"

// The files and parameters of a Daemon that both sides know by name.
const (
	// FileVolfile is glusterd's own configuration.
	FileVolfile = "glusterd.vol"
	// ParamAddress is the address by which the other nodes know this one.
	ParamAddress = "address"
	// ParamReport is how much the agent reports: DepthPeer or DepthPool.
	ParamReport = "report"
	// ParamAfter is a moment that the next report has to come after. It is of no other use to the agent: a report names the generation of
	// the Daemon that it was made for.
	ParamAfter = "after"
	// ParamDrop is an option that is to be taken out of the stored volumes before glusterd starts the next time.
	ParamDrop = "drop"
	// ParamDirectories are the directories of the host that bricks may be put in, joined by newlines.
	ParamDirectories = "directories"
)

// The depths of a report.
const (
	// DepthPeer: the node itself, its peers and its stores. It takes no lock and asks no other node.
	DepthPeer = "peer"
	// DepthPool: that, and all volumes with their bricks, heals and tasks. One node of a pool is enough for that.
	DepthPool = "pool"
)

// StoreName is the name of the store that an agent makes on a device: the device's identity, as a file name. It is the name of
// the device in Daemon.spec.devices as well.
func StoreName(device string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '-'
	}, device)
	if name == device && len(name) <= maxStoreName && !strings.HasPrefix(name, ".") {
		return name
	}
	sum := sha256.Sum256([]byte(device))
	return strings.TrimLeft(name[:min(len(name), maxStoreName-9)], ".") + "-" + hex.EncodeToString(sum[:4])
}

// maxStoreName keeps the path of a brick readable.
const maxStoreName = 48
