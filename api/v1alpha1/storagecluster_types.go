package v1alpha1

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// StorageType names a storage system. The values are QuarterMaster's.
// +kubebuilder:validation:Enum=ceph;glusterfs;torus
type StorageType string

// The storage systems.
const (
	StorageCeph      StorageType = "ceph"
	StorageGlusterFS StorageType = "glusterfs"
	StorageTorus     StorageType = "torus"
)

// StorageCluster declares one storage system. The administrator writes its spec, the engine its status.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Namespaced,shortName=stc,categories=holdfast
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 40",message="the name of a StorageCluster may have at most 40 characters, because the names of its daemons are made from it"
type StorageCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec StorageClusterSpec `json:"spec"`
	// +optional
	// +kubebuilder:default:={"observedGeneration":-1}
	Status StorageClusterStatus `json:"status,omitempty"`
}

// StorageClusterSpec is what the administrator wants.
// +kubebuilder:validation:XValidation:rule="self.type == oldSelf.type",message="type cannot be changed: delete the cluster and create another one"
// +kubebuilder:validation:XValidation:rule="self.type != 'ceph' || has(self.ceph)",message="type is ceph, so spec.ceph must be there: at least 'ceph: {}'"
// +kubebuilder:validation:XValidation:rule="self.type == 'ceph' || !has(self.ceph)",message="spec.ceph is for clusters of type ceph: remove it"
// +kubebuilder:validation:XValidation:rule="self.type == 'glusterfs' || !has(self.glusterfs)",message="spec.glusterfs is for clusters of type glusterfs: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'torus' || has(self.torus)",message="type is torus, so spec.torus must be there: at least 'torus: {}'"
// +kubebuilder:validation:XValidation:rule="self.type == 'torus' || !has(self.torus)",message="spec.torus is for clusters of type torus: remove it"
type StorageClusterSpec struct {
	// Type is the storage system to run.
	Type StorageType `json:"type"`
	// Network says which addresses the daemons use.
	// +optional
	Network NetworkSpec `json:"network,omitempty"`
	// Interval is the time between two orchestrations of a cluster in which nothing changes. Changes are acted on at once.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="interval must be between 1s and 1h"
	Interval metav1.Duration `json:"interval,omitempty"`
	// Mode says what the engine does with the cluster.
	// +optional
	// +kubebuilder:default=Active
	Mode ClusterMode `json:"mode,omitempty"`
	// Approval says whether Actions that concern the cluster have to be granted by an administrator before they start.
	// +optional
	// +kubebuilder:default=Granted
	// +kubebuilder:validation:XValidation:rule="self != 'Rejected'",message="approval is Granted or Required"
	Approval Approval `json:"approval,omitempty"`
	// DeletionPolicy says what happens to the data when the cluster is deleted.
	// +optional
	// +kubebuilder:default=Retain
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
	// +optional
	Ceph *CephSpec `json:"ceph,omitempty"`
	// +optional
	GlusterFS *GlusterFSSpec `json:"glusterfs,omitempty"`
	// +optional
	Torus *TorusSpec `json:"torus,omitempty"`
}

// ClusterMode says what the engine does with a cluster.
// +kubebuilder:validation:Enum=Active;Observed;Paused
type ClusterMode string

// The modes of a cluster.
const (
	ClusterActive ClusterMode = "Active"
	// ClusterObserved: the engine looks, tells of differences and says what it would do, and changes nothing.
	ClusterObserved ClusterMode = "Observed"
	// ClusterPaused: the engine does not even look.
	ClusterPaused ClusterMode = "Paused"
)

// ModeOf is the cluster's mode; Active where none is set.
func (c *StorageCluster) ModeOf() ClusterMode {
	if c.Spec.Mode == "" {
		return ClusterActive
	}
	return c.Spec.Mode
}

// PolicyOf says what becomes of the cluster's data when it is deleted; Retain where nothing is set.
func (c *StorageCluster) PolicyOf() DeletionPolicy {
	return cmp.Or(c.Spec.DeletionPolicy, DeletionRetain)
}

// AnnotationOrchestrate asks for an orchestration now; its value is the time at which it was asked for, RFC 3339.
const AnnotationOrchestrate = "holdfast.io/orchestrate-requested"

