package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Action is one operation on a running system: entering maintenance, draining a host, restarting a daemon, rotating the
// authority. It is a completion as Ceph's orchestrator modules know it ("ceph-mgr orchestrator modules", Completions): first
// Persistent, then Effective. Who creates it writes the spec; the leader writes the status, but for the steps of an action
// that an agent carries out, which that agent writes while the action is New or Running.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=act,categories=holdfast
// +kubebuilder:selectablefield:JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Kind",type=string,JSONPath=`.spec.kind`
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Progress",type=string,JSONPath=`.status.progress`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Action struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec ActionSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status ActionStatus `json:"status,omitempty"`
}

// ActionSpec is what is asked for. Only Approval and Want can be changed later.
// +kubebuilder:validation:XValidation:rule="self.kind == oldSelf.kind && self.target == oldSelf.target && has(self.cluster) == has(oldSelf.cluster) && (!has(self.cluster) || self.cluster == oldSelf.cluster) && has(self.host) == has(oldSelf.host) && (!has(self.host) || self.host == oldSelf.host) && has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters) && has(self.requester) == has(oldSelf.requester) && (!has(self.requester) || self.requester == oldSelf.requester) && duration(has(self.timeout) ? self.timeout : '0s') == duration(has(oldSelf.timeout) ? oldSelf.timeout : '0s') && duration(has(self.expiresAfter) ? self.expiresAfter : '0s') == duration(has(oldSelf.expiresAfter) ? oldSelf.expiresAfter : '0s')",message="of an Action only spec.approval and spec.want can be changed: create another one"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.want) || oldSelf.want != 'Cancelled' || has(self.want) && self.want == 'Cancelled'",message="a cancelled Action cannot be taken up again: create another one"
type ActionSpec struct {
	// Kind names the operation; 'holdfast action kinds' lists them. An unknown one fails at once.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z]+(-[a-z]+)*([.][a-z]+(-[a-z]+)*)+$`
	Kind string `json:"kind"`
	// Target is what it is done to, such as "host/h1" or "daemon/ceph-osd-3".
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	Target string `json:"target"`
	// Cluster is the StorageCluster, in the action's own namespace, that it belongs to. Actions that concern no single
	// cluster lie in the namespace holdfast-system and leave it out.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Cluster string `json:"cluster,omitempty"`
	// Host is the host that is worked on. No two actions of one host run at the same time. Some kinds are carried out by the
	// agent of this host, all others by the leader.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Host string `json:"host,omitempty"`
	// Parameters say more, as the kind wants it. Never a secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	Parameters map[string]ActionParameter `json:"parameters,omitempty"`
	// Approval says whether the action may be done. The API server sets it when the action is created: Required where the
	// approval policy of a cluster concerned says so, or else Granted. An administrator sets it to Granted or Rejected.
	// +optional
	Approval Approval `json:"approval,omitempty"`
	// Want says how the action is wanted to end.
	// +optional
	// +kubebuilder:default=Done
	Want ActionWant `json:"want,omitempty"`
	// Requester is who created the action. The API server sets it from the certificate of the request.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Requester string `json:"requester,omitempty"`
	// Timeout bounds the time from the first step to the end. An action that takes longer is undone, as if it were cancelled,
	// and fails. Zero: the kind's own.
	// +optional
	Timeout metav1.Duration `json:"timeout,omitempty"`
	// ExpiresAfter bounds how long the action may wait to be approved and started. Zero: the kind's own.
	// +optional
	ExpiresAfter metav1.Duration `json:"expiresAfter,omitempty"`
}

// ActionParameter is the value of a parameter of an Action.
// +kubebuilder:validation:MaxLength=32768
type ActionParameter string

// ActionDaemonRestart is the kind of Actions that end the process of a daemon, so that another one takes its place.
const ActionDaemonRestart = "daemon.restart"

// ActionDaemonStop and ActionDaemonStart are the kinds of Actions that have a daemon stay stopped, and that end this.
const (
	ActionDaemonStop  = "daemon.stop"
	ActionDaemonStart = "daemon.start"
)

// ActionServiceCommand is the kind of Actions that carry a command of a driver to the agent of a
// daemon. Only the leader makes and removes them, as part of the plan of a cluster: they need no
// approval of their own, and make no events.
const ActionServiceCommand = "service.command"

// Approval says whether an Action may be carried out.
// +kubebuilder:validation:Enum=Granted;Required;Rejected
type Approval string

// The approvals.
const (
	ApprovalGranted  Approval = "Granted"
	ApprovalRequired Approval = "Required"
	ApprovalRejected Approval = "Rejected"
)

// ActionWant says how an Action is wanted to end.
// +kubebuilder:validation:Enum=Done;Cancelled
type ActionWant string

// What can be wanted of an Action.
const (
	WantDone ActionWant = "Done"
	// WantCancelled: what was begun is undone, or finished where a half-way stop would break something.
	WantCancelled ActionWant = "Cancelled"
)

