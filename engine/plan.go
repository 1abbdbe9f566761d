package engine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/serving"
)

// Plan is what an orchestration wants to change. It is a value: making it changes nothing.
type Plan struct {
	// Refused is set when the spec cannot be carried out. Then nothing else but Decisions, Nodes, Resources and Status is set.
	Refused bool
	// Secrets to make; one that exists is left as it is, for ever.
	Secrets []SecretWant
	// Daemons to create or to bring to this spec and memory. Only those that differ from the view are listed. They
	// are written all at once, after Secrets and Nodes (DaemonChange.AfterCommands: after Commands, too): a daemon
	// that must wait for another one belongs into a later plan.
	Daemons []DaemonChange
	// Remove are the names of daemons to delete, with the reason of each.
	Remove []Removal
	// Commands are asked of the storage system, in this order. One that fails holds up those after it of the same Line.
	Commands []Command
	// Nodes are StorageNode statuses that differ from the view. They are written before Daemons, so that a device is claimed
	// before anything is told to use it.
	Nodes []NodeStatus
	// Resources are statuses of resources that differ from the view, and resources that are gone. They are written before Daemons and
	// Commands, so that a place is promised before anything is told to use it. With its first status a resource is adopted
	// (api.FinalizerResource), so nothing may be made for one of which nothing was said.
	Resources []ResourceChange
	// Status is the whole StorageStatus as it should read.
	Status api.StorageStatusStatus
	// Said is what the storage system says of daemons whose processes run. Services is what of it is new; the engine sets it.
	Said     serving.Said
	Services []serving.Change
	// Conditions are those of the StorageCluster that are the driver's own; their times and generations are the engine's affair. One that a plan
	// does not have stays as it was.
	Conditions []metav1.Condition
	// Decisions says what was decided, and why; also why not. A decision that reads differently is written to the report, so
	// a text with a running time in it costs a write in each run.
	Decisions []api.Decision
	// Done is set when nothing is left to wait for: everything wanted is there, by the storage system's own word.
	Done bool
	// Held counts the changes that are not made because the cluster is only observed. The engine sets it.
	Held int
	// Finished is set for a cluster that is being deleted, when nothing of it is left.
	Finished bool
	// Recheck asks for another run after this time, because the storage system itself sends no word of what is waited for.
	// Zero: the cluster's interval.
	Recheck time.Duration
	// Pause is set when what is waited for is nothing but time: this much of it. What is foreseen goes on after it.
	Pause time.Duration
}

// Empty says whether carrying the plan out would change nothing but what is told of the cluster.
func (p *Plan) Empty() bool { return !p.writes() && len(p.Commands) == 0 }

// writes says whether the plan changes something in the store.
func (p *Plan) writes() bool { return len(p.Secrets) > 0 || len(p.Daemons) > 0 || len(p.Remove) > 0 }

// places are the hosts that carrying the plan out makes daemons on that are not there yet.
func (p *Plan) places() map[string]bool {
	hosts := map[string]bool{}
	for i := range p.Daemons {
		if p.Daemons[i].New {
			hosts[p.Daemons[i].Daemon.Spec.Host] = true
		}
	}
	return hosts
}

// SecretWant asks for a Secret. The driver makes what it holds, once, when it does not exist (Driver.MakeSecret).
type SecretWant struct {
	Name string
	// Kind tells the driver what to make, such as "cephx".
	Kind string
	// Params are what the driver needs to make it; never secret.
	Params map[string]string
	// Annotations are put on the Secret and come back in SecretInfo.
	Annotations map[string]string
	// Gone has the Secret removed instead: what it holds is worth nothing any more. Nothing but Name is needed then.
	Gone bool
}

// DaemonChange is a daemon to create or change.
type DaemonChange struct {
	// Daemon has the spec that is wanted, and the leader's memory (package leadermemory). Both are
	// written at once. Other annotations are written with a new daemon alone.
	Daemon api.Daemon
	// New is set when the daemon does not exist yet.
	New bool
	// Reason says why, for events and decisions.
	Reason string
	// Risk is what it may do to data and service, where that is more than the Daemon itself tells (see RiskOfRemoval).
	Risk api.Risk
	// AfterCommands has it written only when the storage system has carried out all Commands of the plan, and soon: else it is left to
	// the next plan. It is for Daemons that are there: the place of a new one is not kept that long.
	AfterCommands bool
}

// Removal is a daemon to delete.
type Removal struct {
	Name   string
	Reason string
	// Risk is as in DaemonChange.
	Risk api.Risk
}

// Command is one thing asked of the storage system. Performing it again must be harmless.
type Command struct {
	// Verb tells the driver what to do, such as "osd new".
	Verb string
	// Object is what it is done to, such as "osd.3".
	Object string
	Params map[string]string
	// Daemon is the name of the Daemon in the view whose agent carries it out (package service, Performer), within a minute: long
	// work is started by a command, and followed by what the storage system says. Empty: Driver.Perform does.
	Daemon string
	// Secret names a Secret of the cluster that the agent needs to carry it out; empty for none.
	Secret string
	// Line names what the command is about where it depends on nothing else, such as "volume/v": one that fails holds up those after
	// it of the same Line, and none of other lines, and is tried again after a pause of its own. Without a Line it relies on all
	// before it, and all after it rely on it.
	Line   string
	Reason string
	// Risk is what it may do to data and service.
	Risk api.Risk
}

// NodeStatus is the status that a StorageNode shall have.
type NodeStatus struct {
	Name   string
	Status api.StorageNodeStatus
	// Seen is the node that the status was made from; the engine sets it. Nil has the status written whatever became of the node.
	Seen *api.StorageNode
}

// ResourceChange is what becomes of a resource: the status that it shall have, or the word that it is gone.
type ResourceChange struct {
	// Resource is the resource with the status that it shall have. Nothing else of it is written.
	Resource api.Resource
	// Gone says of a resource that is being deleted that the storage system has nothing of it any more, or keeps it on purpose
	// (DeletionRetain): it is let go, and its status does not matter.
	Gone bool
	// Unadopted has the status written and the resource not adopted: nothing is made for it.
	Unadopted bool
	// Seen is the resource that the status was made from; the engine sets it. Nil has the status written whatever became of the
	// resource.
	Seen api.Resource
}

// Object is what the resource is called in decisions.
func (c *ResourceChange) Object() string { return ResourceObject(c.Resource) }

// Same says whether the resource is being deleted, and is the one that was seen.
func (c *ResourceChange) Same(now api.Resource) bool {
	return now.GetDeletionTimestamp() != nil && (c.Seen == nil || c.Seen.GetUID() == now.GetUID())
}

// Stale says whether the resource is another one by now than the status was made from: it was made anew, somebody changed its
// spec or deleted it, or wrote its status.
func (c *ResourceChange) Stale(now api.Resource) bool {
	if c.Seen == nil {
		return false
	}
	asSeen := CopyResource(now)
	asSeen.TakeStatus(c.Seen)
	return c.Seen.GetUID() != now.GetUID() || c.Seen.GetGeneration() != now.GetGeneration() ||
		!c.Seen.GetDeletionTimestamp().Equal(now.GetDeletionTimestamp()) || !equality.Semantic.DeepEqual(asSeen, now)
}

// Stale says whether the node is another one by now than the status was made from: it was made anew, somebody changed its spec, or
// wrote its status.
func (s *NodeStatus) Stale(now *api.StorageNode) bool {
	return s.Seen != nil && (s.Seen.UID != now.UID || s.Seen.Generation != now.Generation || !equality.Semantic.DeepEqual(s.Seen.Status, now.Status))
}
