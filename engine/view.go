package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// View is everything that one orchestration of one cluster looks at: what the store says, what each agent reports, and
// what the storage system says of itself. It is a snapshot: nobody writes to it, and lists are sorted by name.
type View struct {
	Cluster *api.StorageCluster
	// Nodes are the cluster's StorageNodes.
	Nodes []api.StorageNode
	// Hosts are all hosts.
	Hosts []api.Host
	// Daemons are the cluster's daemons, those being deleted among them.
	Daemons []api.Daemon
	// Resources are what users of storage get from the cluster, sorted by kind and name (OfKind). One that is being deleted stays until the
	// driver's plan says that it is gone.
	Resources []api.Resource
	// Status is the cluster's StorageStatus, or nil before there is one.
	Status *api.StorageStatus
	// Actions are the cluster's own actions and those of no cluster, which hosts have.
	Actions []api.Action
	// Secrets are the cluster's Secrets, without what they hold.
	Secrets []SecretInfo
	// Others are the daemons of other clusters on the hosts that this one uses, so that a driver can keep out of their way (addresses,
	// ports).
	Others []*api.Daemon
	// Claims are the devices that the StorageNodes and Daemons of all clusters claim on those hosts, this one's among them (see ClaimsOf).
	Claims []Claim
	// System is what the storage system says of itself: the driver's own type, nil when it was not asked or did not answer.
	System any
	// Failures are the commands of the last plan that failed, and are tried again. A driver may tell of them in statuses; the engine
	// tells of them in decisions.
	Failures []CommandFailure
	// Errors are the node-specific errors met while the view was made. The run goes on.
	Errors []NodeError
	// Gone are the hosts that are dead and will not come back, as a person says: their daemons are let go without the word of their agents, and
	// nothing on their disks is touched. Only a projection asks for it.
	Gone map[string]bool
	// Forbidden is the word of the platform that it starts no daemon of the cluster, nil where it does. The Store knows it.
	Forbidden *Prohibition
	// Restart is the name of a Daemon of which somebody asks whether the others can do without it while it is started again by its agent, by whose word it
	// runs; empty in all other views.
	Restart string
	// Supposed is set in a view of what is supposed, for which a driver keeps its connection.
	Supposed bool

	// used is what UsedHosts returns, where that was found already and holds still.
	used map[string]bool
}

// SecretInfo is what may be known of a Secret without reading it.
type SecretInfo struct {
	Name string
	// UID tells it from one of the same name that was made before or after it; empty where the store has none.
	UID         string
	Keys        []string
	Annotations map[string]string
}

// Claim says which StorageNode, or which Daemon, claims which device of which host.
type Claim struct {
	Host     string
	DeviceID string
	// Node is the StorageNode that claims it; empty for a claim of a Daemon alone.
	Node types.NamespacedName
	// Daemon is the name of the Daemon that uses the device, in the namespace of Cluster; empty for a node's claim.
	Daemon string
	// Cluster is the StorageCluster that the node or daemon belongs to; empty when the node belongs to none any more.
	Cluster types.NamespacedName
	// Recorded is set when the claim stands in the node's status or in a Daemon. A claim that is only in a node's spec
	// yields to it.
	Recorded bool
	// Dropped is set when the claim stands in the node's status, and its spec does not name the device so any more.
	Dropped bool
	// Since is when the node was created. Of two claims of the same rank the older one holds.
	Since time.Time
}

// CommandFailure is a command that failed, and what was said of it the last time.
type CommandFailure struct {
	Command Command
	Message string
}

// NodeError is an error that concerns one host or node alone.
type NodeError struct {
	Object  string
	Message string
}

// HostView is a host with everything that is on it, whatever cluster it belongs to. It is a snapshot: nobody writes to it, and
// lists are sorted by namespace and name.
type HostView struct {
	Host *api.Host
	// Nodes are the StorageNodes that select the host or were accepted on it.
	Nodes []api.StorageNode
	// Daemons are those on the host, those being deleted among them.
	Daemons []api.Daemon
	// Clusters are those that the host matters to (see ClustersOfHost).
	Clusters []types.NamespacedName
}

// node is the StorageNode of a name, or nil.
func (v *View) node(name string) *api.StorageNode {
	for i := range v.Nodes {
		if v.Nodes[i].Name == name {
			return &v.Nodes[i]
		}
	}
	return nil
}

// HostsByName are the view's hosts by their names.
func (v *View) HostsByName() map[string]*api.Host {
	byName := make(map[string]*api.Host, len(v.Hosts))
	for i := range v.Hosts {
		byName[v.Hosts[i].Name] = &v.Hosts[i]
	}
	return byName
}

// DaemonsByName are the view's daemons by their names.
func (v *View) DaemonsByName() map[string]*api.Daemon {
	byName := make(map[string]*api.Daemon, len(v.Daemons))
	for i := range v.Daemons {
		byName[v.Daemons[i].Name] = &v.Daemons[i]
	}
	return byName
}