// DeletionPolicy says what happens to data whose owner is deleted.
// +kubebuilder:validation:Enum=Retain;Wipe
type DeletionPolicy string

// The deletion policies.
const (
	// DeletionRetain: daemons are stopped; devices, the daemons' directories (moved aside) and the keys stay as they are.
	DeletionRetain DeletionPolicy = "Retain"
	// DeletionWipe: devices are wiped, directories and keys removed. The data is lost.
	DeletionWipe DeletionPolicy = "Wipe"
)

// NetworkSpec chooses networks by their address ranges.
type NetworkSpec struct {
	// Public is the network that clients and daemons meet on, in CIDR notation. Without it each daemon uses the address
	// of its StorageNode's storageNetwork, or else its Host's first address.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="public must be a network in CIDR notation such as 10.0.0.0/24"
	Public string `json:"public,omitempty"`
	// Cluster is the network for replication between OSDs, in CIDR notation. Without it they use Public.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="isCIDR(self)",message="cluster must be a network in CIDR notation such as 10.0.1.0/24"
	Cluster string `json:"cluster,omitempty"`
}

// CephSpec is the part of a StorageCluster that only Ceph has.
type CephSpec struct {
	// Mon places the monitors.
	// +optional
	// +kubebuilder:default={count: 3}
	Mon CephMonSpec `json:"mon,omitempty"`
	// Mgr places the managers.
	// +optional
	// +kubebuilder:default={count: 2}
	Mgr CephMgrSpec `json:"mgr,omitempty"`
	// Recovery says how much of the disks' time goes into making copies anew and moving data, against that of clients. Without it Ceph's own
	// settings count.
	// +optional
	Recovery CephRecovery `json:"recovery,omitempty"`
	// Scrub says when data is compared with its copies. What is not set is as Ceph has it.
	// +optional
	Scrub *CephScrub `json:"scrub,omitempty"`
	// Config is Ceph's own configuration: section (global, mon, mgr, osd, client, or one daemon such as osd.3), option,
	// value. It is stored in the mons, so that daemons and clients follow at once; daemons are started again, one after the other, for options
	// that count from a start. What is taken out of it is taken back; what was set by hand ('ceph config set') is left alone.
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	// +kubebuilder:validation:XValidation:rule="self.all(s, s.matches('^(global|((mon|mgr|osd|mds|client)([.][A-Za-z0-9._-]+)?))$'))",message="a section of config must be global, mon, mgr, osd, mds or client, or one daemon of these such as osd.3"
	Config map[string]CephOptions `json:"config,omitempty"`
	// Orch says whether Holdfast answers 'ceph orch'. It does unless orch.state is Disabled.
	// +optional
	Orch *CephOrchSpec `json:"orch,omitempty"`
}

// CephOrchSpec is about the orchestrator interface of ceph-mgr ('ceph orch').
type CephOrchSpec struct {
	// State is Enabled where Holdfast is the back end of 'ceph orch'. A cluster that is made so has it from its birth;
	// in an existing one each manager is started again once. A back end that a user chose is left alone.
	// +optional
	// +kubebuilder:default=Enabled
	State CephOrchState `json:"state,omitempty"`
	// NewDevices is what becomes of disks that come later and match a drive group that 'ceph orch apply' declares: Report tells of
	// them, Take makes OSDs on them at once, as Ceph's own orchestrator does.
	// +optional
	// +kubebuilder:default=Report
	NewDevices NewDevicePolicy `json:"newDevices,omitempty"`
	// Conflicts says what becomes of a call of 'ceph orch' that changes a field that another user applied.
	// +optional
	// +kubebuilder:default=Refuse
	Conflicts CephOrchConflicts `json:"conflicts,omitempty"`
}

// CephOrchConflicts says what becomes of a call that changes what another user applied.
// +kubebuilder:validation:Enum=Refuse;Take
type CephOrchConflicts string

// The ways with conflicts.
const (
	// CephOrchRefuse: the call is refused, and says who applied the field.
	CephOrchRefuse CephOrchConflicts = "Refuse"
	// CephOrchTake: the call counts.
	CephOrchTake CephOrchConflicts = "Take"
)

// CephOrchState says whether Holdfast answers 'ceph orch'.
// +kubebuilder:validation:Enum=Enabled;Disabled
type CephOrchState string

