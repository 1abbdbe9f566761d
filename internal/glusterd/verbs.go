package glusterd

// The commands that an agent carries out on its node with the program gluster. Each may be repeated: what is done already is no
// error. Object is the volume's name where nothing else is said.
const (
	// VerbProbe takes the node with the address Object into the pool.
	VerbProbe = "peer probe"
	// VerbDetach lets the node with the address Object leave the pool. With ParamForce also one that is down.
	VerbDetach = "peer detach"
	// VerbCreate makes a volume of ParamBricks, with ParamReplica and ParamArbiter, or ParamDisperse and ParamRedundancy, or neither.
	VerbCreate = "volume create"
	// VerbStart starts a volume; with ParamForce also the bricks of a started one that are down.
	VerbStart = "volume start"
	// VerbStop stops a volume. The agent refuses one whose identity is not ParamVolumeID, where that is given.
	VerbStop = "volume stop"
	// VerbDelete deletes a stopped volume, and refuses as VerbStop does. Its bricks stay where they are.
	VerbDelete = "volume delete"
	// VerbSet sets options: all parameters, by name.
	VerbSet = "volume set"
	// VerbReset gives options their default again: those that are the names of the parameters.
	VerbReset = "volume reset"
	// VerbAddBrick adds ParamBricks as further sets; with ParamReplica it changes the number of copies. The agent refuses it for a
	// volume that has other bricks than ParamHas, where that is given: the leader decided on a report that is too old.
	VerbAddBrick = "volume add-brick"
	// VerbRebalance starts moving files to where they belong among the bricks.
	VerbRebalance = "volume rebalance"
	// VerbRemoveStart starts to drain ParamBricks; VerbRemoveStop ends that, VerbRemoveCommit lets the empty bricks go.
	VerbRemoveStart  = "volume remove-brick start"
	VerbRemoveStop   = "volume remove-brick stop"
	VerbRemoveCommit = "volume remove-brick commit"
	// VerbReplace puts the brick ParamNew in the place of ParamOld, whose data the set then heals ("commit force").
	VerbReplace = "volume replace-brick"
	// VerbResetBrick takes the brick ParamOld into use again on an empty directory, whose data the set then heals.
	VerbResetBrick = "volume reset-brick"
	// VerbHeal has the self-heal daemons look now; with ParamFull at all files.
	VerbHeal = "volume heal"
	// VerbQuota limits a volume to ParamLimit bytes; without ParamLimit the limit is lifted.
	VerbQuota = "volume quota"
	// VerbOpVersion raises the pool's operating version to Object.
	VerbOpVersion = "volume set all cluster.op-version"
	// VerbResolve takes, of each of ParamFiles, the copy that ParamKeep says for the right one; the others of its set are healed from it.
	VerbResolve = "volume heal split-brain"
	// VerbDropBrick removes the directory Object of a brick on the agent's own node. The agent refuses one that any volume of the
	// pool has, one that lies in none of its stores, and one whose attribute volume-id is not ParamVolumeID.
	VerbDropBrick = "brick drop"
)

// The parameters of commands.
const (
	// ParamBricks are bricks as address:path, joined by spaces, in gluster's order.
	ParamBricks = "bricks"
	// ParamHas are the bricks that the volume had when the leader decided on the command, written as ParamBricks.
	ParamHas        = "has"
	ParamReplica    = "replica"
	ParamArbiter    = "arbiter"
	ParamDisperse   = "disperse"
	ParamRedundancy = "redundancy"
	ParamOld        = "old"
	ParamNew        = "new"
	ParamFull       = "full"
	ParamLimit      = "limit"
	ParamVolumeID   = "volumeID"
	// ParamFiles are paths within the volume, joined by newlines.
	ParamFiles = "files"
	// ParamKeep is KeepLatest, KeepBigger or KeepBrick; with the last one ParamBricks are those of which one has the right copy.
	ParamKeep = "keep"
	// ParamForce is "true" or not there.
	ParamForce = "force"
)

// Which copy of a file in split-brain is kept, in gluster's words.
const (
	KeepLatest = "latest-mtime"
	KeepBigger = "bigger-file"
	KeepBrick  = "source-brick"
)
