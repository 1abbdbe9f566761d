package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// RBDMirror declares that block images of pools in a Ceph cluster are mirrored with another cluster: the daemons (rbd-mirror) that fetch what the other
// one has, the pools, and where the other one is. The administrator writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=rbdm,categories={holdfast,storage,ceph}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Daemons",type=string,JSONPath=`.status.daemons`
// +kubebuilder:printcolumn:name="Pools",type=string,JSONPath=`.status.summary`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 40",message="the name of an RBDMirror may have at most 40 lower-case letters, digits and hyphens: its daemons are named after it"
type RBDMirror struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec RBDMirrorSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status RBDMirrorStatus `json:"status,omitempty"`
}

// RBDMirrorSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another RBDMirror"
type RBDMirrorSpec struct {
	// Cluster is the StorageCluster, in the same namespace, whose images are mirrored.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Placement says on which hosts the daemons run and how many, one without a count. Each has a host of its own; with several, another one
	// takes over when one is lost.
	// +optional
	Placement Placement `json:"placement,omitempty"`
	// Pools are the pools with images that are mirrored. One that is taken out keeps its mirroring in Ceph as it is.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Pools []RBDMirrorPool `json:"pools,omitempty"`
}

// RBDMirrorMode says which images of a pool are mirrored.
// +kubebuilder:validation:Enum=Image;Pool
type RBDMirrorMode string

// The modes of mirroring.
const (
	// RBDMirrorImage: those for which it is turned on ('rbd mirror image enable').
	RBDMirrorImage RBDMirrorMode = "Image"
	// RBDMirrorWholePool: all that have the feature journaling.
	RBDMirrorWholePool RBDMirrorMode = "Pool"
)

// RBDMirrorPool is a pool that is mirrored.
type RBDMirrorPool struct {
	// Name is the pool's, which has to be one of RBD. The pool of the other cluster has the same name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Mode says which of its images are mirrored.
	// +optional
	// +kubebuilder:default=Image
	Mode RBDMirrorMode `json:"mode,omitempty"`
	// PeerSecret is a Secret of type holdfast.io/rbd-mirror-token in the same namespace: its entry token is the other cluster's bootstrap token
	// ('holdfast ceph mirror-token' there, or 'rbd mirror pool peer bootstrap create'). Images of the other cluster are fetched from there. Without it
	// the pool is only fetched from.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	PeerSecret string `json:"peerSecret,omitempty"`
	// SnapshotInterval is how often images that are mirrored by snapshots get one, in whole minutes, hours or days: 30m, 6h, 1d. Without it
	// nothing is scheduled for the pool as a whole; what was scheduled by it ends when it is taken out.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	// +kubebuilder:validation:Pattern=`^[1-9][0-9]*[mhd]$`
	SnapshotInterval string `json:"snapshotInterval,omitempty"`
}

// SecretTypeMirrorToken is the type of a Secret with the bootstrap token of another cluster; SecretEntryToken is its entry.
const (
	SecretTypeMirrorToken = "holdfast.io/rbd-mirror-token"
	SecretEntryToken      = "token"
)

// RBDMirrorStatus is what the engine knows of the mirroring.
type RBDMirrorStatus struct {
	ResourceStatus `json:",inline"`
	// Daemons are those that work out of those that are wanted, such as "1/1".
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Daemons string `json:"daemons,omitempty"`
	// Summary says how the pools are, in a few words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Summary string `json:"summary,omitempty"`
	// Pools are the pools as Ceph says they are.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Pools []RBDMirrorPoolStatus `json:"pools,omitempty"`
}

// RBDMirrorPoolStatus is how a pool is mirrored.
type RBDMirrorPoolStatus struct {
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// Health is Ceph's word: OK, WARNING, ERROR or UNKNOWN.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Health string `json:"health,omitempty"`
	// Images counts the images that are mirrored by their states, such as "2 replaying, 1 stopped".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Images string `json:"images,omitempty"`
	// Peers are the other clusters by the names that they go by, with the direction: rx-only, tx-only or rx-tx.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	Peers []string `json:"peers,omitempty"`
	// SnapshotInterval is the schedule that was set for the pool; it is removed when it is not wanted any more. Others are left alone.
	// +optional
	// +kubebuilder:validation:MaxLength=8
	SnapshotInterval string `json:"snapshotInterval,omitempty"`
	// PeerToken tells the token by which the pool got its peer from others: the beginning of its SHA-256 sum.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	PeerToken string `json:"peerToken,omitempty"`
}

// RBDMirrorList is a list of RBDMirrors.
// +kubebuilder:object:root=true
type RBDMirrorList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []RBDMirror `json:"items"`
}

var _ Placed = (*RBDMirror)(nil)

// ResourceKind is "RBDMirror".
func (*RBDMirror) ResourceKind() string { return "RBDMirror" }

// ClusterName is the StorageCluster whose images are mirrored.
func (m *RBDMirror) ClusterName() string { return m.Spec.Cluster }

// Common is the part of the status that all resources have.
func (m *RBDMirror) Common() *ResourceStatus { return &m.Status.ResourceStatus }

// TakeStatus gives the resource a copy of the status of another one.
func (m *RBDMirror) TakeStatus(from Resource) { m.Status = *from.(*RBDMirror).Status.DeepCopy() }

// SelectedHosts selects the hosts of the daemons.
func (m *RBDMirror) SelectedHosts() *HostSelection { return &m.Spec.Placement.HostSelection }

// NewResource is an empty RBDMirror.
func (*RBDMirrorList) NewResource() Resource { return &RBDMirror{} }
