// Package cause says why a volume of GlusterFS does not serve, or serves less than it should, and
// what to do. It is pure.
package cause

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/serves"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Volume is a started volume, with what is known of its pool.
type Volume struct {
	Pool *glusterd.Volume
	// Peers are those of the node that speaks for the pool.
	Peers []glusterd.Peer
	// Node is the name of the StorageNode with an address; empty where there is none.
	Node func(address string) string
	// Splits are the entries in split-brain, and Resolve is the command that ends one.
	Splits  []string
	Resolve string
}

// Of is the reason and the next step; nothing where all of the volume is well.
func Of(v *Volume) (api.Reason, string) {
	pool := v.Pool
	switch down := v.down(glusterd.BrickOffline, glusterd.BrickUnknown); {
	case pool.Silent:
		return api.ReasonNotAnswering, "wait: the agent of a node asks again; if it stays so, run 'holdfast status'"
	case v.short() && v.quorumLost() != "":
		return api.ReasonQuorumLost, "bring back more than half of the nodes of the pool, without which all of " +
			"them end their " +
			"bricks (cluster.server-quorum-type): " + v.quorumLost()
	case v.short():
		return api.ReasonDataUnavailable, "bring back bricks of the set: " + v.ask(down)
	case len(v.Splits) > 0:
		return api.ReasonSplitBrain, "choose a copy: run '" + v.Resolve + "'"
	case down != nil && down.State == glusterd.BrickOffline:
		return api.ReasonBricksOffline, "wait: the leader has the brick started again; if it stays so, " + v.ask(down)
	case down != nil:
		return api.ReasonBricksOffline, v.ask(down)
	}
	return v.unhealed()
}

// unhealed says why copies differ though all bricks serve.
func (v *Volume) unhealed() (api.Reason, string) {
	for i := range v.Pool.Bricks {
		b := &v.Pool.Bricks[i]
		if v.Pool.SetSize() > 1 && b.Heal == nil {
			return api.ReasonDaemonHangs, fmt.Sprintf("free space on its device; if there is enough, end the "+
				"process of brick %s "+
				"on its node: the leader has it started again", b.Name())
		}
	}
	if len(v.Pool.HealersDown) > 0 {
		return api.ReasonNotHealing, serves.StartHealer(v.Pool.Name)
	}
	for _, b := range v.Pool.Bricks {
		if b.Heal != nil && b.Heal.Pending > 0 {
			return api.ReasonDataNotClean, "wait: the copies are healed by themselves; 'holdfast get volumes' " +
				"shows how many entries are left"
		}
	}
	return "", ""
}

// short says whether a set has fewer bricks that serve than clients need.
func (v *Volume) short() bool {
	return slices.ContainsFunc(v.Pool.Sets(),
		func(set []glusterd.Brick) bool { return sets.Online(set) < sets.Needed(v.Pool) })
}

// down is a brick in the first of these states that one is in.
func (v *Volume) down(states ...glusterd.BrickState) *glusterd.Brick {
	for _, state := range states {
		for i := range v.Pool.Bricks {
			if v.Pool.Bricks[i].State == state {
				return &v.Pool.Bricks[i]
			}
		}
	}
	return nil
}

// ask is what to run to learn more of the node of a brick.
func (v *Volume) ask(b *glusterd.Brick) string {
	if node := v.Node(b.Address); node != "" {
		return "run 'holdfast why glusterd." + node + "'"
	}
	return "run 'holdfast status'"
}

// quorumLost is what to run where half of the nodes or more are away, and the volume has its bricks
// end then; empty otherwise.
func (v *Volume) quorumLost() string {
	if v.Pool.Options["cluster.server-quorum-type"] != "server" {
		return ""
	}
	up, ask := 1, ""
	for _, x := range v.Peers {
		if x.Connected {
			up++
		} else if ask == "" {
			ask = v.ask(&glusterd.Brick{Address: x.Address})
		}
	}
	if 2*up > len(v.Peers)+1 {
		return ""
	}
	return ask
}