// ActionState is how far an Action has come.
// +kubebuilder:validation:Enum=PendingApproval;PendingSchedule;New;Running;Done;Failed;Cancelled;Lost
type ActionState string

// The states of an Action. The last four are final.
const (
	// ActionPendingApproval: an administrator has to grant it ('holdfast action approve').
	ActionPendingApproval ActionState = "PendingApproval"
	// ActionPendingSchedule: it waits for its turn; WaitsFor says for what.
	ActionPendingSchedule ActionState = "PendingSchedule"
	// ActionNew: it is its turn, and who carries it out has not begun.
	ActionNew ActionState = "New"
	// ActionRunning: steps are under way.
	ActionRunning ActionState = "Running"
	// ActionDone: all steps are done and the storage system itself confirms it.
	ActionDone ActionState = "Done"
	// ActionFailed: Message says why, and what is left of it.
	ActionFailed ActionState = "Failed"
	// ActionCancelled: it was rejected or cancelled, and nothing is left of it.
	ActionCancelled ActionState = "Cancelled"
	// ActionLost: its executor knows nothing of it, so its result is unknown.
	ActionLost ActionState = "Lost"
)

// Final says whether an Action in this state has ended.
func (s ActionState) Final() bool {
	switch s {
	case ActionDone, ActionFailed, ActionCancelled, ActionLost:
		return true
	default:
		return false
	}
}

// Conditions of an Action.
const (
	// ActionPersistent: it is recorded in etcd, and survives any crash.
	ActionPersistent = "Persistent"
	// ActionEffective: the storage system itself confirms that it is so. False says why it is not yet, or never will be.
	ActionEffective = "Effective"
)

// ActionStatus is what became of the Action so far.
type ActionStatus struct {
	// ObservedGeneration is the generation of the spec that State belongs to.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// +optional
	State ActionState `json:"state,omitempty"`
	// Message says in a sentence what happens, what the action waits for, or how it ended.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`
	// WaitsFor says in a sentence what the action waits for now; empty when it waits for nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	WaitsFor string `json:"waitsFor,omitempty"`
	// Progress is the steps done and all steps, such as "2/4".
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Progress string `json:"progress,omitempty"`
	// Steps are what the action consists of, in order.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	Steps []ActionStep `json:"steps,omitempty"`
	// Attempts counts how often a step was tried again after an error since the last step that was done.
	// +optional
	Attempts int32 `json:"attempts,omitempty"`
	// Executor is who carries the action out: the leader, or the agent of spec.host. The leader sets it when it accepts the
	// action.
	// +optional
	Executor ActionExecutor `json:"executor,omitempty"`
	// Output is what an action that reads something found, without secrets. The action is removed
	// soon after its end.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Output string `json:"output,omitempty"`
	// Next is where Output ends, for the action that reads what comes after it.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[0-9a-z.]*$`
	Next string `json:"next,omitempty"`
	// Approver is who granted or rejected the action.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Approver string `json:"approver,omitempty"`
	// Started is when the first step began.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// Finished is when a final state was reached.
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
	// Estimated is when the action will probably be done.
	// +optional
	Estimated *metav1.Time `json:"estimated,omitempty"`
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ActionExecutor says who carries an Action out.
// +kubebuilder:validation:Enum=Leader;Agent
type ActionExecutor string

// The executors.
const (
	// ByLeader: the leading server.
	ByLeader ActionExecutor = "Leader"
	// ByAgent: the agent of spec.host.
	ByAgent ActionExecutor = "Agent"
)

// AnnotationApprover holds who set spec.approval of an Action last. Only the API server itself sets it.
const AnnotationApprover = Group + "/approver"

// ActionStep is one step of an Action. A step is begun only when the one before it is done.
type ActionStep struct {
	// +kubebuilder:validation:MaxLength=63
	Name string `json:"name"`
	// +optional
	State StepState `json:"state,omitempty"`
	// Message says in a sentence what happens, or the result.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
	// Done and Total measure the step, in Unit, where it can be measured.
	// +optional
	Done int64 `json:"done,omitempty"`
	// +optional
	Total int64 `json:"total,omitempty"`
	// Unit is what is counted: bytes, PGs, daemons.
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Unit string `json:"unit,omitempty"`
	// Started is when the step was begun, or its undoing.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// +optional
	Finished *metav1.Time `json:"finished,omitempty"`
}

// StepState is where a step is.
// +kubebuilder:validation:Enum=Pending;Running;Done;Failed;Undoing;Undone
type StepState string

// The states of a step. A step that is Running may have been begun: whoever finds it so does it again.
const (
	StepPending StepState = "Pending"
	StepRunning StepState = "Running"
	StepDone    StepState = "Done"
	StepFailed  StepState = "Failed"
	StepUndoing StepState = "Undoing"
	StepUndone  StepState = "Undone"
)

// ActionList is a list of Actions.
// +kubebuilder:object:root=true
type ActionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Action `json:"items"`
}
