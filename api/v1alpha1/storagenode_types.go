package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageNode declares what one machine gives to a storage system. It is QuarterMaster's resource. The administrator
// writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=stn,categories=holdfast
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.status.host`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StorageNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StorageNodeSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status StorageNodeStatus `json:"status,omitempty"`
}

// StorageNodeSpec is what the administrator gives.
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="type cannot be changed: delete the node and create another one"
// +kubebuilder:validation:XValidation:rule="self.type != 'ceph' || !has(self.directories) || size(self.directories) == 0",message="Ceph stores data on whole devices: name them in spec.devices, and remove spec.directories"
// +kubebuilder:validation:XValidation:rule="self.type == 'glusterfs' || !has(self.glusterfs)",message="spec.glusterfs is for nodes of type glusterfs: remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.glusterfs) || !has(self.glusterfs.cluster) || !has(self.cluster) || self.glusterfs.cluster == self.cluster",message="a node belongs to one cluster: spec.cluster and spec.glusterfs.cluster name two"
// +kubebuilder:validation:XValidation:rule="self.type == 'torus' || !has(self.torus)",message="spec.torus is for nodes of type torus: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'torus' || has(self.torus)",message="type is torus, so spec.torus must say how large the node's store is, such as 'torus: {size: 20Gi}'"
// +kubebuilder:validation:XValidation:rule="self.type != 'torus' || !has(self.devices) || size(self.devices) == 0",message="Torus stores data in a directory, not on devices: put a file system on the device, name its directory in spec.directories, and remove spec.devices"
// +kubebuilder:validation:XValidation:rule="self.type != 'torus' || !has(self.directories) || size(self.directories) <= 1",message="a node of Torus has one store: name one directory"
// +kubebuilder:validation:XValidation:rule="self.type == 'ceph' || !has(self.exclude) && !has(self.replace)",message="spec.exclude and spec.replace are for nodes of type ceph: remove the device from spec.devices"
type StorageNodeSpec struct {
	// Type is the storage system that the node is for.
	Type StorageType `json:"type"`
	// Cluster is the StorageCluster, in the node's own namespace, that the node belongs to. It may be left out where the
	// namespace holds one cluster of the node's type.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// NodeSelector selects the one Host that is meant, by its labels. Each Host has the label kubernetes.io/hostname.
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	NodeSelector map[string]string `json:"nodeSelector"`
	// StorageNetwork gives the node's addresses for storage traffic.
	// +optional
	StorageNetwork StorageNetwork `json:"storageNetwork,omitempty"`
	// Devices are the block devices to use, and no other is ever touched. Each is named by its identity (the id, WWN or
	// serial that 'holdfast get host NAME -o yaml' shows) or a link below /dev/disk. A kernel name such as
	// /dev/sdb is resolved once, when the node is accepted; from then on its identity counts.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Devices []string `json:"devices,omitempty"`
	// Exclude names devices among those of devices that the cluster leaves, by id, WWN, serial number or as devices names
	// them: the OSD on each leaves the cluster as if its device had been taken out of devices. A device comes back when
	// it is taken out of here.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Exclude []string `json:"exclude,omitempty"`
	// Replace names devices that another one takes the place of, as exclude names them: the OSD on each leaves, and Ceph
	// keeps its number for the next OSD that this host gets.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Replace []string `json:"replace,omitempty"`
	// Directories are absolute paths of the host to store data in, beside the devices or in their place.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=256
	// +kubebuilder:validation:items:Pattern=`^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$`
	Directories []string `json:"directories,omitempty"`
	// GlusterFS is what only GlusterFS wants to know of a node.
	// +optional
	GlusterFS *GlusterFSNode `json:"glusterfs,omitempty"`
	// Torus is what only Torus wants to know of a node.
	// +optional
	Torus *TorusNode `json:"torus,omitempty"`
}

// GlusterFSNode is the part of a StorageNode that only GlusterFS has.
type GlusterFSNode struct {
	// Cluster is the StorageCluster that the node belongs to, in the words of QuarterMaster. It is the same as
	// spec.cluster.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// Zone is the failure domain that the node lies in: copies of the same data go to different zones where there are
	// enough. See spec.glusterfs.zones of the StorageCluster.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Zone int32 `json:"zone,omitempty"`
	// Closed are devices and directories of the node that get no new bricks, as devices and
	// directories name them, or "*" for all of them. The bricks that they have stay, and serve.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=160
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	Closed []string `json:"closed,omitempty"`
}

// ClusterName is the StorageCluster that the node names; empty where it names none.
func (n *StorageNode) ClusterName() string {
	if n.Spec.Cluster == "" && n.Spec.GlusterFS != nil {
		return n.Spec.GlusterFS.Cluster
	}
	return n.Spec.Cluster
}

// StorageNetwork lists the addresses of a node in the storage network.
type StorageNetwork struct {
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.all(a, isIP(a))",message="ips must be IP addresses"
	IPs []string `json:"ips,omitempty"`
}

// NodeAccepted is the condition of a StorageNode that says whether it can be used as it is declared.
const NodeAccepted = "Accepted"

// NodeTakesBricks is False while spec.glusterfs.closed closes a part; absent without entries there.
const NodeTakesBricks = "TakesBricks"

// ConditionEntriesMatched is a condition of StorageNodes and DriveGroups. It is False while an entry of spec.exclude
// or spec.replace means no device, and absent otherwise.
const ConditionEntriesMatched = "EntriesMatched"

// StorageNodeStatus is what the engine knows of the node.
type StorageNodeStatus struct {
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Host is the Host that nodeSelector selected.
	// +optional
	Host string `json:"host,omitempty"`
	// Devices records which device each entry of spec.devices was found to be, and each entry of spec.exclude and
	// spec.replace that means one of these. A record stays as long as its entry.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=384
	Devices []ClaimedDevice `json:"devices,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ClaimedDevice ties an entry of spec.devices, spec.exclude or spec.replace to an identity.
type ClaimedDevice struct {
	// Name is the entry.
	Name string `json:"name"`
	// ID is the identity of the device, as in the Host's inventory.
	ID string `json:"id"`
}

// StorageNodeList is a list of StorageNodes.
// +kubebuilder:object:root=true
type StorageNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageNode `json:"items"`
}
