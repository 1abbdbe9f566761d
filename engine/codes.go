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
		{ClusterChanged, "cluster/NAME", "The spec of a StorageCluster was changed."},
		{ClusterGone, "cluster/NAME", "A StorageCluster was deleted; what was made for it is being removed."},
		{ClusterOnline, "cluster/NAME", "The StorageStatus became ONLINE: everything is there, by the storage system's own word."},
		{ClusterDegraded, "cluster/NAME", "The StorageStatus became DEGRADED: data is served, and something that is wanted is missing."},
		{ClusterOffline, "cluster/NAME", "The StorageStatus became OFFLINE: data cannot be served, or the storage system does not answer."},
		{HealthChanged, "cluster/NAME", "The storage system's own word on its health changed."},
		{HealthCheckRaised, "check/CODE", "The storage system finds something wrong that it did not find before, or takes it for worse or less bad. The message has its own words and the next step."},
		{HealthCheckCleared, "check/CODE", "The storage system does not find this wrong any more, or an administrator has muted it."},
		{NodeNew, "node/NAME", "A StorageNode was added to the cluster."},
		{NodeChanged, "node/NAME", "A StorageNode's spec was changed, or it is accepted or refused now, or means another host."},
		{NodeGone, "node/NAME", "A StorageNode was removed from the cluster."},
		{NodeUp, "node/NAME", "A daemon of a StorageNode that was down runs again, by its own agent's word."},
		{NodeDown, "node/NAME", "None of a StorageNode's daemons runs any more, by its own agent's word. Lost contact is AGENT_DOWN, never this."},
		{AgentUp, "host/NAME", "The agent of a host that the cluster uses is heard again."},
		{AgentDown, "host/NAME", "The agent of a host that the cluster uses is silent. The storage on the host may well be fine."},
		{HostTwins, "host/NAME", "Two machines run as a host that the cluster uses, such as a machine and its clone. Nothing new is started on either."},
		{HostSingle, "host/NAME", "One machine alone runs as the host again."},
		{DaemonNew, "daemon/NAME", "A Daemon was created."},
		{DaemonChanged, "daemon/NAME", "The spec of a Daemon was changed, or the Daemon is being removed."},
		{DaemonGone, "daemon/NAME", "A Daemon is gone: its agent stopped it and cleaned up."},
		{DaemonRunning, "daemon/NAME", "A daemon's process runs."},
		{DaemonFailed, "daemon/NAME", "A daemon could not be prepared, or its process ended and is started again after a pause."},
		{DaemonRestarted, "daemon/NAME", "A daemon's process ended without being told to, and was started again."},
		{DeviceNew, "host/NAME/ID", "A block device appeared on a host that the cluster uses."},
		{DeviceChanged, "host/NAME/ID", "A block device has another path, or became available or unavailable."},
		{DeviceGone, "host/NAME/ID", "A block device of a host that the cluster uses is not there any more."},
		{ResourceNew, "KIND/NAME", "A resource (what users of storage get, such as volume/NAME) was declared."},
		{ResourceChanged, "KIND/NAME", "The spec of a resource was changed, or it cannot be made as it is declared, or it is being removed."},
		{ResourceGone, "KIND/NAME", "A resource is gone: the storage system has nothing of it any more, or keeps its data as its deletionPolicy says."},
		{ResourceOnline, "KIND/NAME", "A resource serves, and all of it is there."},
		{ResourceDegraded, "KIND/NAME", "A resource serves, and something of it is missing or being healed."},
		{ResourceOffline, "KIND/NAME", "Some of a resource's data cannot be reached."},
		{LeaderChanged, "leader/NAME", "Another server leads, and looks at the cluster for the first time; of the control plane: acts for all."},
		{ActionNew, "action/NAME", "An action on the cluster, or on a host that it uses, was asked for."},
		{ActionChanged, "action/NAME", "An action came into another state: it waits for approval or its turn, or is carried out."},
		{ActionFinished, "action/NAME", "An action has ended: it is done, failed, was cancelled, or nobody knows how far it came."},
		{ActionStuck, "action/NAME", "The API refuses several times in a row what becomes of an action: it is set aside, others go on, and it is tried again from time to time."},
		{OrchestrateReport, "cluster/NAME", "The outcome of an orchestration differs from that of the one before."},
		{Flapping, "the object", "An object went up and down again and again: what else it does is not told until it has been steady for ten minutes. That a cluster is OFFLINE is told all the same."},
		{Steady, "the object", "An object that flapped has not changed for ten minutes; the message says what it did last."},
		{QuorumMemberAdded, "host/NAME", "A standby server was given a member of etcd; it does not vote yet."},
		{QuorumMemberPromoted, "host/NAME", "A member of etcd has caught up and votes."},
		{QuorumMemberReplaced, "host/NAME", "A member of etcd votes in the place of another, which is removed next."},
		{QuorumMemberRemoved, "host/NAME", "A member of etcd was removed; its server goes on as a standby."},
		{QuorumDegraded, "cluster/control-plane", "Members of etcd do not answer or do nothing, or there are fewer than wanted."},
		{QuorumHealthy, "cluster/control-plane", "All members of etcd that are wanted answer, also when a control plane tells for the first time."},
		{QuorumRestored, "cluster/control-plane", "The control plane was restored, as the message says, from a backup or from the data of one server: what was written since is gone, and servers of its earlier life set their data aside."},
	}
}
