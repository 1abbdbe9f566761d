package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Volume declares one piece of storage that clients use, in a cluster whose storage system has volumes. The administrator writes
// its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=vol,categories={holdfast,storage,glusterfs,torus}
// +kubebuilder:printcolumn:name="Cluster",type=string,JSONPath=`.spec.cluster`
// +kubebuilder:printcolumn:name="Size",type=string,JSONPath=`.spec.size`
// +kubebuilder:printcolumn:name="Layout",type=string,JSONPath=`.status.layout`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Source",type=string,JSONPath=`.status.source`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63",message="the name of a Volume may have at most 63 lower-case letters, digits and hyphens: clients mount it by this name"
type Volume struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec VolumeSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status VolumeStatus `json:"status,omitempty"`
}

// VolumeSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.cluster == oldSelf.cluster",message="cluster cannot be changed: create another Volume and copy the data"
// +kubebuilder:validation:XValidation:rule="has(self.durability) == has(oldSelf.durability) && (!has(self.durability) || self.durability == oldSelf.durability)",message="durability cannot be changed: create another Volume and copy the data"
type VolumeSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the volume lies in.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster"`
	// Size is how much clients can store in it. It can be raised later.
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self > 0 : isQuantity(self) && quantity(self).isGreaterThan(quantity('0'))",message="size must be more than nothing, such as 100Gi"
	// +kubebuilder:validation:XValidation:rule="type(self) == int || !isQuantity(self) || quantity(self).isInteger()",message="size must be whole bytes: m stands for thousandths; write 500Mi"
	Size resource.Quantity `json:"size"`
	// SizePolicy says whether Size is only promised, and clients can write more as long as there is room, or enforced. Where it is enforced
	// and the volume is full, writes fail. Systems whose volumes cannot grow by themselves always enforce it.
	// +optional
	// +kubebuilder:default=Promised
	SizePolicy VolumeSizePolicy `json:"sizePolicy,omitempty"`
	// Durability says how the data survives the loss of nodes. Without it the storage system does as it does by itself.
	// +optional
	Durability *VolumeDurability `json:"durability,omitempty"`
	// Options are the storage system's own options. One that is taken away goes back to its default.
	// +optional
	Options VolumeOptions `json:"options,omitempty"`
	// +optional
	Auth VolumeAuth `json:"auth,omitempty"`
	// DeletionPolicy says what happens to the data when the Volume is deleted.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// VolumeSizePolicy says what the size of a volume is worth.
// +kubebuilder:validation:Enum=Promised;Enforced
type VolumeSizePolicy string

// The policies of size.
const (
	SizePromised VolumeSizePolicy = "Promised"
	SizeEnforced VolumeSizePolicy = "Enforced"
)

// VolumeDurability is one way to survive the loss of nodes.
// +kubebuilder:validation:XValidation:rule="[has(self.replicate), has(self.arbiter), has(self.disperse), has(self.distribute)].filter(x, x).size() == 1",message="durability is exactly one of replicate, arbiter, disperse and distribute"
type VolumeDurability struct {
	// Replicate keeps whole copies.
	// +optional
	Replicate *VolumeReplicate `json:"replicate,omitempty"`
	// Arbiter keeps two whole copies, and names and versions alone at a third place, which decides between them.
	// +optional
	Arbiter *VolumeArbiter `json:"arbiter,omitempty"`
	// Disperse cuts data into fragments, of which some may be lost.
	// +optional
	Disperse *VolumeDisperse `json:"disperse,omitempty"`
	// Distribute keeps one copy of each file: what is lost with a device is lost.
	// +optional
	Distribute *VolumeDistribute `json:"distribute,omitempty"`
}

// VolumeReplicate keeps whole copies.
type VolumeReplicate struct {
	// Count is the number of copies.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Maximum=8
	// +kubebuilder:validation:XValidation:rule="self >= 3",message="fewer than three copies cannot tell which of them is right (split-brain): take count 3, or 'arbiter: {}' for two copies and a witness, or 'distribute: {}' for one"
	Count int32 `json:"count,omitempty"`
}

// VolumeArbiter keeps two copies and a witness.
type VolumeArbiter struct{}

// VolumeDistribute keeps one copy.
type VolumeDistribute struct{}

// VolumeDisperse cuts data into Data fragments and adds Redundancy ones, as many as may be lost.
// +kubebuilder:validation:XValidation:rule="self.redundancy < self.data",message="redundancy must be less than data: with as many lost fragments as are left, the right ones cannot be told apart"
type VolumeDisperse struct {
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=16
	Data int32 `json:"data"`
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=8
	Redundancy int32 `json:"redundancy"`
}

