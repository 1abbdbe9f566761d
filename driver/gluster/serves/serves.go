// Package serves says what the pool of GlusterFS makes of glusterds whose processes run. It is pure.
package serves

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Rejected says of a node that the pool has it in another state than as one of its own; empty where it does not.
func Rejected(x *glusterd.Peer) string {
	if x == nil || x.State == glusterd.PeerInCluster {
		return ""
	}
	return fmt.Sprintf("is in the pool as %q: its glusterd has another pool configuration than the others; repair it "+
		"before the pool can change", x.State)
}

// Of is what the pool says of the glusterd of a node, by what the speaker has of it as a peer, nil
// for the speaker itself, by which of the node's bricks are offline, and by the volume, if any,
// that its self-heal daemon should heal and does not run for; nil where it serves.
func Of(d *api.Daemon, x *glusterd.Peer, offline []string, unhealed string) *api.DaemonService {
	restart := fmt.Sprintf("restart it with 'holdfast daemon restart %s'", d.Name)
	says := func(state api.ServiceState, reason api.Reason, next, message string) *api.DaemonService {
		return &api.DaemonService{State: state, Reason: reason, Message: message, Next: next}
	}
	switch {
	case x != nil && !x.Connected:
		return says(api.OutOfService, api.ReasonDaemonHangs, fmt.Sprintf("check the network of host %s; then %s",
			d.Spec.Host, restart), "its process runs, and the other nodes of the pool do not reach it")
	case Rejected(x) != "":
		return says(api.ServiceLimited, api.ReasonPeerRejected, restart+"; if the pool still rejects it, delete its "+
			"StorageNode: copies of its bricks are made on other nodes", "its process runs, and it "+Rejected(x))
	case len(offline) > 0:
		return says(api.ServiceLimited, api.ReasonBricksOffline, "wait: the leader has them started again; the logs of "+
			"bricks that end again lie in /var/log/glusterfs/bricks on host "+d.Spec.Host,
			"its process runs, and bricks of the node do not serve: "+words.Few(offline))
	case unhealed != "":
		return says(api.ServiceLimited, api.ReasonNotHealing, StartHealer(unhealed),
			"its process runs, and the self-heal daemon of the node does not: copies that differ are not healed there")
	}
	return nil
}

// StartHealer is what to do where the self-heal daemon of a node ended: glusterd starts it with a
// volume.
func StartHealer(volume string) string {
	return fmt.Sprintf("run 'gluster volume start %s force' on a node of the pool, which starts the self-heal "+
		"daemon again; its "+
		"log is /var/log/glusterfs/glustershd.log on its host", volume)
}

// Unhealed is a started volume for which the self-heal daemon of a node does not run, by the
// address of the node, and whether that is the one that reports; empty where there is none.
func Unhealed(volumes []glusterd.Volume, address string, reports bool) string {
	for i := range volumes {
		v := &volumes[i]
		down := slices.Contains(v.HealersDown, address) || reports && slices.Contains(v.HealersDown, "localhost")
		if v.State == glusterd.VolumeStarted && down {
			return v.Name
		}
	}
	return ""
}