// The states of 'ceph orch'.
const (
	CephOrchEnabled  CephOrchState = "Enabled"
	CephOrchDisabled CephOrchState = "Disabled"
)

// CephRecovery is a pace.
// +kubebuilder:validation:Enum=Gentle;Balanced;Fast
type CephRecovery string

// The paces.
const (
	// RecoveryGentle: clients come first; lost copies are missing for longer.
	RecoveryGentle CephRecovery = "Gentle"
	// RecoveryBalanced: as Ceph has it by default.
	RecoveryBalanced CephRecovery = "Balanced"
	// RecoveryFast: copies come first; clients wait longer for their data meanwhile.
	RecoveryFast CephRecovery = "Fast"
)

// CephScrub says when placement groups are scrubbed. Hours and days are those of the OSDs' hosts. Data that was not scrubbed for MaxInterval is
// scrubbed at any time.
// +kubebuilder:validation:XValidation:rule="has(self.beginHour) == has(self.endHour)",message="beginHour and endHour go together"
// +kubebuilder:validation:XValidation:rule="has(self.beginWeekDay) == has(self.endWeekDay)",message="beginWeekDay and endWeekDay go together"
// +kubebuilder:validation:XValidation:rule="!has(self.minInterval) || !has(self.maxInterval) || duration(self.minInterval) <= duration(self.maxInterval)",message="minInterval must not be longer than maxInterval"
type CephScrub struct {
	// BeginHour and EndHour are the hours of the day between which scrubs begin, such as 22 and 6; equal ones mean all day.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=23
	BeginHour *int32 `json:"beginHour,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=23
	EndHour *int32 `json:"endHour,omitempty"`
	// BeginWeekDay is the first day of the week on which scrubs begin, and EndWeekDay the first on which they do not any more: 0 is Sunday. Equal
	// ones mean every day.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	BeginWeekDay *int32 `json:"beginWeekDay,omitempty"`
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=6
	EndWeekDay *int32 `json:"endWeekDay,omitempty"`
	// MinInterval is how soon after a scrub the next one may come, where the load allows.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="minInterval must be between 1m and 8760h"
	MinInterval *metav1.Duration `json:"minInterval,omitempty"`
	// MaxInterval is after how long a scrub comes whatever the load.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="maxInterval must be between 1m and 8760h"
	MaxInterval *metav1.Duration `json:"maxInterval,omitempty"`
	// DeepInterval is how often all data is read and compared.
	// +optional
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('1m') && duration(self) <= duration('8760h')",message="deepInterval must be between 1m and 8760h"
	DeepInterval *metav1.Duration `json:"deepInterval,omitempty"`
}

// CephOptions maps Ceph options to values.
// +kubebuilder:validation:MaxProperties=256
// +kubebuilder:validation:XValidation:rule="self.all(o, o.matches('^[a-z][a-z0-9_/]*$'))",message="an option is written as Ceph documents it: lower case, with underscores, such as mon_lease"
// +kubebuilder:validation:XValidation:rule="self.all(o, !(o in ['fsid','mon_host','mon_initial_members','keyring','key','keyfile','admin_socket','pid_file','log_file','run_dir','mon_data','mgr_data','osd_data','osd_uuid','public_network','cluster_network','public_addr','cluster_addr','public_bind_addr','mds_data','rgw_data','monmap','log_to_stderr','err_to_stderr','daemonize','setuser','setgroup']))",message="Holdfast itself sets fsid, mon_host, mon_initial_members, keyrings, networks (spec.network), data, log and socket paths: remove them from config"
type CephOptions map[string]CephOptionValue

// CephOptionValue is the value of one Ceph option, as ceph.conf has it, on one line.
// +kubebuilder:validation:MaxLength=4096
// +kubebuilder:validation:Pattern=`^[^\n\r]*$`
type CephOptionValue string

// CephMonSpec places monitors, each on a host of its own.
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.hostSelector)",message="placement and hostSelector both choose hosts: keep one of them"
type CephMonSpec struct {
	// Count is the number of monitors.
	// +optional
	// +kubebuilder:default=3
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=9
	// +kubebuilder:validation:XValidation:rule="self % 2 == 1",message="the number of mons must be odd (1, 3, 5, 7, 9): an even number survives no more failures than one less, and one more can fail"
	Count int32 `json:"count,omitempty"`
	// HostSelector chooses the hosts that may run monitors, by their labels. Without it and without placement: the hosts of the
	// cluster's StorageNodes.
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`
	// Placement chooses the hosts that may run monitors, by names, labels or a pattern, in the place of hostSelector.
	// +optional
	Placement *HostSelection `json:"placement,omitempty"`
	// ReplaceAfter is how long a mon may be out of the quorum, without a break, while the agent of
	// its host is disconnected; then another mon replaces it. The return of either begins the time
	// anew. The mon of a drained or removed host is replaced at once; that of a host in maintenance
	// is not replaced. So long, too, a connected host may be without the mon's address.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('30s') && duration(self) <= duration('24h')",message="replaceAfter must be between 30s and 24h"
	ReplaceAfter *metav1.Duration `json:"replaceAfter,omitempty"`
}

