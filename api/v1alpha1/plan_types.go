package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan asks the leader for a plan: what happens if some objects are applied or deleted. The leader answers in status.proposal,
// with the rights of the user who created the Plan. 'holdfast apply --plan' does exactly what the answer says, or refuses. The spec
// and the answer never change. The leader removes a Plan after a week, or after the time in the annotation holdfast.io/expires-after.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pl
// +kubebuilder:printcolumn:name="Changes",type=integer,JSONPath=`.status.proposal.count`
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.status.proposal.risk`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Requester",type=string,JSONPath=`.spec.requester`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.proposal) || has(self.status) && has(self.status.proposal) && self.status.proposal == oldSelf.status.proposal",message="the answer of the leader cannot be changed"
type Plan struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec PlanSpec `json:"spec"`
	// +optional
	Status PlanStatus `json:"status,omitempty"`
}

// PlanSpec is the question. Older command lines planned by themselves, and set the fields of PlanContent.
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Plan cannot be changed: make another one with 'holdfast plan -f'"
type PlanSpec struct {
	// Operation says what is done with the objects of the manifest.
	// +optional
	// +kubebuilder:default=Apply
	Operation PlanOperation `json:"operation,omitempty"`
	// Conflicts says what becomes of fields that another user has applied.
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
	Manifest    string `json:"manifest"`
	PlanContent `json:",inline"`
	// Requester is the user who created the Plan, and Groups are the groups of that user. The API server sets both from the request. The
	// leader plans with the rights of that user.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Requester string `json:"requester,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
	// FieldManager is the field manager that applies the objects; the default is the requester.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	FieldManager string `json:"fieldManager,omitempty"`
}

// PlanOperation is what a plan does with its objects.
// +kubebuilder:validation:Enum=Apply;Delete
type PlanOperation string

// The operations.
const (
	PlanApply  PlanOperation = "Apply"
	PlanDelete PlanOperation = "Delete"
)

// PlanConflicts says what becomes of fields that another user has applied.
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
	// Step numbers what follows each other in the cluster. Changes of one step happen at one time; the objects themselves
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
	// RiskRestart: a daemon is restarted; the service continues.
	RiskRestart Risk = "Restart"
	// RiskRedundancy: there are fewer copies, mons or standbys for a while.
	RiskRedundancy Risk = "Redundancy"
	// RiskData: data is destroyed. Such a plan must be named to be carried out.
	RiskData Risk = "Data"
)

// PlanState is what became of a plan.
// +kubebuilder:validation:Enum=Proposed;Failed;Applying;Applied;Stale
type PlanState string

// The states of a plan.
const (
	// PlanProposed: the leader has answered, and the plan is not applied.
	PlanProposed PlanState = "Proposed"
	// PlanFailed: the leader could not plan; the message has the cause.
	PlanFailed PlanState = "Failed"
	// PlanApplying: its objects are being written. If that was cut off, applying it again continues.
	PlanApplying PlanState = "Applying"
	PlanApplied  PlanState = "Applied"
	// PlanStale: the world moved, so it can never be applied.
	PlanStale PlanState = "Stale"
)

// PlanStatus is the leader's answer, and what became of the plan. It is empty until the leader has answered.
type PlanStatus struct {
	// Proposal is the leader's answer.
	// +optional
	Proposal *PlanProposal `json:"proposal,omitempty"`
	// +optional
	State PlanState `json:"state,omitempty"`
	// Message says in a sentence what moved, who applied it, or why the leader has no answer.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
	// +optional
	Time *metav1.Time `json:"time,omitempty"`
}

// AnnotationExpiresAfter on a Plan is the time after its creation at which the leader removes it, such as 10m. Remove the annotation to
// keep the Plan for a week.
const AnnotationExpiresAfter = "holdfast.io/expires-after"

// SecretTypePlan is the type of the Secret with the name of a Plan. A Plan holds no Secrets, because others may read Plans: its manifest
// has the names of Secrets only, and this Secret has their content, as JSON, by NAMESPACE.NAME. Such a Plan is not kept.
const SecretTypePlan = "holdfast.io/plan"

// PlanContent is what a plan comes to, and what it was made from.
type PlanContent struct {
	// Basis is everything that the plan was made from and that decides what it comes to.
	// +optional
	// +listType=atomic
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
}

// PlanProposal is the leader's answer: what happens if the plan is applied.
type PlanProposal struct {
	// Leader is the name of the leader.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Leader      string `json:"leader,omitempty"`
	PlanContent `json:",inline"`
	// Destroys are the changes that destroy data because of this plan; data that is destroyed without the plan, too, is not listed.
	// 'holdfast apply' carries such changes out only by the name of their plan.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Destroys []PlanChange `json:"destroys,omitempty"`
	// DestroysCount is the number of all changes that destroy data; Destroys may have the first ones only.
	// +optional
	DestroysCount int32 `json:"destroysCount,omitempty"`
	// Notes say what is refused, and what is unknown.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Notes []PlanNote `json:"notes,omitempty"`
	// Report is the plan as text, as 'holdfast plan' prints it. A long report is cut.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	Report string `json:"report,omitempty"`
}

// PlanNote says something that the user has to know before the plan is applied.
type PlanNote struct {
	// Reason is the kind of note.
	Reason PlanNoteReason `json:"reason"`
	// Object is the cluster that does not answer, such as "storagecluster/default/ceph"; empty in other notes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object,omitempty"`
	// Message is a sentence.
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message"`
}

// PlanNoteReason is the kind of a PlanNote.
// +kubebuilder:validation:Enum=Refused;HostAwaited;ActionRefused;NoHost;NoCluster;NoAnswer
type PlanNoteReason string

// The reasons of notes.
const (
	// NoteRefused: the storage system or Holdfast refuses a change now.
	NoteRefused PlanNoteReason = "Refused"
	// NoteHostAwaited: a StorageNode is refused because it selects no host; the host may join later.
	NoteHostAwaited PlanNoteReason = "HostAwaited"
	// NoteActionRefused: the leader or an agent would refuse an Action.
	NoteActionRefused PlanNoteReason = "ActionRefused"
	// NoteNoHost: a StorageNode selects no host, and the plan does not change that.
	NoteNoHost PlanNoteReason = "NoHost"
	// NoteNoCluster: an object names a StorageCluster that does not exist.
	NoteNoCluster PlanNoteReason = "NoCluster"
	// NoteNoAnswer: the storage system of a cluster does not answer, so the plan is incomplete.
	NoteNoAnswer PlanNoteReason = "NoAnswer"
)

// ProposalOf is the answer to a plan, or nil. Older command lines wrote the answer into the spec.
func (p *Plan) ProposalOf() *PlanProposal {
	if p.Status.Proposal == nil && p.Spec.Digest != "" {
		return &PlanProposal{PlanContent: p.Spec.PlanContent}
	}
	return p.Status.Proposal
}

// PlanList is a list of Plans.
// +kubebuilder:object:root=true
type PlanList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Plan `json:"items"`
}
