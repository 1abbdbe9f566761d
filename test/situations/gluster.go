package situations

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

const (
	glusterE2E    = "e2e TestGlusterSituations"
	glusterServes = "driver/gluster/serves TestOf"
	glusterCause  = "driver/gluster/cause TestOf"
)

// gluster are the situations of GlusterFS: its nodes and volumes.
var gluster = slicesOf(
	row{
		"volume of GlusterFS", "gluster-option-refused", "GlusterFS does not take an option, or its value.",
		"why volume/data", api.ReasonInvalidSpec, "correct the spec", glusterE2E, "driver/gluster TestOptions_refused",
	},
	row{
		"volume of GlusterFS", "gluster-group-unknown", "The options name a group that GlusterFS does not have.",
		"why volume/data", api.ReasonInvalidSpec, "correct the spec", "", "driver/gluster TestOptions_refused",
	},
	row{
		"volume of GlusterFS", "gluster-brick-down", "A brick of a volume does not serve.",
		"why volume/data", api.ReasonBricksOffline, "holdfast why glusterd.n2", glusterE2E, glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-brick-hung", "The process of a brick hangs, or its device is full.",
		"why volume/data", api.ReasonDaemonHangs, "end the process of brick", glusterE2E, glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-node-away", "A node with a brick lost its power.",
		"why volume/data", api.ReasonBricksOffline, "holdfast why glusterd.n2", glusterE2E, glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-bricks-lost", "Fewer bricks of a set serve than clients need.",
		"why volume/data", api.ReasonDataUnavailable, "holdfast why glusterd.n2", "", glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-quorum-lost", "Half of the nodes of a pool are away, and bricks end " +
			"without a quorum.",
		"why volume/data", api.ReasonQuorumLost, "more than half of the nodes", glusterE2E, glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-split-brain", "Both sides of a cut network wrote to the same file.",
		"why volume/data", api.ReasonSplitBrain, "holdfast volume resolve data FILE --keep NODE",
		"e2e TestGlusterSplitBrain",
		glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-healing", "A brick that was away is healed.",
		"why volume/data", api.ReasonDataNotClean, "holdfast get volumes", "", glusterCause,
	},
	row{
		"volume of GlusterFS", "gluster-healer-down", "Copies differ, and the self-heal daemon of a node ended.",
		"why volume/data", api.ReasonNotHealing, "gluster volume start data force", "", glusterCause,
	},

	row{
		"node of GlusterFS", "glusterd-hung", "The other nodes do not reach a glusterd whose process runs.",
		"why glusterd.n2", api.ReasonDaemonHangs, "holdfast daemon restart gluster-glusterd-n2", "", glusterServes,
	},
	row{
		"node of GlusterFS", "glusterd-rejected", "The pool rejects a node, which has another configuration.",
		"why glusterd.n2", api.ReasonPeerRejected, "holdfast daemon restart gluster-glusterd-n2", "", glusterServes,
	},
	row{
		"node of GlusterFS", "glusterd-brick-down", "A brick of the node does not serve.",
		"why glusterd.n2", api.ReasonBricksOffline, "/var/log/glusterfs/bricks", glusterE2E, glusterServes,
	},
	row{
		"node of GlusterFS", "glusterd-healer-down", "The self-heal daemon of the node ended.",
		"why glusterd.n2", api.ReasonNotHealing, "gluster volume start data force", glusterE2E, glusterServes,
	},
	row{
		"node of GlusterFS", "gluster-closed", "spec.glusterfs.closed keeps new bricks from the node.",
		"why node/n2", api.ReasonClosed, "holdfast status gluster", glusterE2E, "driver/gluster TestClosed",
	},
)
