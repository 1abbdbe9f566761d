package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pool declares a pool of a Ceph cluster: where objects are kept, how they survive the loss of devices, and how many there may be. The
// administrator writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Layout",type=string,JSONPath=`.status.layout`
// +kubebuilder:printcolumn:name="Domain",type=string,JSONPath=`.status.failureDomain`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Used",type=string,JSONPath=`.status.used`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name of a Pool may have at most 63 lower-case letters, digits and hyphens: it is the pool's name in Ceph"
type Pool struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PoolSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status PoolStatus `json:"status,omitempty"`
}

// PoolSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another Pool and copy the data"
// +kubebuilder:validation:XValidation:rule="!(has(self.replicated) && has(self.erasureCoded))",message="a pool is either replicated or erasureCoded"
// +kubebuilder:validation:XValidation:rule="has(self.erasureCoded) == has(oldSelf.erasureCoded) && (!has(self.erasureCoded) || self.erasureCoded == oldSelf.erasureCoded)",message="a pool cannot be made erasure-coded or replicated later, nor its chunks be changed: create another Pool and copy the data"
type PoolSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the pool lies in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Replicated keeps whole copies. It is the default, with three copies.
	// +optional
	Replicated *PoolReplicated `json:"replicated,omitempty"`
	// ErasureCoded cuts objects into chunks, of which some may be lost.
	// +optional
	ErasureCoded *PoolErasureCoded `json:"erasureCoded,omitempty"`
	// FailureDomain is the bucket of CRUSH that holds at most one copy or chunk of an object, such as osd, host or rack. Without it the
	// widest one of rack, host and osd is taken that has enough of them, and it grows by itself from osd to host, with the data moving, when there are more.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[a-z][a-z0-9-]*$`
	FailureDomain string `json:"failureDomain,omitempty"`
	// DeviceClass has only devices of one class used, such as hdd, ssd or nvme. Without it all are.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	DeviceClass string `json:"deviceClass,omitempty"`
	// Application is what the pool is for, which Ceph needs to know: rbd, cephfs, rgw, or a word of your own.
	// +optional
	// +kubebuilder:default=rbd
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_.-]+$`
	Application string `json:"application,omitempty"`
	// Quota bounds what the pool holds. When it is reached, writes fail.
	// +optional
	Quota PoolQuota `json:"quota,omitempty"`
	// Compression has devices compress what they write.
	// +optional
	Compression PoolCompression `json:"compression,omitempty"`
	// DeletionPolicy says what happens to the data when the Pool is deleted: under Retain the pool stays in Ceph, and a Pool of the same
	// name takes it over again.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// PoolReplicated keeps whole copies.
// +kubebuilder:validation:XValidation:rule="!has(self.minSize) || self.minSize <= self.size",message="minSize cannot be more than size: with fewer copies than minSize clients have to wait, and there would always be fewer"
type PoolReplicated struct {
	// Size is the number of copies. One keeps no copy: what is on a device that fails is lost.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10
	Size int32 `json:"size,omitempty"`
	// MinSize is how many copies there have to be for clients to go on. Without it more than half.
	// +optional
	// +kubebuilder:validation:Minimum=1
	MinSize *int32 `json:"minSize,omitempty"`
}

// PoolErasureCoded cuts objects into DataChunks and adds CodingChunks, as many as may be lost.
type PoolErasureCoded struct {
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=16
	DataChunks int32 `json:"dataChunks"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	CodingChunks int32 `json:"codingChunks"`
}

// PoolQuota bounds what a pool holds.
type PoolQuota struct {
	// MaxBytes is how much clients can store, such as 100Gi.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="maxBytes must be more than nothing, such as 100Gi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !isQuantity(self) || quantity(self).isInteger()",message="maxBytes must be whole bytes: m stands for thousandths; write 500Mi"
	MaxBytes *resource.Quantity `json:"maxBytes,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=1
	MaxObjects *int64 `json:"maxObjects,omitempty"`
}

// PoolCompression is how devices compress (Ceph docs, "BlueStore configuration reference: inline compression").
// +kubebuilder:validation:XValidation:rule="!has(self.algorithm) || has(self.mode)",message="an algorithm alone compresses nothing: say the mode too"
type PoolCompression struct {
	// Mode says what is compressed. Without it nothing is, unless the cluster's configuration says otherwise.
	// +optional
	// +kubebuilder:validation:Enum=none;passive;aggressive;force
	Mode string `json:"mode,omitempty"`
	// +optional
	// +kubebuilder:validation:Enum=snappy;zlib;zstd;lz4
	Algorithm string `json:"algorithm,omitempty"`
}

// PoolStatus is what the engine knows of the pool.
type PoolStatus struct {
	ResourceStatus `json:",inline"`
	// ID is the pool's number in Ceph.
	// +optional
	ID int64 `json:"id,omitempty"`
	// Layout is how the pool keeps its objects, such as "3 copies" or "4+2".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Layout string `json:"layout,omitempty"`
	// FailureDomain is what holds at most one copy or chunk of an object now.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	FailureDomain string `json:"failureDomain,omitempty"`
	// PGs is the number of placement groups.
	// +optional
	PGs int32 `json:"pgs,omitempty"`
	// Used is what clients have stored, to two digits, and Available how much more there is room for.
	// +optional
	Used *resource.Quantity `json:"used,omitempty"`
	// +optional
	Available *resource.Quantity `json:"available,omitempty"`
}

// PoolList is a list of Pools.
// +kubebuilder:object:root=true
type PoolList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Pool `json:"items"`
}

var _ Resource = (*Pool)(nil)

// ResourceKind is "Pool".
func (*Pool) ResourceKind() string { return "Pool" }

// ClusterName is the StorageCluster that the pool lies in.
func (p *Pool) ClusterName() string { return p.Spec.Cluster }

// Common is the part of the status that all resources have.
func (p *Pool) Common() *ResourceStatus { return &p.Status.ResourceStatus }

// TakeStatus gives the pool a copy of the status of another one.
func (p *Pool) TakeStatus(from Resource) { p.Status = *from.(*Pool).Status.DeepCopy() }

// NewResource is an empty Pool.
func (*PoolList) NewResource() Resource { return &Pool{} }
