package engine

//go:generate go run ./internal/eventdoc ../docs/reference/events.md
//go:generate go run ./internal/reasondoc ../docs/reference/reasons.md

// Code says what sort of difference an event records.
type Code string

// The codes, as Codes explains them.
const (
	ClusterNew      Code = "CLUSTER_NEW"
	ClusterChanged  Code = "CLUSTER_CHANGED"
	ClusterGone     Code = "CLUSTER_GONE"
	ClusterOnline   Code = "CLUSTER_ONLINE"
	ClusterDegraded Code = "CLUSTER_DEGRADED"
	ClusterOffline  Code = "CLUSTER_OFFLINE"
	HealthChanged   Code = "HEALTH_CHANGED"

	HealthCheckRaised  Code = "HEALTH_CHECK_RAISED"
	HealthCheckCleared Code = "HEALTH_CHECK_CLEARED"

	ChangedOutside Code = "CHANGED_OUTSIDE"
	AsSetAgain     Code = "AS_SET_AGAIN"

	NodeNew     Code = "NODE_NEW"
	NodeChanged Code = "NODE_CHANGED"
	NodeGone    Code = "NODE_GONE"
	NodeUp      Code = "NODE_UP"
	NodeDown    Code = "NODE_DOWN"

	AgentUp   Code = "AGENT_UP"
	AgentDown Code = "AGENT_DOWN"

	HostTwins  Code = "HOST_TWINS"
	HostSingle Code = "HOST_SINGLE"

	DaemonNew       Code = "DAEMON_NEW"
	DaemonChanged   Code = "DAEMON_CHANGED"
	DaemonGone      Code = "DAEMON_GONE"
	DaemonRunning   Code = "DAEMON_RUNNING"
	DaemonFailed    Code = "DAEMON_FAILED"
	DaemonRestarted Code = "DAEMON_RESTARTED"

	DeviceNew     Code = "DEVICE_NEW"
	DeviceChanged Code = "DEVICE_CHANGED"
	DeviceGone    Code = "DEVICE_GONE"

	ResourceNew      Code = "RESOURCE_NEW"
	ResourceChanged  Code = "RESOURCE_CHANGED"
	ResourceGone     Code = "RESOURCE_GONE"
	ResourceOnline   Code = "RESOURCE_ONLINE"
	ResourceDegraded Code = "RESOURCE_DEGRADED"
	ResourceOffline  Code = "RESOURCE_OFFLINE"

	LeaderChanged Code = "LEADER_CHANGED"

	ActionNew      Code = "ACTION_NEW"
	ActionChanged  Code = "ACTION_CHANGED"
	ActionFinished Code = "ACTION_FINISHED"
	ActionStuck    Code = "ACTION_STUCK"

	OrchestrateReport Code = "ORCHESTRATE_REPORT"

	Flapping Code = "FLAPPING"
	Steady   Code = "STEADY"

	// These are written by the control plane itself; see package control.
	QuorumMemberAdded    Code = "QUORUM_MEMBER_ADDED"
	QuorumMemberPromoted Code = "QUORUM_MEMBER_PROMOTED"
	QuorumMemberReplaced Code = "QUORUM_MEMBER_REPLACED"
	QuorumMemberRemoved  Code = "QUORUM_MEMBER_REMOVED"
	QuorumDegraded       Code = "QUORUM_DEGRADED"
	QuorumHealthy        Code = "QUORUM_HEALTHY"
	QuorumRestored       Code = "QUORUM_RESTORED"
)

// CodeInfo explains a Code.
type CodeInfo struct {
	Code Code
	// Object is the form of the event's object.
	Object  string
	Meaning string
}

