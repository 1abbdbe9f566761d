package runtime

import "context"

// Owner is the daemon that a process belongs to.
type Owner struct {
	// Namespace and Name are the Daemon's.
	Namespace, Name string
	// UID tells the Daemon from another one of its name; empty where there is no Daemon.
	UID string `json:",omitempty"`
	// Node is set for a process of the node itself, and of no daemon: UID is that of the Node then.
	Node bool `json:",omitempty"`
	// Type and ID are the type of the daemon and its name within the type, Cluster the storage
	// cluster that it is of.
	Type, ID, Cluster string
}

// Needs is what a process needs of its host beyond its own directories. A runtime that does not
// confine its processes has no use for it: its processes may do everything.
type Needs struct {
	// Privileged is set for a process that may do whatever root may do on the host.
	Privileged bool `json:",omitempty"`
	// Capabilities are those of capabilities(7) that it needs, such as CAP_NET_BIND_SERVICE.
	// Privileged has all.
	Capabilities []string `json:",omitempty"`
	// Devices is set for a process that opens block devices of the host, those among them that come
	// while it runs.
	Devices bool `json:",omitempty"`
	// Directories are those of the host that it needs.
	Directories []Directory `json:",omitempty"`
}

// Directory is one directory of the host, which a process has at the same place.
type Directory struct {
	Path string
	// Make is set for one that is made when it is missing.
	Make     bool `json:",omitempty"`
	ReadOnly bool `json:",omitempty"`
	// Mounts says which mounts below it are seen on the other side.
	Mounts Mounts `json:",omitempty"`
}

// Mounts is a way in which mounts are passed on.
type Mounts string

// The ways of mounts. Without one, the process sees what was mounted when it was started.
const (
	// MountsFromHost has the process see what the host mounts and unmounts while it runs.
	MountsFromHost Mounts = "FromHost"
	// MountsBoth has the host see what the process mounts as well.
	MountsBoth Mounts = "Both"
)

// Capabilities is what a runtime can do that not every one can.
type Capabilities struct {
	// KeepsChildren is set when Process.KeepChildren is kept.
	KeepsChildren bool
	// Once is set when Process.Once is kept.
	Once bool
}

// Announcer is a Runtime that lets others see whether a process does its part.
type Announcer interface {
	// Announce has them see it. What was announced holds for the process that runs now; of the next
	// one it says nothing.
	Announce(ctx context.Context, name string, serves bool) error
}
