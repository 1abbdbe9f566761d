package v1alpha1

// GlusterFSSpec is the part of a StorageCluster that only GlusterFS has.
type GlusterFSSpec struct {
	// Options are the options that each volume of the cluster gets, as 'gluster volume set' takes them. A Volume's own come first.
	// +optional
	Options VolumeOptions `json:"options,omitempty"`
	// Zones says what counts for new bricks: Preferred spreads the bricks of a set over zones as far as there are zones, and warns
	// where the loss of one zone would take the data away; Strict refuses that.
	// +optional
	// +kubebuilder:default=Preferred
	Zones GlusterFSZones `json:"zones,omitempty"`
}

// GlusterFSZones says whether a set may have more bricks in one zone than it can do without.
// +kubebuilder:validation:Enum=Preferred;Strict
type GlusterFSZones string

// What can be said of zones.
const (
	ZonesPreferred GlusterFSZones = "Preferred"
	ZonesStrict    GlusterFSZones = "Strict"
)

// GlusterFSStatus is what GlusterFS says of itself.
type GlusterFSStatus struct {
	// Version is the lowest release that a node runs, such as 10.3, and OpVersion the operating version of the pool.
	// +optional
	Version string `json:"version,omitempty"`
	// +optional
	OpVersion int32 `json:"opVersion,omitempty"`
	// Peers counts the nodes in the trusted pool, PeersConnected those of them that the pool can reach.
	// +optional
	Peers int32 `json:"peers,omitempty"`
	// +optional
	PeersConnected int32 `json:"peersConnected,omitempty"`
	// Volumes counts the volumes that exist.
	// +optional
	Volumes int32 `json:"volumes,omitempty"`
	// Bricks counts the bricks of all volumes, BricksOnline those of them that serve.
	// +optional
	Bricks int32 `json:"bricks,omitempty"`
	// +optional
	BricksOnline int32 `json:"bricksOnline,omitempty"`
	// Heals counts the entries that are not the same on all copies yet, SplitBrains those of them that no heal can decide.
	// +optional
	Heals int64 `json:"heals,omitempty"`
	// +optional
	SplitBrains int64 `json:"splitBrains,omitempty"`
}
