package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FinalizerDaemon keeps a Daemon until its agent has stopped it and cleaned up.
const FinalizerDaemon = "holdfast.io/daemon"

// AnnotationStart asks for a daemon that is held back to try again; its value is the time at which that was asked for, RFC 3339.
const AnnotationStart = "holdfast.io/start-requested"

// AnnotationLeave asks for a daemon to leave its place, as its value says at which time, RFC 3339: another daemon
// takes its place. An OSD does not leave so: the exclude of its StorageNode or DriveGroup names its device.
const AnnotationLeave = "holdfast.io/leave-requested"

// AnnotationStop has a daemon stay stopped: its value is the time at which that was asked for, RFC
// 3339, and who asked, with a space between. Actions of the kind daemon.stop write it, once the
// storage system can do without the daemon.
const AnnotationStop = "holdfast.io/stop-requested"

// AnnotationRestart has the process of a daemon replaced, when all others can do without it. Its
// value is when that process was started, as the status has it, and the UID of the Action that
// asks, with a space between. Of another process it asks nothing.
const AnnotationRestart = "holdfast.io/restart-requested"

// LabelCluster is on each object that the engine makes for a StorageCluster, and carries the cluster's name.
const LabelCluster = "holdfast.io/cluster"

// AnnotationEntity is on each Secret with a cephx key, and names the entity that the key is for, such as osd.3.
const AnnotationEntity = "holdfast.io/ceph-entity"

// Daemon is one process that is wanted on one host: the platform-neutral pod. The leader writes its
// spec and its memory (annotations memory.holdfast.io/...), the agent of its host the status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=dm,categories=holdfast
// +kubebuilder:selectablefield:JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Host",type=string,JSONPath=`.spec.host`
// +kubebuilder:printcolumn:name="Wanted",type=string,JSONPath=`.spec.state`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`.status.state`
// +kubebuilder:printcolumn:name="Service",type=string,JSONPath=`.status.service.reason`
// +kubebuilder:printcolumn:name="Restarts",type=integer,JSONPath=`.status.restarts`
// +kubebuilder:printcolumn:name="Ready",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Daemon struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec DaemonSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status DaemonStatus `json:"status,omitempty"`
}

// WantedState is the state that is wanted of a daemon.
// +kubebuilder:validation:Enum=Prepared;Running;Stopped;Watched
type WantedState string

// The states that can be wanted.
const (
	// WantPrepared: files and data are made, the process is not started.
	WantPrepared WantedState = "Prepared"
	// WantRunning: the process runs, and is restarted when it ends.
	WantRunning WantedState = "Running"
	// WantStopped: the process is stopped, its data stays.
	WantStopped WantedState = "Stopped"
	// WantWatched: the process is one that Holdfast did not start. It is looked at, and neither started, stopped nor cleared away.
	WantWatched WantedState = "Watched"
)

// Reached is the state of a daemon that is as it is wanted.
func (w WantedState) Reached() DaemonState {
	switch w {
	case WantPrepared:
		return DaemonPrepared
	case WantStopped:
		return DaemonStopped
	default:
		return DaemonRunning
	}
}