// VolumeOptions maps options of the storage system to values.
// +kubebuilder:validation:MaxProperties=128
// +kubebuilder:validation:XValidation:rule="self.all(o, o.matches('^[a-z][a-z0-9]*([._-][a-z0-9]+)*$'))",message="an option is written as the storage system documents it, such as performance.cache-size"
// +kubebuilder:validation:XValidation:rule="!('auth.allow' in self)",message="spec.auth.allow of the Volume says who may use it: remove auth.allow from the options"
type VolumeOptions map[string]VolumeOptionValue

// VolumeOptionValue is the value of one option, on one line.
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:Pattern=`^[^\n\r]*$`
type VolumeOptionValue string

// VolumeAuth says who may use a volume.
type VolumeAuth struct {
	// Allow are addresses and host names that may mount the volume; a * stands for any part of one. Without any, all may.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:Pattern=`^[A-Za-z0-9.:*/_-]+$`
	Allow []string `json:"allow,omitempty"`
}

// VolumeStatus is what the engine knows of the volume.
type VolumeStatus struct {
	ResourceStatus `json:",inline"`
	// Layout is how the volume is built, in the storage system's own way of writing it, such as "2 x 3".
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Layout string `json:"layout,omitempty"`
	// ID is the storage system's own identity of the volume that holds the data, or its name and when it was first seen where the system
	// tells none. It is recorded when the volume is first seen; a person who accepts the loss of the volume has it recorded anew.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	ID string `json:"id,omitempty"`
	// Source is what a client mounts, such as "10.0.0.1:/vol1".
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Source string `json:"source,omitempty"`
	// Backups are further servers that a client can ask when the one in Source is away.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=128
	Backups []string `json:"backups,omitempty"`
	// Capacity is what clients can store in it now.
	// +optional
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	// Limit is what clients cannot write beyond, where the size is enforced.
	// +optional
	Limit *resource.Quantity `json:"limit,omitempty"`
	// Options are those that the engine sets, as name=value when they were seen set: one that is wanted no more is reset.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=1024
	Options []string `json:"options,omitempty"`
	// Bricks are the places that the data lies in, each set of copies or fragments together, in the volume's own order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Bricks []VolumeBrick `json:"bricks,omitempty"`
	// Heals counts the entries that are not the same on all copies yet.
	// +optional
	Heals int64 `json:"heals,omitempty"`
	// SplitBrains are the entries of which no heal can tell which copy is right; the first of them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MaxLength=1024
	SplitBrains []string `json:"splitBrains,omitempty"`
}

// VolumeZonesApart is the condition of a Volume that is false while the loss of one zone would take data of it away: a set has more
// bricks in a zone than it can do without.
const VolumeZonesApart = "ZonesApart"

// The reasons of the condition VolumeZonesApart.
const (
	ReasonZonesApart  = "Apart"
	ReasonZonesShared = "ZoneShared"
)

// VolumeBrick is one place that a volume's data lies in.
type VolumeBrick struct {
	// Node is the StorageNode.
	// +kubebuilder:validation:MaxLength=253
	Node string `json:"node"`
	// Device is the identity of the device, or Directory the directory of the node, that holds it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Device string `json:"device,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Directory string `json:"directory,omitempty"`
	// Path is the brick on its host.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Path string `json:"path,omitempty"`
	// Size is how much of the device or directory is promised to it.
	// +optional
	Size *resource.Quantity `json:"size,omitempty"`
	// Membership is Added or Removed when a user did that outside Holdfast, Left when its loss was accepted.
	// +kubebuilder:validation:Enum=Member;Added;Removed;Left
	Membership string `json:"membership,omitempty"`
	// Online says that it serves.
	// +optional
	Online bool `json:"online,omitempty"`
	// Message says in a sentence why it does not, or what happens to it.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// VolumeList is a list of Volumes.
// +kubebuilder:object:root=true
type VolumeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Volume `json:"items"`
}

var _ Resource = (*Volume)(nil)

// ResourceKind is "Volume".
func (*Volume) ResourceKind() string { return "Volume" }

// ClusterName is the StorageCluster that the volume lies in.
func (v *Volume) ClusterName() string { return v.Spec.Cluster }

// Common is the part of the status that all resources have.
func (v *Volume) Common() *ResourceStatus { return &v.Status.ResourceStatus }

// TakeStatus gives the volume a copy of the status of another one.
func (v *Volume) TakeStatus(from Resource) { v.Status = *from.(*Volume).Status.DeepCopy() }

// NewResource is an empty Volume.
func (*VolumeList) NewResource() Resource { return &Volume{} }