// CephMgrSpec places managers. One is active, the others stand by.
// +kubebuilder:validation:XValidation:rule="!has(self.placement) || !has(self.hostSelector)",message="placement and hostSelector both choose hosts: keep one of them"
type CephMgrSpec struct {
	// Count is the number of managers; no more than the hosts that may run them are started.
	// +optional
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=5
	Count int32 `json:"count,omitempty"`
	// HostSelector chooses the hosts that may run managers, by their labels. Without it and without placement: the hosts of the
	// cluster's StorageNodes.
	// +optional
	HostSelector *metav1.LabelSelector `json:"hostSelector,omitempty"`
	// Placement chooses the hosts that may run managers, by names, labels or a pattern, in the place of hostSelector.
	// +optional
	Placement *HostSelection `json:"placement,omitempty"`
}

// Conditions of a StorageCluster.
const (
	// ClusterAccepted says whether the spec of the cluster itself can be carried out; StorageNodes, Hosts and resources have conditions of their own.
	ClusterAccepted = "Accepted"
	// ClusterReady says whether the storage system says that it is well, and all that the specs of the cluster, its nodes and its hosts ask for is there.
	// Resources have a condition Ready of their own.
	ClusterReady = "Ready"
	// ClusterPlaced says whether the storage system has each daemon at the place of its Host: for Ceph, each OSD below its Host in CRUSH. It does not
	// hold up ClusterReady.
	ClusterPlaced = "Placed"
	// ClusterRedundant says whether data is as safe as the cluster has room for: for Ceph, whether each pool that no resource declares keeps as many
	// copies as new pools do, on distinct hosts where there are enough. It does not hold up ClusterReady.
	ClusterRedundant = "Redundant"
	// ClusterInSync is False while status.changedOutside of the StorageStatus names something; absent before that.
	ClusterInSync = "InSync"
	// ClusterDaemonsAllowed is False while the platform forbids the daemons of the cluster: none is started then, and those that run
	// run on. Otherwise it is absent. In Kubernetes the operator sets it; Holdfast's own servers never do.
	ClusterDaemonsAllowed = "DaemonsAllowed"
)

// AllowedNamespaceForbidsPods is the reason of the condition DaemonsAllowed: the namespace of the cluster has a pod security level
// that refuses pods with host paths and the host's network.
const AllowedNamespaceForbidsPods = "NamespaceForbidsPods"

// Reasons of the condition Redundant, the gravest first.
const (
	// RedundancyOneCopy: a pool keeps one copy, although there is room for more.
	RedundancyOneCopy = "OneCopy"
	// RedundancyFewerCopies: a pool keeps fewer copies than new ones do.
	RedundancyFewerCopies = "FewerCopies"
	// RedundancyOneHost: copies of a pool may be together on one host, although there are hosts enough.
	RedundancyOneHost = "OneHost"
	// RedundancyTooFewPlaces: a pool keeps more copies than the hosts, or devices, that are left have room for. It is not lowered.
	RedundancyTooFewPlaces = "TooFewPlaces"
	// RedundancyGrowing: what is not as safe as it could be is the engine's to change, and it is about to.
	RedundancyGrowing = "Growing"
	// RedundancyAsRoom: all data is as safe as the cluster has room for.
	RedundancyAsRoom = "AsRoomAllows"
)

