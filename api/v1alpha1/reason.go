package v1alpha1

// Reason says in one CamelCase word why something was decided, or why it is as it is, for programs:
// what Holdfast and others do depends on reasons and never on messages. Reasons explains them. Later
// versions may add some; one that is here keeps its meaning.
// +kubebuilder:validation:MaxLength=64
type Reason string

// Reasons of what is done, as Reasons explains them.
const (
	ReasonDeclared     Reason = "Declared"
	ReasonRestarting   Reason = "Restarting"
	ReasonRemoving     Reason = "Removing"
	ReasonDeleting     Reason = "Deleting"
	ReasonAdopted      Reason = "Adopted"
	ReasonLossAccepted Reason = "LossAccepted"
	ReasonBackInUse    Reason = "BackInUse"
	ReasonScaling      Reason = "Scaling"
	ReasonReady        Reason = "Ready" // of the condition Ready while it is True
)

// Reasons of waiting.
const (
	ReasonAgentDisconnected   Reason = "AgentDisconnected"
	ReasonNotAnswering        Reason = "NotAnswering"
	ReasonSettling            Reason = "Settling"
	ReasonOneAtATime          Reason = "OneAtATime"
	ReasonStarting            Reason = "Starting"
	ReasonStopping            Reason = "Stopping"
	ReasonJoining             Reason = "Joining"
	ReasonMovingData          Reason = "MovingData"
	ReasonDataNotClean        Reason = "DataNotClean"
	ReasonNotOkToStop         Reason = "NotOkToStop"
	ReasonAwaitingReplacement Reason = "AwaitingReplacement"
	ReasonHandingOver         Reason = "HandingOver"
	ReasonGracePeriod         Reason = "GracePeriod"
	ReasonDependencyNotReady  Reason = "DependencyNotReady"
	ReasonTaskInProgress      Reason = "TaskInProgress"
	ReasonCommandFailed       Reason = "CommandFailed"
	ReasonConfiguring         Reason = "Configuring"
	ReasonNotReady            Reason = "NotReady"
	ReasonDaemonFailing       Reason = "DaemonFailing"
	ReasonDaemonHangs         Reason = "DaemonHangs"
	ReasonHostNotActive       Reason = "HostNotActive"
	ReasonChangedOutside      Reason = "ChangedOutside"
)

// Reasons of refusals. Some of them may also end by themselves, and are waited for then.
const (
	ReasonInvalidSpec       Reason = "InvalidSpec"
	ReasonInsufficientNodes Reason = "InsufficientNodes"
	ReasonInsufficientSpace Reason = "InsufficientSpace"
	ReasonConflict          Reason = "Conflict"
	ReasonDeviceUnavailable Reason = "DeviceUnavailable"
	ReasonNodeUnusable      Reason = "NodeUnusable"
	ReasonUnsupported       Reason = "Unsupported"
	ReasonWouldLoseData     Reason = "WouldLoseData"
	ReasonQuorumAtRisk      Reason = "QuorumAtRisk"
	ReasonInUse             Reason = "InUse"
	ReasonNoCluster         Reason = "NoCluster"
	ReasonTwoMachines       Reason = "TwoMachines"
	ReasonDaemonsForbidden  Reason = "DaemonsForbidden"
	ReasonLost              Reason = "Lost" // of the condition Present
)

// Reasons of what is left as it is.
const (
	ReasonNotManaged   Reason = "NotManaged"
	ReasonNoOtherHost  Reason = "NoOtherHost"
	ReasonKeptAsIs     Reason = "KeptAsIs"
	ReasonSurplusKept  Reason = "SurplusKept"
	ReasonHeldBack     Reason = "HeldBack"
	ReasonStopAsked    Reason = "StopAsked"
	ReasonObserveOnly  Reason = "ObserveOnly"
	ReasonActionActs   Reason = "ActionActs"
	ReasonUnknown      Reason = "Unknown"
	ReasonMoreToReport Reason = "MoreToReport"
	ReasonNotRedundant Reason = "NotRedundant"
	ReasonMisplaced    Reason = "Misplaced"
	ReasonClosed       Reason = "Closed"
	ReasonNotScaled    Reason = "NotScaled"
)

