// Package reasons explains the reasons of the API, for docs/reference/reasons.md.
package reasons

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// All explains each reason, for docs/reference/reasons.md.
var All = map[api.Reason]string{
	api.ReasonReady:      "It is as its newest spec declares it, and serves.",
	api.ReasonDeclared:   "The spec declares it, or its declaration changed: it is made or changed.",
	api.ReasonRestarting: "The daemon is restarted.",
	api.ReasonRemoving: "The daemon or object is removed, because nothing declares it any more or it is " +
		"replaced.",
	api.ReasonDeleting:     "A user deleted the object, and Holdfast removes what belongs to it.",
	api.ReasonAdopted:      "The storage system has it already: Holdfast takes it over as it is.",
	api.ReasonLossAccepted: "A user accepted the loss with 'holdfast recreate'.",
	api.ReasonBackInUse:    "It was being removed, and is used again.",
	api.ReasonScaling:      "It follows the number of hosts and devices that the cluster has.",

	api.ReasonPortInUse:   "Another program listens on a port of the daemon.",
	api.ReasonKeyRefused:  "The storage system refuses the daemon's key.",
	api.ReasonNotInMap:    "The storage system's map does not have the daemon any more.",
	api.ReasonDataDamaged: "What the daemon keeps on its device or in its directory is missing or damaged.",
	api.ReasonDiskFull:    "The file system that the daemon writes to is full.",
	api.ReasonReadOnly: "What the daemon writes to takes no writes, or the daemon serves it read-only after " +
		"an error.",
	api.ReasonProgramBroken: "The daemon's program cannot run as it is installed.",
	api.ReasonCrashed:       "The daemon's program crashed.",
	api.ReasonKilled:        "A user, or the kernel when memory ran out, killed the daemon's process.",

	api.ReasonMachineUnreachable: "The machine of the host does not answer.",
	api.ReasonNetworkCut: "The machine of the host does not answer the servers, and the storage system has its " +
		"daemons " +
		"as up.",
	api.ReasonAgentStopped:       "The machine answers, and its agent was stopped.",
	api.ReasonAgentNotRunning:    "The machine answers, but its agent does not.",
	api.ReasonAgentHangs:         "The agent's process is there and does nothing.",
	api.ReasonCertificateEnded:   "The agent runs, and the certificate of its host has ended.",
	api.ReasonCertificateRefused: "The agent runs, and its certificate is of another authority.",
	api.ReasonServersNotTrusted:  "The agent runs, and does not trust the certificate of the servers.",

	api.ReasonQuorumLost:    "Half of the servers or more do not work: the API serves neither reads nor writes.",
	api.ReasonStandby:       "The daemon can take over; another one serves.",
	api.ReasonKeepsEnding:   "The daemon's process ended several times in the last minutes, though it runs between.",
	api.ReasonMarkedOut:     "The OSD is marked out: Ceph gives it no data.",
	api.ReasonZeroWeight:    "The OSD has weight 0 in CRUSH: Ceph gives it no data.",
	api.ReasonNotUsed:       "No pool stores data on OSDs of this device class or at this place in CRUSH.",
	api.ReasonFlagSet:       "A flag in the storage system keeps the daemon from serving.",
	api.ReasonFull:          "A device is so full that the storage system refuses writes.",
	api.ReasonNearFull:      "A device is nearly full.",
	api.ReasonBackfillFull:  "The device is so full that the storage system moves no more data to it.",
	api.ReasonNotInQuorum:   "The mon is in Ceph's map and not in the quorum.",
	api.ReasonNotListed:     "The process runs, and the storage system does not list the daemon.",
	api.ReasonNotJoinable:   "The filesystem is set so that no MDS joins it.",
	api.ReasonTakingOver:    "The MDS has a rank and takes over: it does not serve yet.",
	api.ReasonSplitBrain:    "Copies of a file differ, and no heal can tell which one is right.",
	api.ReasonNotHealing:    "The daemon that heals copies does not run on a node.",
	api.ReasonBricksOffline: "Bricks of the node are offline, though its glusterd runs.",
	api.ReasonPeerRejected:  "The pool rejects the daemon: it has another configuration than the others.",

	api.ReasonClientsPaused:    "The storage system is paused: clients cannot write, or can neither read nor write.",
	api.ReasonQuotaReached:     "The quota is reached: it takes no writes.",
	api.ReasonQuotaNear:        "Most of the quota is used: writes fail when it is reached.",
	api.ReasonDataUnavailable:  "Devices that hold the data are down or gone.",
	api.ReasonNotServed:        "Daemons that serve it do not run, or are too few.",
	api.ReasonHealthCheck:      "The storage system reports a problem of its own: the message quotes it.",
	api.ReasonForeignFinalizer: "It is deleted in the storage system; a finalizer of another program keeps the object.",
	api.ReasonSecondPath:       "Two devices of the host are one disk: the second path is no other disk.",
	api.ReasonClockSkewed:      "The clock of the host differs from the servers'.",
	api.ReasonNotSelected:      "No StorageNode selects the host: nothing of a cluster runs there.",

	api.ReasonAgentDisconnected: "The agent of the host is disconnected.",
	api.ReasonNotAnswering: "The storage system does not answer, or has not reported yet what the decision " +
		"needs.",
	api.ReasonSettling: "The leader waits a moment for other objects to be declared or seen before it " +
		"decides.",
	api.ReasonOneAtATime:          "Another host, daemon or object has its turn first.",
	api.ReasonStarting:            "Daemons are starting.",
	api.ReasonStopping:            "Daemons are stopping.",
	api.ReasonJoining:             "A daemon joins the quorum, the pool or the ring, or leaves it.",
	api.ReasonMovingData:          "The storage system moves data to other devices.",
	api.ReasonDataNotClean:        "Not all data has all its copies: some are being made.",
	api.ReasonNotOkToStop:         "Data would be unavailable if the daemons stopped.",
	api.ReasonAwaitingReplacement: "Another daemon must be ready before this one stops or is removed.",
	api.ReasonHandingOver:         "The active daemon hands over to its standby.",
	api.ReasonGracePeriod: "It may come back by itself: nothing is done before its wait has passed " +
		"(docs/reference/waits.md).",
	api.ReasonDependencyNotReady: "An object that this one needs is missing or not ready.",
	api.ReasonTaskInProgress:     "The storage system runs a task that must end first.",
	api.ReasonCommandFailed: "The storage system refused a command or did not answer it. The leader " +
		"retries.",
	api.ReasonConfiguring:   "The storage system was asked to change, and the change is not visible yet.",
	api.ReasonNotReady:      "It has not reached its desired state yet.",
	api.ReasonDaemonHangs:   "The process of the daemon runs and does not answer.",
	api.ReasonDaemonFailing: "The daemon keeps failing.",
	api.ReasonChangedOutside: "Someone changed it in the storage system itself; the message says what becomes " +
		"of it.",
	api.ReasonHostNotActive: "The host is in mode Maintenance or Drain, or is leaving it.",

	api.ReasonInvalidSpec:       "The spec cannot be carried out as it is written.",
	api.ReasonInsufficientNodes: "There are too few hosts, nodes, failure domains or devices.",
	api.ReasonInsufficientSpace: "There is too little space.",
	api.ReasonConflict:          "The name, number, address, port or place belongs to something else.",
	api.ReasonDeviceUnavailable: "The device is missing, in use, or cannot be used.",
	api.ReasonNodeUnusable:      "The StorageNode or its host cannot be used.",
	api.ReasonUnsupported:       "The release of the storage system, its type or the host does not support it.",
	api.ReasonWouldLoseData:     "It would lose data.",
	api.ReasonQuorumAtRisk:      "The quorum is lost, or would be.",
	api.ReasonInUse:             "Something else uses it.",
	api.ReasonNoCluster:         "The StorageCluster that it names does not exist.",
	api.ReasonTwoMachines:       "Two machines report as one host.",
	api.ReasonDaemonsForbidden: "The platform forbids the daemons of the cluster. The condition DaemonsAllowed " +
		"of the StorageCluster says how to allow them.",
	api.ReasonLost: "It is gone from the storage system, and is not made again. See 'holdfast " +
		"recreate'.",

	api.ReasonNotManaged:   "Holdfast did not make it, and nothing declares it.",
	api.ReasonNoOtherHost:  "No other host can take it.",
	api.ReasonKeptAsIs:     "It stays as a user or an earlier state left it.",
	api.ReasonSurplusKept:  "There are more than declared, and they stay for now.",
	api.ReasonHeldBack:     "The daemon went down and came back too often, and is held back.",
	api.ReasonStopAsked:    "A user stopped the daemon: it stays stopped until a user starts it.",
	api.ReasonObserveOnly:  "The cluster is in mode Observed, so nothing is changed.",
	api.ReasonActionActs:   "An Action changes it now; the plan leaves it alone.",
	api.ReasonUnknown:      "Nothing is known of it.",
	api.ReasonClosed:       "A user closed it to new data. The data that it has stays and is served.",
	api.ReasonMoreToReport: "The report is full: more decisions were left out.",
	api.ReasonNotRedundant: "Data is less redundant than the cluster has room for.",
	api.ReasonMisplaced: "The storage system has hosts or devices at other places than their labels say, " +
		"or than a pool needs.",
	api.ReasonNotScaled: "Ceph's autoscaler does not change the number of placement groups.",
}