// Reasons of the condition Placed, the gravest first.
const (
	// PlacesHostSplit: the storage system takes one machine for several, so that copies which are to be apart may be together on it.
	PlacesHostSplit = "HostSplit"
	// PlacesHostsShared: it takes several machines for one.
	PlacesHostsShared = "HostsShared"
	// PlacesElsewhere: it has a host, or an OSD, by another name or at another place than Holdfast, and that stays so.
	PlacesElsewhere = "Elsewhere"
	// PlacesAsDeclared: all are where Holdfast has them.
	PlacesAsDeclared = "AsDeclared"
)

// StorageClusterStatus is what the leader says of its work on the cluster. It is the only writer of each field.
type StorageClusterStatus struct {
	// ObservedGeneration is the generation of the spec that the last orchestration worked on. The run writes it.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// NextOrchestration is when the cluster is orchestrated next, if nothing changes. The leader's scheduler writes it.
	// +optional
	NextOrchestration *metav1.Time `json:"nextOrchestration,omitempty"`
	// OrchestratedRequest is the annotation holdfast.io/orchestrate-requested of the last run. The run writes it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	OrchestratedRequest string `json:"orchestratedRequest,omitempty"`
	// Report is what the last orchestration that differed from the one before did and decided. The run writes it.
	// +optional
	Report *OrchestrationReport `json:"report,omitempty"`
	// Conditions are written by each run, and by the leader's scheduler while the cluster is paused.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OrchestrationOutcome is how a run ended.
// +kubebuilder:validation:Enum=Unchanged;Changed;Waiting;Refused;Failed;Observed
type OrchestrationOutcome string

// The outcomes.
const (
	// OutcomeUnchanged: everything is as it should be.
	OutcomeUnchanged OrchestrationOutcome = "Unchanged"
	// OutcomeChanged: the run changed something.
	OutcomeChanged OrchestrationOutcome = "Changed"
	// OutcomeWaiting: the run changed nothing and waits for something.
	OutcomeWaiting OrchestrationOutcome = "Waiting"
	// OutcomeRefused: the spec cannot be carried out; nothing was touched.
	OutcomeRefused OrchestrationOutcome = "Refused"
	// OutcomeFailed: the run ended by an error.
	OutcomeFailed OrchestrationOutcome = "Failed"
	// OutcomeObserved: the run would have changed something, and the cluster is only observed.
	OutcomeObserved OrchestrationOutcome = "Observed"
)

// OrchestrationReport is the record of one run.
type OrchestrationReport struct {
	// Started is when the run began.
	Started metav1.MicroTime `json:"started"`
	// Duration is how long it took.
	// +optional
	Duration metav1.Duration `json:"duration,omitempty"`
	// Leader is the server that ran it.
	// +optional
	Leader  string               `json:"leader,omitempty"`
	Outcome OrchestrationOutcome `json:"outcome"`
	// Error is what ended a failed run.
	// +optional
	// +kubebuilder:validation:MaxLength=4096
	Error string `json:"error,omitempty"`
	// Decisions says what the run decided, each with its reason.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=256
	Decisions []Decision `json:"decisions,omitempty"`
}

// Verdict sorts decisions.
// +kubebuilder:validation:Enum=Do;Wait;Refuse;Skip
type Verdict string

// The verdicts.
const (
	// VerdictDo: the run does this.
	VerdictDo Verdict = "Do"
	// VerdictWait: the run would do this, but something that it waits for is not there yet.
	VerdictWait Verdict = "Wait"
	// VerdictRefuse: this was asked for and will not be done until the spec changes.
	VerdictRefuse Verdict = "Refuse"
	// VerdictSkip: one might expect this to be done, and it is not, for the reason given.
	VerdictSkip Verdict = "Skip"
)

// Decision is one thing that an orchestration decided.
type Decision struct {
	// Object is what the decision is about, such as "mon.a" or "node/n1".
	// +kubebuilder:validation:MaxLength=256
	Object  string  `json:"object"`
	Verdict Verdict `json:"verdict"`
	// Reason says in one word why, for programs. It is empty in reports of versions that knew none.
	// +optional
	Reason Reason `json:"reason,omitempty"`
	// Message says what and why, in a sentence.
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message"`
}

// StorageClusterList is a list of StorageClusters.
// +kubebuilder:object:root=true
type StorageClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []StorageCluster `json:"items"`
}
