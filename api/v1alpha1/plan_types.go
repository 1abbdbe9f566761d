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
	// Manifest is what was given to be applied: YAML documents.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	Manifest string `json:"manifest"`
	// Basis is everything that the plan was made from and that decides what it comes to.
	// +listType=map
	// +listMapKey=object
	// +kubebuilder:validation:MaxItems=8192
	Basis []PlanBasis `json:"basis,omitempty"`
	// Changes are what will happen, in that order.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Changes []PlanChange `json:"changes,omitempty"`
	// Count is the number of changes.
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
	// Verb is Create, Change, Restart, Remove, Command or Apply.
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
// +kubebuilder:validation:Enum=Applied;Stale
type PlanState string

// The states of a plan that is not open any more.
const (
	PlanApplied PlanState = "Applied"
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