// DaemonSpec says what to run. In Command, Parameters and the text of Files these words are replaced by the agent:
// ${DATA} (the daemon's own directory, kept), ${RUN} (its directory for sockets, gone after a boot), ${LOG} (its
// directory for logs), ${DEVICE:<name>} (where the device of that name is now).
// +kubebuilder:validation:XValidation:rule="self.host == oldSelf.host && self.type == oldSelf.type && self.id == oldSelf.id && self.cluster == oldSelf.cluster",message="cluster, type, id and host of a Daemon cannot be changed"
type DaemonSpec struct {
	// Cluster is the StorageCluster, in the same namespace, that the daemon belongs to.
	Cluster string `json:"cluster"`
	// Type says which service agent sets it up: ceph-mon, ceph-mgr, ceph-osd …
	// +kubebuilder:validation:MaxLength=63
	Type string `json:"type"`
	// ID is the daemon's name within its type, as the storage system knows it: a, 0 …
	// +kubebuilder:validation:MaxLength=63
	ID string `json:"id"`
	// Host is where it runs.
	Host string `json:"host"`
	// State is how far to bring it.
	State WantedState `json:"state"`
	// Command is the program and its arguments. No secret may be among them.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	Command []string `json:"command"`
	// Files are written before the process starts and whenever they change. A changed file does not restart the process.
	// +optional
	// +listType=map
	// +listMapKey=path
	// +kubebuilder:validation:MaxItems=32
	Files []DaemonFile `json:"files,omitempty"`
	// Devices are the block devices that the daemon alone may use.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=128
	Devices []DaemonDevice `json:"devices,omitempty"`
	// Parameters are what the service agent needs to know beside the files, and nothing else. Never a secret.
	// +optional
	// +kubebuilder:validation:MaxProperties=32
	Parameters map[string]string `json:"parameters,omitempty"`
	// StopTimeout is how long the process may take to end after SIGTERM, before it is killed.
	// +optional
	// +kubebuilder:default="30s"
	StopTimeout metav1.Duration `json:"stopTimeout,omitempty"`
	// OnRemoval says what the agent does with the daemon's data when the Daemon is deleted.
	// +optional
	// +kubebuilder:default=Retain
	OnRemoval DeletionPolicy `json:"onRemoval,omitempty"`
	// StopOrder tells which daemons of a host stop first when several have to: lower numbers first.
	// +optional
	StopOrder int32 `json:"stopOrder,omitempty"`
}

// DaemonFile is one file in the daemon's directory.
type DaemonFile struct {
	// Path is relative to the daemon's directory.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="!self.startsWith('/') && !self.contains('..')",message="path must lie below the daemon's directory"
	Path string `json:"path"`
	// Sources are joined to the file's content, in their order.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Sources []FileSource `json:"sources"`
}

// FileSource is a piece of a file. A file with a secret in it is readable by its owner alone.
// +kubebuilder:validation:XValidation:rule="has(self.text) != has(self.secret)",message="a source is either text or secret"
type FileSource struct {
	// +optional
	Text *string `json:"text,omitempty"`
	// +optional
	Secret *SecretKey `json:"secret,omitempty"`
}

// SecretKey names one entry of a Secret in the Daemon's namespace.
type SecretKey struct {
	Name string `json:"name"`
	Key  string `json:"key"`
}

// KeyLUKS is the entry of a Secret that a device is encrypted with (DaemonDevice, KeySecret).
const KeyLUKS = "luks"

// DaemonDevice gives a device to a daemon.
type DaemonDevice struct {
	// Name is what the daemon calls it, such as block.
	Name string `json:"name"`
	// ID is the device's identity, as in the Host's inventory.
	ID string `json:"id"`
	// Of is the identity of the disk on which the agent makes it, as a partition. Empty for a device that is found.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Of string `json:"of,omitempty"`
	// Bytes is how large that part is made.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// KeySecret is the Secret whose entry "luks" the device is encrypted with; empty for one that is not. The daemon sees what is on it in clear.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	KeySecret string `json:"keySecret,omitempty"`
}

// DaemonState is how far a daemon has come.
// +kubebuilder:validation:Enum=Pending;Preparing;Prepared;Running;BackOff;Stopping;Stopped;Failed
type DaemonState string

// The states of a daemon.
const (
	DaemonPending   DaemonState = "Pending"
	DaemonPreparing DaemonState = "Preparing"
	DaemonPrepared  DaemonState = "Prepared"
	DaemonRunning   DaemonState = "Running"
	// DaemonBackOff: the process ended and is started again after a pause.
	DaemonBackOff  DaemonState = "BackOff"
	DaemonStopping DaemonState = "Stopping"
	DaemonStopped  DaemonState = "Stopped"
	// DaemonFailed: preparing failed; it is tried again after a pause. Message says what to do.
	DaemonFailed DaemonState = "Failed"
)

