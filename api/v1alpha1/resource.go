package v1alpha1

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// FinalizerResource keeps a Resource until the storage system has nothing of it any more.
const FinalizerResource = "holdfast.io/resource"

// Resource is what those who use storage get from a cluster, such as a Volume. Which kinds a cluster has is up to its storage system; the
// engine, the stores and the commands handle all of them alike.
//
// +kubebuilder:object:generate=false
type Resource interface {
	metav1.Object
	runtime.Object
	// ResourceKind is the kind, such as "Volume".
	ResourceKind() string
	// ClusterName is the StorageCluster, in the resource's own namespace, that it is wanted from.
	ClusterName() string
	// Common is the part of its status that all kinds have.
	Common() *ResourceStatus
	// TakeStatus gives it a copy of the status of another resource of its kind.
	TakeStatus(from Resource)
}

// ResourceLists are an empty list of each kind of Resource.
func ResourceLists() []ResourceList {
	return []ResourceList{&PoolList{}, &ClientList{}, &FilesystemList{}, &VolumeList{}, &NFSExportList{}, &DriveGroupList{}, &ObjectStoreList{}, &ObjectStoreUserList{}, &RBDMirrorList{}}
}

// ResourceList is a list of Resources of one kind.
//
// +kubebuilder:object:generate=false
type ResourceList interface {
	metav1.ListInterface
	runtime.Object
	// NewResource is an empty resource of the kind.
	NewResource() Resource
}

// NewResource is an empty resource of a kind; nil where it is no kind of Resource.
func NewResource(kind string) Resource {
	for _, list := range ResourceLists() {
		if r := list.NewResource(); r.ResourceKind() == kind {
			return r
		}
	}
	return nil
}

// ResourceState says whether a resource can be used.
// +kubebuilder:validation:Enum=Pending;Creating;Online;Degraded;Offline;Deleting
type ResourceState string

// The states of a resource.
const (
	// ResourcePending: nothing was made yet; Message says why.
	ResourcePending  ResourceState = "Pending"
	ResourceCreating ResourceState = "Creating"
	// ResourceOnline: it serves, and all of it is there.
	ResourceOnline ResourceState = "Online"
	// ResourceDegraded: it serves, and something of it is missing or being healed.
	ResourceDegraded ResourceState = "Degraded"
	// ResourceOffline: some of the data cannot be reached.
	ResourceOffline  ResourceState = "Offline"
	ResourceDeleting ResourceState = "Deleting"
)

// ResourceAccepted is the condition of a resource that says whether it can be made as it is declared.
const ResourceAccepted = "Accepted"

// AnnotationRecreate is a user's word that what is gone of a resource may be made anew, empty. Its value is that of LossWord: it
// counts for that loss alone, and for no later one, though that has the same identity.
const AnnotationRecreate = Group + "/recreate"

// LossWord is the value of AnnotationRecreate that accepts the loss that a status tells of: status.lost, "@", and since when the
// condition Present is False (RFC 3339, UTC). It is empty while nothing is lost.
func LossWord(s *ResourceStatus) string {
	c := meta.FindStatusCondition(s.Conditions, ResourcePresent)
	if s.Lost == "" || c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return s.Lost + "@" + c.LastTransitionTime.UTC().Format(time.RFC3339)
}

// LossAccepted says whether a user accepted just the loss that the status of a resource tells of.
func LossAccepted(r Resource) bool {
	word := LossWord(r.Common())
	return word != "" && r.GetAnnotations()[AnnotationRecreate] == word
}

// ResourcePresent is the condition of a resource that is false while the storage system lacks what was recorded of it.
const ResourcePresent = "Present"

// The reasons of the condition ResourcePresent.
const (
	// ReasonPresent: the storage system has what is recorded.
	ReasonPresent = "Found"
	// ReasonDeletedOutside: the storage system has it no more, and nothing of its name. Holdfast did not delete it.
	ReasonDeletedOutside = "DeletedOutside"
	// ReasonRenamedOutside: the storage system has it by another name. Holdfast did not rename it.
	ReasonRenamedOutside = "RenamedOutside"
	// ReasonNameTaken: what the storage system has by this name is not what was recorded.
	ReasonNameTaken = "NameTaken"
)

// ResourceStatus is what the engine knows of a resource of any kind.
type ResourceStatus struct {
	// ObservedGeneration is the generation of the spec that the status belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	State ResourceState `json:"state,omitempty"`
	// Served is true once clients could use the resource, whatever its state is later.
	// +optional
	Served bool `json:"served,omitempty"`
	// Message says in a sentence what happens or is wrong.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Reason is the cause of the message, where it is known, and Next what to do about it.
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Next string `json:"next,omitempty"`
	// Lost is the identity of what the storage system does not have any more, and Holdfast did not delete. It is what
	// 'holdfast recreate KIND NAME --lost' takes. It is empty while all that was recorded is there.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Lost string `json:"lost,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