// Reasons why a daemon's process ended.
const (
	ReasonPortInUse     Reason = "PortInUse"
	ReasonKeyRefused    Reason = "KeyRefused"
	ReasonNotInMap      Reason = "NotInMap"
	ReasonDataDamaged   Reason = "DataDamaged"
	ReasonDiskFull      Reason = "DiskFull"
	ReasonReadOnly      Reason = "ReadOnly"
	ReasonProgramBroken Reason = "ProgramBroken"
	ReasonCrashed       Reason = "Crashed"
	ReasonKilled        Reason = "Killed"
)

// Reasons why an agent does not report, of the condition AgentConnected.
const (
	ReasonMachineUnreachable Reason = "MachineUnreachable"
	ReasonNetworkCut         Reason = "NetworkCut"
	ReasonAgentStopped       Reason = "AgentStopped"
	ReasonAgentNotRunning    Reason = "AgentNotRunning"
	ReasonAgentHangs         Reason = "AgentHangs"
	ReasonCertificateEnded   Reason = "CertificateEnded"
	ReasonCertificateRefused Reason = "CertificateRefused"
	ReasonServersNotTrusted  Reason = "ServersNotTrusted"
)

// Reasons of a host whose agent reports.
const (
	ReasonClockSkewed Reason = "ClockSkewed"
	ReasonNotSelected Reason = "NotSelected"
)

// ReasonQuorumLost is that of an answer of the API while the servers have no quorum.
const ReasonQuorumLost Reason = "QuorumLost"

// Reasons why a daemon whose process runs does not serve, or serves less than it should.
const (
	ReasonStandby       Reason = "Standby"
	ReasonKeepsEnding   Reason = "KeepsEnding"
	ReasonMarkedOut     Reason = "MarkedOut"
	ReasonZeroWeight    Reason = "ZeroWeight"
	ReasonNotUsed       Reason = "NotUsed"
	ReasonFlagSet       Reason = "FlagSet"
	ReasonFull          Reason = "Full"
	ReasonNearFull      Reason = "NearFull"
	ReasonBackfillFull  Reason = "BackfillFull"
	ReasonNotInQuorum   Reason = "NotInQuorum"
	ReasonNotListed     Reason = "NotListed"
	ReasonNotJoinable   Reason = "NotJoinable"
	ReasonTakingOver    Reason = "TakingOver"
	ReasonPeerRejected  Reason = "PeerRejected"
	ReasonBricksOffline Reason = "BricksOffline"
)

// Reasons why what the storage system has does not serve, or soon will not.
const (
	ReasonClientsPaused    Reason = "ClientsPaused"
	ReasonQuotaReached     Reason = "QuotaReached"
	ReasonQuotaNear        Reason = "QuotaNear"
	ReasonDataUnavailable  Reason = "DataUnavailable"
	ReasonNotServed        Reason = "NotServed"
	ReasonHealthCheck      Reason = "HealthCheck"
	ReasonForeignFinalizer Reason = "ForeignFinalizer"
	ReasonSecondPath       Reason = "SecondPath"
	ReasonSplitBrain       Reason = "SplitBrain"
	ReasonNotHealing       Reason = "NotHealing"
)

// NeedsPerson says whether the reason does not end by itself, also where it is waited for: a user has to act.
func (r Reason) NeedsPerson() bool {
	switch r { //nolint:exhaustive // the others end by themselves
	case ReasonInvalidSpec, ReasonInsufficientNodes, ReasonInsufficientSpace, ReasonConflict, ReasonDeviceUnavailable, ReasonNodeUnusable,
		ReasonUnsupported, ReasonWouldLoseData, ReasonInUse, ReasonNoCluster, ReasonTwoMachines, ReasonLost,
		ReasonMachineUnreachable, ReasonNetworkCut, ReasonAgentStopped, ReasonAgentNotRunning, ReasonAgentHangs,
		ReasonCertificateEnded, ReasonCertificateRefused, ReasonServersNotTrusted,
		ReasonDaemonFailing, ReasonDaemonHangs, ReasonDaemonsForbidden, ReasonAgentDisconnected, ReasonNoOtherHost,
		ReasonQuorumAtRisk, ReasonChangedOutside, ReasonKeepsEnding, ReasonMarkedOut, ReasonZeroWeight, ReasonNotUsed,
		ReasonFlagSet, ReasonFull, ReasonNotInQuorum, ReasonNotJoinable, ReasonPeerRejected,
		ReasonClientsPaused, ReasonQuotaReached, ReasonForeignFinalizer, ReasonSecondPath, ReasonSplitBrain:
		return true
	}
	return false
}
