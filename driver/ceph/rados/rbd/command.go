package rbd

// command is what a Pool asks of the child. Prefix names it, as it does in commands to the mons.
type command struct {
	Prefix string `json:"prefix"`
	// Pool is the pool's number in Ceph, which stays when a pool is renamed.
	Pool  int64  `json:"pool"`
	Image string `json:"image,omitempty"`
	Size  uint64 `json:"size,omitempty"`
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
}

// The prefixes of commands.
const (
	create         = "rbd create"
	size           = "rbd size"
	resize         = "rbd resize"
	remove         = "rbd remove"
	moveToTrash    = "rbd trash move"
	listTrash      = "rbd trash list"
	listContents   = "rbd contents"
	listWatchers   = "rbd watchers"
	listSnapshots  = "rbd snapshots"
	getMetadata    = "rbd metadata get"
	setMetadata    = "rbd metadata set"
	removeMetadata = "rbd metadata remove"
)

// Watcher is a client that has an image open for writing.
type Watcher struct {
	// Address is the client's, with its nonce, as 'osd blocklist add' takes it.
	Address string `json:"address"`
	// ID is the client's number.
	ID int64 `json:"id"`
	// Cookie tells apart what one client has open.
	Cookie uint64 `json:"cookie"`
}

// Snapshot is one of an image.
type Snapshot struct {
	ID   uint64 `json:"id"`
	Size uint64 `json:"size"`
	Name string `json:"name"`
}

// Trashed is an image in the trash of its pool.
type Trashed struct {
	// ID is what the trash knows the image by.
	ID string `json:"id"`
	// Name is the name that the image had.
	Name string `json:"name"`
}