// Codes lists all codes with what they mean; docs/reference/events.md is made from it.
func Codes() []CodeInfo {
	return []CodeInfo{
		{ClusterNew, "cluster/NAME", "A StorageCluster was declared and is orchestrated for the first time."},
		{ClusterChanged, "cluster/NAME", "The spec of a StorageCluster changed."},
		{ClusterGone, "cluster/NAME", "A StorageCluster was deleted; Holdfast removes its objects and daemons."},
		{ClusterOnline, "cluster/NAME", "The StorageStatus became ONLINE: everything declared is there, as reported by the storage system."},
		{ClusterDegraded, "cluster/NAME", "The StorageStatus became DEGRADED: data is served, and something declared is missing."},
		{ClusterOffline, "cluster/NAME", "The StorageStatus became OFFLINE: data is not served, or the storage system does not answer."},
		{HealthChanged, "cluster/NAME", "The health that the storage system reports changed."},
		{HealthCheckRaised, "check/CODE", "A health check of the storage system appeared, or its severity changed. The message has the storage system's text and the next step."},
		{HealthCheckCleared, "check/CODE", "A health check of the storage system is over, or an administrator has muted it."},
		{ChangedOutside, "the object", "A user or a program changed something in the storage system, outside Holdfast. The " +
			"message has what was found, and what is put back or waits for a user."},
		{AsSetAgain, "the object", "What was changed outside Holdfast is as Holdfast set it again."},
		{NodeNew, "node/NAME", "A StorageNode was added to the cluster."},
		{NodeChanged, "node/NAME", "The spec of a StorageNode changed, or the node is now accepted or refused, or it selects another host."},
		{NodeGone, "node/NAME", "A StorageNode was removed from the cluster."},
		{NodeUp, "node/NAME", "A daemon of a StorageNode that was down runs again, as its agent reports."},
		{NodeDown, "node/NAME", "No daemon of a StorageNode runs any more, as its agent reports. A disconnected agent is AGENT_DOWN, never this."},
		{AgentUp, "host/NAME", "The agent of a host that the cluster uses reconnected."},
		{AgentDown, "host/NAME", "The agent of a host that the cluster uses is disconnected. The storage on the host may still serve."},
		{HostTwins, "host/NAME", "Two machines run as a host that the cluster uses, such as a machine and its clone. Nothing new is started on either."},
		{HostSingle, "host/NAME", "Only one machine runs as the host again."},
		{DaemonNew, "daemon/NAME", "A Daemon was created."},
		{DaemonChanged, "daemon/NAME", "The spec of a Daemon changed, or the Daemon is being removed."},
		{DaemonGone, "daemon/NAME", "A Daemon is gone: its agent stopped it and cleaned up."},
		{DaemonRunning, "daemon/NAME", "A daemon's process runs."},
		{DaemonFailed, "daemon/NAME", "A daemon could not be prepared, or its process ended and restarts after a pause."},
		{DaemonRestarted, "daemon/NAME", "A daemon's process ended unexpectedly and was restarted."},
		{DeviceNew, "host/NAME/ID", "A block device appeared on a host that the cluster uses."},
		{DeviceChanged, "host/NAME/ID", "A block device has another path, or became available or unavailable."},
		{DeviceGone, "host/NAME/ID", "A block device disappeared from a host that the cluster uses."},
		{ResourceNew, "KIND/NAME", "A resource (what users of storage get, such as volume/NAME) was declared."},
		{ResourceChanged, "KIND/NAME", "The spec of a resource changed, or the spec cannot be carried out, or the resource is being removed."},
		{ResourceGone, "KIND/NAME", "A resource is gone: the storage system has nothing of it, or keeps its data as its deletionPolicy says."},
		{ResourceOnline, "KIND/NAME", "A resource serves completely."},
		{ResourceDegraded, "KIND/NAME", "A resource serves, but a part of it is missing or healing."},
		{ResourceOffline, "KIND/NAME", "Some data of a resource is unavailable."},
		{LeaderChanged, "leader/NAME", "Another server leads. For a cluster: at its first run under the new leader; for the control plane: at once."},
		{ActionNew, "action/NAME", "An action on the cluster, or on a host that it uses, was requested."},
		{ActionChanged, "action/NAME", "The state of an action changed: it waits for approval or its turn, or runs."},
		{ActionFinished, "action/NAME", "An action ended: it is done, failed, was cancelled, or its result is unknown."},
		{ActionStuck, "action/NAME", "The API repeatedly refused to store an action. The leader retries it after growing pauses; other actions continue."},
		{OrchestrateReport, "cluster/NAME", "The outcome of an orchestration differs from that of the one before."},
		{Flapping, "the object", "An object goes up and down repeatedly: its further changes are not recorded until it " +
			"is unchanged for ten minutes. CLUSTER_OFFLINE is always recorded."},
		{Steady, "the object", "A flapping object has not changed for ten minutes; the message has its last change."},
		{QuorumMemberAdded, "host/NAME", "A standby server became a member of etcd; it does not vote yet."},
		{QuorumMemberPromoted, "host/NAME", "A member of etcd has caught up and votes."},
		{QuorumMemberReplaced, "host/NAME", "A member of etcd votes in the place of another, which is removed next."},
		{QuorumMemberRemoved, "host/NAME", "A member of etcd was removed; its server becomes a standby."},
		{QuorumDegraded, "cluster/control-plane", "Members of etcd do not answer or do not apply changes, or there are " +
			"fewer than desired."},
		{QuorumHealthy, "cluster/control-plane", "All desired members of etcd answer; also the first report of a control " +
			"plane."},
		{QuorumRestored, "cluster/control-plane", "The control plane was restored from a backup or from the data of one server, as the message says: later writes are lost, and other servers move their data aside."},
	}
}
