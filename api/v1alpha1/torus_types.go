package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
)

// TorusSpec is the part of a StorageCluster that only Torus has.
// +kubebuilder:validation:XValidation:rule="has(self.endpoints) == has(oldSelf.endpoints) && (!has(self.endpoints) || self.endpoints == oldSelf.endpoints)",message="endpoints cannot be changed: the etcd holds where all data lies"
// +kubebuilder:validation:XValidation:rule="has(self.blockSize) == has(oldSelf.blockSize) && (!has(self.blockSize) || self.blockSize == oldSelf.blockSize)",message="blockSize cannot be changed: all blocks of a cluster have one size, from its first day"
type TorusSpec struct {
	// Endpoints are the client addresses of an etcd (version 3) that holds the cluster's metadata, all of the same etcd. It must
	// hold those of no other Torus. Without any, Holdfast runs an etcd on the cluster's own nodes.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=7
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.all(e, e.matches('^http://([A-Za-z0-9.-]+|[[][0-9a-fA-F:]+[]]):[0-9]{1,5}$'))",message="an endpoint is written as http://ADDRESS:PORT: Torus takes no address without http://, and Holdfast gives it no certificates"
	Endpoints []string `json:"endpoints,omitempty"`
	// Replication is how many nodes hold each block.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=7
	Replication int32 `json:"replication,omitempty"`
	// BlockSize is the size of the blocks that data is cut into. Without it Torus takes 512Ki.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 4096 : isQuantity(self) && !quantity(self).isLessThan(quantity('4Ki')) && !quantity(self).isGreaterThan(quantity('64Mi'))",message="blockSize must be between 4Ki and 64Mi"
	BlockSize *resource.Quantity `json:"blockSize,omitempty"`
}

// TorusNode is the part of a StorageNode that only Torus has.
// +kubebuilder:validation:XValidation:rule="self.size == oldSelf.size",message="size cannot be changed: Torus makes a node's store once. Delete the node, which moves its data away, and make another one"
type TorusNode struct {
	// Size is how large the node's store is: a size such as 20Gi, or a part such as 50% of the file system that it lies on.
	// +kubebuilder:validation:MaxLength=16
	// +kubebuilder:validation:XValidation:rule="self.matches('^([1-9][0-9]{0,8}(Mi|Gi|Ti)|([1-9][0-9]?|100)%)$')",message="size is written as 20Gi or as 50%"
	Size string `json:"size"`
	// Port is where the node's torusd listens for the others. Nodes of one host need different ones.
	// +optional
	// +kubebuilder:default=40000
	// +kubebuilder:validation:Minimum=1024
	// +kubebuilder:validation:Maximum=65535
	Port int32 `json:"port,omitempty"`
}

// TorusStatus is what Torus says of itself.
type TorusStatus struct {
	// Version is the release of torusd, such as v0.1.2.
	// +optional
	Version string `json:"version,omitempty"`
	// Etcd is what clients give to torusblk and torusctl as --etcd.
	// +optional
	Etcd string `json:"etcd,omitempty"`
	// Replication is how many peers hold each block.
	// +optional
	Replication int32 `json:"replication,omitempty"`
	// Peers counts the torusd that Torus hears, Members those that belong to the ring, which has the data, and MembersDown those of
	// them that Torus does not hear.
	// +optional
	Peers int32 `json:"peers,omitempty"`
	// +optional
	Members int32 `json:"members,omitempty"`
	// +optional
	MembersDown int32 `json:"membersDown,omitempty"`
	// Volumes counts the volumes that exist.
	// +optional
	Volumes int32 `json:"volumes,omitempty"`
}
