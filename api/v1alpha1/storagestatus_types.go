package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageStatus is the state of the storage system that the StorageCluster of its name declares.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,path=storagestatuses,singular=storagestatus,shortName=sst,categories=holdfast
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.status.type`
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.status`
// +kubebuilder:printcolumn:name="Health",type=string,JSONPath=`.status.health`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Down",type=integer,JSONPath=`.status.nodesDown`
// +kubebuilder:printcolumn:name="Silent",type=integer,JSONPath=`.status.agentsDown`
// +kubebuilder:printcolumn:name="Stale",type=date,JSONPath=`.status.staleSince`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageStatus struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Status StorageStatusStatus `json:"status,omitempty"`
}

// StorageState says whether storage can be used.
// +kubebuilder:validation:Enum=OFFLINE;DEGRADED;ONLINE
type StorageState string

// The states of a storage system.
const (
	// StorageOffline: not enough is there to serve data, or the storage system cannot be asked.
	StorageOffline StorageState = "OFFLINE"
	// StorageDegraded: data is served, and something that is wanted is missing.
	StorageDegraded StorageState = "DEGRADED"
	// StorageOnline: everything is there, by the storage system's own word.
	StorageOnline StorageState = "ONLINE"
)

// StorageStatusStatus is the state of a storage system.
type StorageStatusStatus struct {
	Type   StorageType  `json:"type,omitempty"`
	Status StorageState `json:"status,omitempty"`
	// Health is the storage system's own word, such as HEALTH_OK.
	Health string `json:"health,omitempty"`
	// StaleSince is set while the storage system does not answer: health, capacity, storageNodes and the part of the system's
	// own are what it said last, before this time.
	StaleSince *metav1.Time `json:"staleSince,omitempty"`
	// Message says in a sentence why the status is not ONLINE.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Reasons lists everything that keeps the status from ONLINE.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Reasons []string `json:"reasons,omitempty"`
	// Checks are the storage system's own health checks that are not muted there, each with the next step to take.
	// +listType=map
	// +listMapKey=code
	// +kubebuilder:validation:MaxItems=64
	Checks []HealthCheck `json:"checks,omitempty"`
	// ChangedOutside lists what a user or a program changed in the storage system itself, as far as there is room.
	// +listType=map
	// +listMapKey=object
	// +kubebuilder:validation:MaxItems=64
	ChangedOutside []OutsideChange `json:"changedOutside,omitempty"`
	// Nodes is the number of storageNodes.
	Nodes int32 `json:"nodes,omitempty"`
	// NodesDown is the number of storageNodes none of whose daemons run, by their own agents' reports.
	NodesDown int32 `json:"nodesDown,omitempty"`
	// AgentsDown is the number of hosts of the cluster whose agent is disconnected. Their storage may serve.
	AgentsDown int32 `json:"agentsDown,omitempty"`
	// Daemons counts the cluster's daemons by type and version.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Daemons []DaemonCount `json:"daemons,omitempty"`
	// StorageNodes are the names of the nodes that are set up.
	// +listType=set
	// +kubebuilder:validation:MaxItems=1024
	StorageNodes []string `json:"storageNodes,omitempty"`
	// Capacity is the raw space of the storage system.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Figures are what it holds, as of their last change by more than 1 % of the capacity.
	Figures   *StorageFigures  `json:"figures,omitempty"`
	Ceph      *CephStatus      `json:"ceph,omitempty"`
	GlusterFS *GlusterFSStatus `json:"glusterfs,omitempty"`
	Torus     *TorusStatus     `json:"torus,omitempty"`
}

// StorageFigures are what a storage system says at a time that it holds and does.
type StorageFigures struct {
	Time metav1.Time `json:"time"`
	// RawBytes, UsedBytes and AvailableBytes are of the devices, before copies are taken off.
	// UsedPercent is UsedBytes of RawBytes, in per cent.
	RawBytes       int64 `json:"rawBytes"`
	UsedBytes      int64 `json:"usedBytes"`
	AvailableBytes int64 `json:"availableBytes"`
	UsedPercent    int32 `json:"usedPercent"`
	// DataBytes is what clients stored, each copy counted once.
	DataBytes int64 `json:"dataBytes,omitempty"`
	Objects   int64 `json:"objects,omitempty"`
	// PlacementGroups counts Ceph's placement groups by state, in a StorageStatus without scrubs.
	// +listType=map
	// +listMapKey=state
	// +kubebuilder:validation:MaxItems=64
	PlacementGroups []PlacementGroupCount `json:"placementGroups,omitempty"`
	// ClientIO is that of this moment. A StorageStatus does not have it.
	ClientIO *ClientIO `json:"clientIO,omitempty"`
	// Recovery is set while copies of objects are missing or lie at the wrong place.
	Recovery *RecoveryFigures `json:"recovery,omitempty"`
}

