package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan is what 'holdfast plan' found that applying some objects would do, with everything that it was made from, so that
// 'holdfast apply --plan' does exactly that or refuses. Its spec never changes. Plans are removed a week after they were made.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pl
// +kubebuilder:printcolumn:name="Changes",type=integer,JSONPath=`.spec.count`
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.spec.risk`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=`.spec.requester`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Plan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PlanSpec `json:"spec"`
	// +optional
	Status PlanStatus `json:"status,omitempty"`
}

// PlanSpec is what was planned, and from what.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Plan cannot be changed: make another one with 'holdfast plan -f'"
type PlanSpec struct {
	// Operation says what is done with the objects of the manifest.
	// +optional
	// +kubebuilder:default=Apply
	Operation PlanOperation `json:"operation,omitempty"`
	// Conflicts says what becomes of fields that somebody else has applied.
	// +optional
	// +kubebuilder:default=Refuse
	Conflicts PlanConflicts `json:"conflicts,omitempty"`
	// Refusals says what becomes of what is refused as things are.
	// +optional
	// +kubebuilder:default=Refuse
	Refusals PlanRefusals `json:"refusals,omitempty"`
	// Manifest is what was given to be applied: YAML documents. Of objects to delete it has the names alone.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	Manifest string `json:"manifest"`
	// Basis is everything that the plan was made from and that decides what it comes to.
	// +listType=map
	// +listMapKey=object
	// +kubebuilder:validation:MaxItems=8192
	Basis []PlanBasis `json:"basis,omitempty"`
	// Facts are what the digests of Basis cover, a line each, to tell what moved: the object, a tab, the fact. They are left
	// out where the plan would become too large.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	Facts string `json:"facts,omitempty"`
	// Changes are what will happen, in that order; the first of them, where the plan would become too large.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Changes []PlanChange `json:"changes,omitempty"`
	// Digest covers all changes.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest,omitempty"`
	// Count is the number of all changes.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Risk is the highest risk among the changes.
	// +optional
	Risk Risk `json:"risk,omitempty"`
	// Requester is who made the plan. The API server sets it from the certificate of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Requester string `json:"requester,omitempty"`
}

// PlanOperation is what a plan does with its objects.
// +kubebuilder:validation:Enum=Apply;Delete
type PlanOperation string

// The operations.
const (
	PlanApply  PlanOperation = "Apply"
	PlanDelete PlanOperation = "Delete"
)

// PlanConflicts says what becomes of fields that somebody else has applied.
// +kubebuilder:validation:Enum=Refuse;Take
type PlanConflicts string

// The ways to treat conflicts.
const (
	// ConflictsRefuse: the plan is not made.
	ConflictsRefuse PlanConflicts = "Refuse"
	// ConflictsTake: the fields are taken over.
	ConflictsTake PlanConflicts = "Take"
)

// PlanRefusals says what becomes of what is refused as things are.
// +kubebuilder:validation:Enum=Refuse;Declare
type PlanRefusals string

// The ways to treat refusals.
const (
	// RefusalsRefuse: the plan is not made, or not carried out.
	RefusalsRefuse PlanRefusals = "Refuse"
	// RefusalsDeclare: it is declared all the same, and carried out as soon as it can be.
	RefusalsDeclare PlanRefusals = "Declare"
)

// PlanBasis is one object that a plan was made from.
type PlanBasis struct {
	// Object is such as "storagecluster/default/ceph" or "host/h1".
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object"`
	// UID of the object; empty for one that did not exist.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	UID string `json:"uid,omitempty"`
	// Digest covers what of the object a plan depends on.
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
}

// PlanChange is one thing that will happen.
type PlanChange struct {
	// Step numbers what follows each other in the cluster. What has the same step goes on at one time; the objects themselves
	// are step 0.
	// +optional
	Step int32 `json:"step,omitempty"`
	// Verb is Apply or Delete for an object of the manifest, and Create, Change, Remove or Command for what comes of it.
	// +kubebuilder:validation:MaxLength=63
	Verb string `json:"verb"`
	// Object is what changes, such as "daemon/ceph-osd-3".
	// +kubebuilder:validation:MaxLength=256
	Object string `json:"object"`
	// Host is where, if it is on one host.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Host string `json:"host,omitempty"`
	// Message says what and why, in a sentence; devices by serial number or identity.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// +optional
	Risk Risk `json:"risk,omitempty"`
}

// Risk says what a change may do to data and service.
// +kubebuilder:validation:Enum=None;Restart;Redundancy;Data
type Risk string

// The risks, from the lowest to the highest.
const (
	RiskNone Risk = "None"
	// RiskRestart: a daemon is restarted; service goes on.
	RiskRestart Risk = "Restart"
	// RiskRedundancy: there are fewer copies, mons or standbys for a while.
	RiskRedundancy Risk = "Redundancy"
	// RiskData: data is destroyed. Such a plan must be named to be carried out.
	RiskData Risk = "Data"
)

// PlanState is what became of a plan.
// +kubebuilder:validation:Enum=Applying;Applied;Stale
type PlanState string

// The states of a plan that was begun.
const (
	// PlanApplying: its objects are being written. If that was cut off, applying it again goes on with it.
	PlanApplying PlanState = "Applying"
	PlanApplied  PlanState = "Applied"
	// PlanStale: the world moved, so it can never be applied.
	PlanStale PlanState = "Stale"
)

// PlanStatus is what became of a plan. Empty: it can be applied.
type PlanStatus struct {
	// +optional
	State PlanState `json:"state,omitempty"`
	// Message says in a sentence what moved, or who applied it.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// PlanList is a list of Plans.
// +kubebuilder:object:root=true
type PlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plan `json:"items"`
}
