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
)

// Reasons explains each reason, for docs/reference/reasons.md.
var Reasons = map[Reason]string{
	ReasonReady:        "It is as its newest spec declares it, and serves.",
	ReasonDeclared:     "The spec declares it, or its declaration changed: it is made or changed.",
	ReasonRestarting:   "The daemon is restarted.",
	ReasonRemoving:     "The daemon or object is removed, because nothing declares it any more or it is replaced.",
	ReasonDeleting:     "A user deleted the object, and Holdfast removes what belongs to it.",
	ReasonAdopted:      "The storage system has it already: Holdfast takes it over as it is.",
	ReasonLossAccepted: "A user accepted the loss with 'holdfast recreate'.",
	ReasonBackInUse:    "It was being removed, and is used again.",
	ReasonScaling:      "It follows the number of hosts and devices that the cluster has.",

	ReasonAgentDisconnected:   "The agent of the host is disconnected.",
	ReasonNotAnswering:        "The storage system does not answer, or has not reported yet what the decision needs.",
	ReasonSettling:            "The leader waits a moment for other objects to be declared or seen before it decides.",
	ReasonOneAtATime:          "Another host, daemon or object has its turn first.",
	ReasonStarting:            "Daemons are starting.",
	ReasonStopping:            "Daemons are stopping.",
	ReasonJoining:             "A daemon joins the quorum, the pool or the ring, or leaves it.",
	ReasonMovingData:          "The storage system moves data to other devices.",
	ReasonDataNotClean:        "Not all data has all its copies: some are being made.",
	ReasonNotOkToStop:         "Data would be unavailable if the daemons stopped.",
	ReasonAwaitingReplacement: "Another daemon must be ready before this one stops or is removed.",
	ReasonHandingOver:         "The active daemon hands over to its standby.",
	ReasonGracePeriod:         "It may come back by itself: nothing is done before its wait has passed (docs/reference/waits.md).",
	ReasonDependencyNotReady:  "An object that this one needs is missing or not ready.",
	ReasonTaskInProgress:      "The storage system runs a task that must end first.",
	ReasonCommandFailed:       "The storage system refused a command or did not answer it. The leader retries.",
	ReasonConfiguring:         "The storage system was asked to change, and the change is not visible yet.",
	ReasonNotReady:            "It has not reached its desired state yet.",
	ReasonDaemonHangs:         "The process of the daemon runs and does not answer.",
	ReasonDaemonFailing:       "The daemon keeps failing.",
	ReasonChangedOutside:      "Someone changed it in the storage system itself; the message says what becomes of it.",
	ReasonHostNotActive:       "The host is in mode Maintenance or Drain, or is leaving it.",

	ReasonInvalidSpec:       "The spec cannot be carried out as it is written.",
	ReasonInsufficientNodes: "There are too few hosts, nodes, failure domains or devices.",
	ReasonInsufficientSpace: "There is too little space.",
	ReasonConflict:          "The name, number, address, port or place belongs to something else.",
	ReasonDeviceUnavailable: "The device is missing, in use, or cannot be used.",
	ReasonNodeUnusable:      "The StorageNode or its host cannot be used.",
	ReasonUnsupported:       "The release of the storage system, its type or the host does not support it.",
	ReasonWouldLoseData:     "It would lose data.",
	ReasonQuorumAtRisk:      "The quorum is lost, or would be.",
	ReasonInUse:             "Something else uses it.",
	ReasonNoCluster:         "The StorageCluster that it names does not exist.",
	ReasonTwoMachines:       "Two machines report as one host.",
	ReasonDaemonsForbidden:  "The platform forbids the daemons of the cluster. The condition DaemonsAllowed of the StorageCluster says how to allow them.",
	ReasonLost:              "It is gone from the storage system, and is not made again. See 'holdfast recreate'.",

	ReasonNotManaged:   "Holdfast did not make it, and nothing declares it.",
	ReasonNoOtherHost:  "No other host can take it.",
	ReasonKeptAsIs:     "It stays as a user or an earlier state left it.",
	ReasonSurplusKept:  "There are more than declared, and they stay for now.",
	ReasonHeldBack:     "The daemon went down and came back too often, and is held back.",
	ReasonStopAsked:    "A user had the daemon stopped, and it stays stopped until a user has it started.",
	ReasonObserveOnly:  "The cluster is in mode Observed, so nothing is changed.",
	ReasonActionActs:   "An Action changes it now; the plan leaves it alone.",
	ReasonUnknown:      "Nothing is known of it.",
	ReasonMoreToReport: "The report is full: more decisions were left out.",
	ReasonNotRedundant: "Data is less redundant than the cluster has room for.",
	ReasonMisplaced:    "The storage system has hosts or devices at other places than their labels say, or than a pool needs.",
}

// NeedsPerson says whether the reason does not end by itself, also where it is waited for: a user has to act.
func (r Reason) NeedsPerson() bool {
	switch r {
	case ReasonInvalidSpec, ReasonInsufficientNodes, ReasonInsufficientSpace, ReasonConflict, ReasonDeviceUnavailable, ReasonNodeUnusable,
		ReasonUnsupported, ReasonWouldLoseData, ReasonInUse, ReasonNoCluster, ReasonTwoMachines, ReasonLost,
		ReasonDaemonFailing, ReasonDaemonHangs, ReasonDaemonsForbidden, ReasonAgentDisconnected, ReasonNoOtherHost, ReasonQuorumAtRisk, ReasonChangedOutside:
		return true
	}
	return false
}