// PlacementGroupCount counts the placement groups of one state, such as active+clean.
type PlacementGroupCount struct {
	State string `json:"state"`
	Count int32  `json:"count"`
}

// ClientIO is what clients do.
type ClientIO struct {
	ReadBytesPerSecond  int64 `json:"readBytesPerSecond"`
	WriteBytesPerSecond int64 `json:"writeBytesPerSecond"`
	ReadsPerSecond      int64 `json:"readsPerSecond"`
	WritesPerSecond     int64 `json:"writesPerSecond"`
}

// RecoveryFigures are what the storage system has yet to copy and move. Each copy counts.
type RecoveryFigures struct {
	// DegradedCopies are missing, of TotalCopies. UnfoundObjects have no copy that can be found.
	DegradedCopies   int64 `json:"degradedCopies"`
	MisplacedCopies  int64 `json:"misplacedCopies"`
	UnfoundObjects   int64 `json:"unfoundObjects,omitempty"`
	TotalCopies      int64 `json:"totalCopies"`
	BytesPerSecond   int64 `json:"bytesPerSecond"`
	ObjectsPerSecond int64 `json:"objectsPerSecond"`
	// SecondsLeft is an estimate by the present rate; it is not set while nothing is copied.
	SecondsLeft int64 `json:"secondsLeft,omitempty"`
}

// HealthCheck is one thing that the storage system itself finds wrong.
type HealthCheck struct {
	// +kubebuilder:validation:MaxLength=64
	Code string `json:"code"`
	// Severity is the storage system's own word, such as HEALTH_WARN.
	// +kubebuilder:validation:MaxLength=64
	Severity string `json:"severity,omitempty"`
	// Message is the storage system's own sentence.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Detail names what it concerns, as far as there is room.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Detail []string `json:"detail,omitempty"`
	// Next is the next step to take.
	// +kubebuilder:validation:MaxLength=1024
	Next string `json:"next,omitempty"`
}

// OutsideChange is one thing that was changed in the storage system itself.
type OutsideChange struct {
	// Object is such as osd.1 or flag/norebalance.
	// +kubebuilder:validation:MaxLength=256
	Object string `json:"object"`
	// Message says what was found, and what is put back or what a user has to decide.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Since is when it was found; it stays while the object is found changed in each orchestration.
	Since *metav1.Time `json:"since,omitempty"`
}

// DaemonCount counts the daemons of one type and version.
type DaemonCount struct {
	Type string `json:"type"`
	// Version is the release as the program reports it; empty while it is not known.
	Version string `json:"version,omitempty"`
	// Wanted is how many are wanted, Running how many run.
	Wanted  int32 `json:"wanted"`
	Running int32 `json:"running,omitempty"`
}

// CephStatus is what Ceph says of itself.
type CephStatus struct {
	FSID string `json:"fsid,omitempty"`
	// Version is Ceph's release, such as 16.2.15.
	Version string `json:"version,omitempty"`
	// Quorum are the names of the monitors in quorum.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	Quorum []string `json:"quorum,omitempty"`
	// ActiveMgr is the name of the active manager.
	ActiveMgr string `json:"activeMgr,omitempty"`
	// OSDs counts the OSDs that exist, OSDsUp and OSDsIn those that are up and in.
	OSDs   int32 `json:"osds,omitempty"`
	OSDsUp int32 `json:"osdsUp,omitempty"`
	OSDsIn int32 `json:"osdsIn,omitempty"`
	// PGs counts the placement groups, PGsClean those that are active+clean.
	PGs      int32 `json:"pgs,omitempty"`
	PGsClean int32 `json:"pgsClean,omitempty"`
	// Muted are the codes of Ceph's health checks that an administrator has muted ('ceph health mute'); they make no events.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Muted []string `json:"muted,omitempty"`
}

// StorageStatusList is a list of StorageStatuses.
// +kubebuilder:object:root=true
type StorageStatusList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageStatus `json:"items"`
}
