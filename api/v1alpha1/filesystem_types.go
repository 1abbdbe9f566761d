package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Filesystem declares a CephFS of a Ceph cluster: its pools, the metadata servers (MDS) that serve it, and its subvolume groups. The
// administrator writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=cfs,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Active",type=string,JSONPath=`.status.active`
// +kubebuilder:printcolumn:name="Standby",type=string,JSONPath=`.status.standby`
// +kubebuilder:printcolumn:name="Clients",type=integer,JSONPath=`.status.clients`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",message="the name of a Filesystem begins with a letter and may have at most 40 lower-case letters, digits and hyphens: the names of its MDS are made from it"
type Filesystem struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec FilesystemSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status FilesystemStatus `json:"status,omitempty"`
}

// FilesystemSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another Filesystem and copy the data"
type FilesystemSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the filesystem lies in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Pools says who decides on the pools. With Existing the file system is as Ceph has it, such as one of 'ceph fs volume
	// create': Holdfast makes neither it nor pools, changes no pool, and runs the MDSs. Leave metadataPool and dataPools
	// out then; deletionPolicy must be Retain.
	// +optional
	// +kubebuilder:default=Managed
	Pools FilesystemPools `json:"pools,omitempty"`
	// MetadataPool keeps names, directories and attributes. It is called NAME-metadata in Ceph, and is replicated.
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.erasureCoded)",message="the metadata pool has to be replicated: Ceph keeps no metadata in an erasure-coded one"
	MetadataPool FilesystemPool `json:"metadataPool,omitempty"`
	// DataPools keep what is in files. The first is where files go of which nothing else is said, is replicated, and is called NAME-data in
	// Ceph where it has no name; a directory uses another one when its layout says so. Without any there is that one.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() == 0 || !has(self[0].erasureCoded)",message="the first data pool has to be replicated, as it keeps where each file is: put the erasure-coded one after it, and have directories use it by their layout"
	// +kubebuilder:validation:XValidation:rule="self.all(p, has(p.name) || p == self[0])",message="each data pool but the first needs a name"
	DataPools []FilesystemDataPool `json:"dataPools,omitempty"`
	// ActiveMDS is how many MDS share the work, each a part of the tree (max_mds).
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=16
	ActiveMDS int32 `json:"activeMDS,omitempty"`
	// StandbyMDS is how many stand by to take over.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=16
	StandbyMDS *int32 `json:"standbyMDS,omitempty"`
	// Placement selects the hosts that may run MDS, each on a host of its own. Without it: the hosts of the cluster's StorageNodes and DriveGroups.
	// +optional
	Placement HostSelection `json:"placement,omitempty"`
	// SubvolumeGroups are made in the filesystem. One that is taken out of the list stays in Ceph with what is in it.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	SubvolumeGroups []SubvolumeGroup `json:"subvolumeGroups,omitempty"`
	// DeletionPolicy says what happens to the data when the Filesystem is deleted: under Retain the filesystem and its pools stay in Ceph,
	// without an MDS, and a Filesystem of the same name takes them over again. Either way it waits until no client has it mounted.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// FilesystemPools says who decides on the pools of a filesystem.
// +kubebuilder:validation:Enum=Managed;Existing
type FilesystemPools string

// Who decides on the pools.
const (
	// PoolsManaged: the Filesystem declares them.
	PoolsManaged FilesystemPools = "Managed"
	// PoolsExisting: they are as Ceph has them.
	PoolsExisting FilesystemPools = "Existing"
)

// FilesystemPool is a pool of a filesystem. Its fields are those of a Pool.
// +kubebuilder:validation:XValidation:rule="!(has(self.replicated) && has(self.erasureCoded))",message="a pool is either replicated or erasureCoded"
type FilesystemPool struct {
	// Replicated keeps whole copies. It is the default, with three copies.
	// +optional
	Replicated *PoolReplicated `json:"replicated,omitempty"`
	// ErasureCoded cuts objects into chunks, of which some may be lost.
	// +optional
	ErasureCoded *PoolErasureCoded `json:"erasureCoded,omitempty"`
	// FailureDomain is the bucket of CRUSH that holds at most one copy or chunk of an object, as in a Pool.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	FailureDomain string `json:"failureDomain,omitempty"`
	// DeviceClass has only devices of one class used, such as hdd, ssd or nvme. Without it all are.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	DeviceClass string `json:"deviceClass,omitempty"`
	// Quota bounds what the pool holds. When it is reached, writes fail.
	// +optional
	Quota PoolQuota `json:"quota,omitempty"`
	// Compression has devices compress what they write.
	// +optional
	Compression PoolCompression `json:"compression,omitempty"`
}

// FilesystemDataPool is a pool for what is in files.
type FilesystemDataPool struct {
	// Name is the pool's name in Ceph.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Name           string `json:"name,omitempty"`
	FilesystemPool `json:",inline"`
}

// SubvolumeGroup is a directory for subvolumes, such as those of one user.
type SubvolumeGroup struct {
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`
	Name string `json:"name"`
	// Quota bounds what all of it holds, such as 100Gi. It has to be more than nothing.
	// +optional
	Quota *resource.Quantity `json:"quota,omitempty"`
}

// FilesystemStatus is what the engine knows of the filesystem.
type FilesystemStatus struct {
	ResourceStatus `json:",inline"`
	// ID is the filesystem's number in Ceph.
	// +optional
	ID int64 `json:"id,omitempty"`
	// Active are the MDS that share the work, such as "home-a", by their ranks, and Standby those that stand by.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Active string `json:"active,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Standby string `json:"standby,omitempty"`
	// Clients counts those who have it mounted.
	// +optional
	Clients int32 `json:"clients,omitempty"`
	// Pools are the filesystem's pools by their names in Ceph, the metadata pool first. They are written down before they are made.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	Pools []FilesystemPoolStatus `json:"pools,omitempty"`
	// LostSubvolumeGroups are those that Holdfast made and that were removed outside Holdfast.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	LostSubvolumeGroups []string `json:"lostSubvolumeGroups,omitempty"`
	// SubvolumeGroups are those that were made.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	SubvolumeGroups []SubvolumeGroup `json:"subvolumeGroups,omitempty"`
}

// FilesystemPoolStatus is a pool of a filesystem.
type FilesystemPoolStatus struct {
	Name string `json:"name"`
	// ID is its number in Ceph; zero before it is made.
	// +optional
	ID int64 `json:"id,omitempty"`
	// Served is true once all of its placement groups served.
	// +optional
	Served bool `json:"served,omitempty"`
}

// FilesystemList is a list of Filesystems.
// +kubebuilder:object:root=true
type FilesystemList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Filesystem `json:"items"`
}

var _ Placed = (*Filesystem)(nil)

// ResourceKind is "Filesystem".
func (*Filesystem) ResourceKind() string { return "Filesystem" }

// ClusterName is the StorageCluster that the filesystem lies in.
func (f *Filesystem) ClusterName() string { return f.Spec.Cluster }

// SelectedHosts are the hosts that may run its MDS.
func (f *Filesystem) SelectedHosts() *HostSelection { return &f.Spec.Placement }

// Common is the part of the status that all resources have.
func (f *Filesystem) Common() *ResourceStatus { return &f.Status.ResourceStatus }

// TakeStatus gives the filesystem a copy of the status of another one.
func (f *Filesystem) TakeStatus(from Resource) { f.Status = *from.(*Filesystem).Status.DeepCopy() }

// NewResource is an empty Filesystem.
func (*FilesystemList) NewResource() Resource { return &Filesystem{} }
