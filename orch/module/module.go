// Package module holds the Python module by which ceph-mgr reaches Holdfast. It runs nothing: the
// agent of a mgr's host writes the files where that mgr looks for modules.
package module

import (
	"embed"
	"io/fs"
)

// Name is what Ceph calls the module, and the back end of 'ceph orch'.
const Name = "holdfast"

// Dir is the directory of modules in the data directory of a mgr.
const Dir = "modules"

// PeerFile is a Peer as JSON in the module's directory. The agent writes it.
const PeerFile = Name + "/peer.json"

// Peer says to the module how it reaches Holdfast.
type Peer struct {
	// Socket is the path of the agent's Unix socket.
	Socket string `json:"socket"`
}

//go:embed holdfast/*.py bcrypt.py
var files embed.FS

// Files are the files of the directory of modules beside Ceph's own.
func Files() fs.FS { return files }