// DaemonStatus is what the agent of the daemon's host reports. It alone writes all fields but Service and Conditions.
type DaemonStatus struct {
	// ObservedGeneration is the generation of the spec that State belongs to. Its writer is the agent.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// State is how far the daemon has come to its wanted state. Its writer is the agent.
	State DaemonState `json:"state,omitempty"`
	// Message says in a sentence what happens or is wrong. Its writer is the agent.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^([^\p{C}\p{Zl}\p{Zp}]|[\n\t])*$`
	Message string `json:"message,omitempty"`
	// PID is the process on its host. Its writer is the agent.
	PID int32 `json:"pid,omitempty"`
	// Started is when the process was started. Its writer is the agent.
	Started *metav1.MicroTime `json:"started,omitempty"`
	// Restarts counts how often the process ended without a request. Its writer is the agent.
	Restarts int32 `json:"restarts,omitempty"`
	// LastExit is how the process ended last. Its writer is the agent.
	LastExit *DaemonExit `json:"lastExit,omitempty"`
	// Ends are when the process ended by itself in the last minutes, the newest last. Their writer is the agent.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	Ends []metav1.MicroTime `json:"ends,omitempty"`
	// Service says why a daemon does not serve although its process runs, as the storage system reports it. Its writer is the leader.
	Service *DaemonService `json:"service,omitempty"`
	// Version is the release of the program, as the program reports it. Its writer is the agent.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Version string `json:"version,omitempty"`
	// Report is what the service itself says of its state, where its driver asks for that: text that only the driver reads. The
	// agent writes it when it changed.
	// +kubebuilder:validation:MaxLength=131072
	Report string `json:"report,omitempty"`
	// Conditions are Ready, Reconciling and Stalled. The agent writes them with State. While the agent is disconnected
	// the leader sets Ready to Unknown, which the agent takes back.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ParameterForeign is the parameter of a Daemon that stands for a process which Holdfast did not start: the cluster that the process is of, as
// in ForeignDaemon.cluster. It stays when the daemon was handed over, and has its agent end that process before it starts another one.
const ParameterForeign = "foreign"

// ParameterOrch is the parameter of a ceph-mgr that has the agent give it the module of 'ceph orch',
// and serve the socket that it calls (package orch/wire). The value is not read.
const ParameterOrch = "orch"

// ParameterReport is the parameter of a Daemon that asks its agent for a report, and says which. Empty: for none.
const ParameterReport = "report"

// ParameterNewcomer is the parameter of a Daemon whose storage system knew nothing of its node when it was made: what a Daemon of the same
// name left on the host, such as before the host was removed while it was away, is moved aside.
const ParameterNewcomer = "newcomer"

// MaxReport is how long a report may be, in bytes.
const MaxReport = 128 << 10

// DaemonExit is how a process ended.
type DaemonExit struct {
	// Time is when it was noticed.
	Time metav1.MicroTime `json:"time"`
	// Reason is such as "exit code 1" or "signal: killed"; "unknown" where the process was not the agent's child.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Reason string `json:"reason"`
	// Log is the end of what it wrote.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:Pattern=`^([^\p{C}\p{Zl}\p{Zp}]|[\n\t])*$`
	Log string `json:"log,omitempty"`
	// Cause is why it ended, where the agent knows what the log says; empty otherwise.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z]*$`
	Cause Reason `json:"cause,omitempty"`
	// Message is the cause in a sentence, or the last line of the log that tells of a failure.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Message string `json:"message,omitempty"`
	// Next is what a user does about it.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Next string `json:"next,omitempty"`
}

// ServiceState is what a daemon does for its storage system.
// +kubebuilder:validation:Enum=Standby;Limited;OutOfService
type ServiceState string

// The states of a daemon's service: it can take over, it serves less than it should, or it serves nothing.
const (
	ServiceStandby, ServiceLimited, OutOfService ServiceState = "Standby", "Limited", "OutOfService"
)

// DaemonService is what the storage system says of a daemon, since when, why, and what a user does about it.
type DaemonService struct {
	State ServiceState `json:"state"`
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z]*$`
	Reason Reason `json:"reason"`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Message string `json:"message"`
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\p{C}\p{Zl}\p{Zp}]*$`
	Next  string      `json:"next,omitempty"`
	Since metav1.Time `json:"since"`
}

// DaemonList is a list of Daemons.
// +kubebuilder:object:root=true
type DaemonList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Daemon `json:"items"`
}
