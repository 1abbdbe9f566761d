package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Plan asks what would come of applying or deleting some objects. The leader answers in the status, with the rights of who asks, and
// with everything that its answer was made from, so that 'holdfast apply --plan' does exactly that or refuses. Neither the spec nor the
// answer ever changes. The leader removes a Plan after a week, or when the time is over that its annotation holdfast.io/expires-after names.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=pl
// +kubebuilder:printcolumn:name="Changes",type=integer,JSONPath=`.status.proposal.count`
// +kubebuilder:printcolumn:name="Risk",type=string,JSONPath=`.status.proposal.risk`
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

// PlanSpec is what is asked about. Basis, Facts, Changes, Digest, Count and Risk are set by older programs, which found the answer out
// themselves: see PlanProposal.
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
	// Requester is who made the plan, and Groups are theirs. The API server sets both from the request. What the plan comes to is looked
	// at with their rights.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Requester string `json:"requester,omitempty"`
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	// +kubebuilder:validation:items:MaxLength=256
	Groups []string `json:"groups,omitempty"`
	// FieldManager is in whose name the objects would be applied; without it, that of the requester.
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
// +kubebuilder:validation:Enum=Proposed;Failed;Applying;Applied;Stale
type PlanState string

// The states of a plan.
const (
	// PlanProposed: the leader has answered, and nothing was begun.
	PlanProposed PlanState = "Proposed"
	// PlanFailed: the leader could not find out what would come of it, and says why.
	PlanFailed PlanState = "Failed"
	// PlanApplying: its objects are being written. If that was cut off, applying it again goes on with it.
	PlanApplying PlanState = "Applying"
	PlanApplied  PlanState = "Applied"
	// PlanStale: the world moved, so it can never be applied.
	PlanStale PlanState = "Stale"
)

// PlanStatus is what the leader says of a plan, and what became of it. Empty: the leader has not looked at it yet.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.proposal) || has(self.proposal) && self.proposal == oldSelf.proposal",message="what the leader answered cannot be changed"
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

// AnnotationExpiresAfter on a Plan says how long after its creation the leader removes it, such as 10m. It may be taken away, which keeps
// the Plan for a week.
const AnnotationExpiresAfter = "holdfast.io/expires-after"

// SecretTypePlan is the type of the Secret that goes with a Plan, and has its name: others may read Plans, so the manifest has Secrets by
// their names alone, and this one holds them, as JSON, by NAMESPACE.NAME. It is there until the leader has answered, and such a Plan is not
// kept.
const SecretTypePlan = "holdfast.io/plan"

// PlanProposal is what would come of a plan.
type PlanProposal struct {
	// Leader is the server that found it out.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Leader string `json:"leader,omitempty"`
	// Basis is everything that the answer was made from and that decides what it comes to.
	// +optional
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
	// +kubebuilder:validation:MaxLength=128
	Digest string `json:"digest"`
	// Count is the number of all changes.
	// +optional
	Count int32 `json:"count,omitempty"`
	// Risk is the highest risk among the changes.
	// +optional
	Risk Risk `json:"risk,omitempty"`
	// Destroys are the changes that destroy data because of this plan: what is destroyed anyway is not among them. Whoever applies a plan
	// that has any has to name it.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8192
	Destroys []PlanChange `json:"destroys,omitempty"`
	// DestroysCount is the number of all of them, where Destroys has the first ones alone.
	// +optional
	DestroysCount int32 `json:"destroysCount,omitempty"`
	// Notes are what is refused, and what nobody knows.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=1024
	Notes []PlanNote `json:"notes,omitempty"`
	// Report is all of it as a person reads it; its beginning, where the plan would become too large.
	// +optional
	// +kubebuilder:validation:MaxLength=524288
	Report string `json:"report,omitempty"`
}

// PlanNote is something that whoever applies a plan has to know.
type PlanNote struct {
	// Reason says what it is.
	Reason PlanNoteReason `json:"reason"`
	// Object is the cluster that does not answer, such as "storagecluster/default/ceph"; empty in other notes.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Object string `json:"object,omitempty"`
	// Message is a sentence.
	// +kubebuilder:validation:MaxLength=8192
	Message string `json:"message"`
}

// PlanNoteReason says what a PlanNote is about.
// +kubebuilder:validation:Enum=Refused;HostAwaited;ActionRefused;NoHost;NoCluster;NoAnswer
type PlanNoteReason string

// The reasons of notes.
const (
	// NoteRefused: the storage system, or Holdfast, refuses it as things are.
	NoteRefused PlanNoteReason = "Refused"
	// NoteHostAwaited: a StorageNode is refused because it selects no host; one may have yet to join.
	NoteHostAwaited PlanNoteReason = "HostAwaited"
	// NoteActionRefused: whoever carries an Action out would refuse it.
	NoteActionRefused PlanNoteReason = "ActionRefused"
	// NoteNoHost: a StorageNode selects no host, and selected none before.
	NoteNoHost PlanNoteReason = "NoHost"
	// NoteNoCluster: an object names a StorageCluster that there is not.
	NoteNoCluster PlanNoteReason = "NoCluster"
	// NoteNoAnswer: the storage system of a cluster does not answer, so that nobody knows all that would happen.
	NoteNoAnswer PlanNoteReason = "NoAnswer"
)

// ProposalOf is the answer to a plan, nil where there is none yet. Of one that was made by an older program it stands in the spec.
func (p *Plan) ProposalOf() *PlanProposal {
	if s := &p.Spec; p.Status.Proposal == nil && s.Digest != "" {
		return &PlanProposal{
			Basis: s.Basis, Facts: s.Facts, Changes: s.Changes, Digest: s.Digest, Count: s.Count, Risk: s.Risk,
		}
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
