package glusterd

import (
	"encoding/json"
	"fmt"
)

// Report is what one node's glusterd says. An agent writes it into Daemon.status.report as JSON. It reads the same as long as
// nothing changes that matters: free space is rounded, and there are no clocks and no counters of progress.
// The agent fills in Generation, UUID, Version, Installed, Outdated and Stores; Gather does the rest.
type Report struct {
	// Generation is the generation of the Daemon that the report was made for. It tells a report of this time in which the node
	// speaks for the pool from one of an earlier time, which an agent that was away left behind.
	Generation int64 `json:"generation,omitempty"`
	// UUID is the node's own identity within the pool.
	UUID string `json:"uuid,omitempty"`
	// Version is the release of the glusterd that runs, such as "10.3", and OpVersion the pool's operating version.
	Version   string `json:"version,omitempty"`
	OpVersion int    `json:"opVersion,omitempty"`
	// Installed is the release that is installed, and Outdated is set while a process of the node, glusterd or a brick, runs a program
	// that was replaced since it started: packages were upgraded.
	Installed string `json:"installed,omitempty"`
	Outdated  bool   `json:"outdated,omitempty"`
	// MaxOpVersion is the highest operating version that this release can do.
	MaxOpVersion int `json:"maxOpVersion,omitempty"`
	// Peers are the other nodes of the pool, as this one knows them, sorted by address.
	Peers []Peer `json:"peers,omitempty"`
	// Stores are the places on this node where bricks can lie, sorted by name.
	Stores []Store `json:"stores,omitempty"`
	// Pool is set in a report of the depth DepthPool, and so are Groups: the named groups of
	// options that this node's GlusterFS has, each with its options.
	Pool   *Pool                        `json:"pool,omitempty"`
	Groups map[string]map[string]string `json:"groups,omitempty"`
	// Problem says what kept a part of the report from being made.
	Problem string `json:"problem,omitempty"`
}

// Peer is another node of the pool.
type Peer struct {
	// Address is the name that the pool has for it, and Others are further ones.
	Address string   `json:"address"`
	Others  []string `json:"others,omitempty"`
	UUID    string   `json:"uuid,omitempty"`
	// Connected says whether the two glusterds speak with each other.
	Connected bool `json:"connected,omitempty"`
	// State is glusterd's own word. Anything but PeerInCluster keeps the pool from being changed.
	State string `json:"state,omitempty"`
}

// PeerInCluster is the state of a peer that belongs to the pool and agrees with this node.
const PeerInCluster = "Peer in Cluster"

// Store is a place on a node where bricks can lie: a device with a file system of its own, or a directory. A brick is a directory
// directly below it.
type Store struct {
	// Name is StoreName of the device, or the directory's path.
	Name string `json:"name"`
	// Path is where it is on the host.
	Path string `json:"path"`
	// Device is the identity of the device; empty for a directory.
	Device string `json:"device,omitempty"`
	// Root says that a directory lies on the host's root file system, where gluster takes bricks by force alone.
	Root bool `json:"root,omitempty"`
	// Size and Free are in bytes; Free is rounded down to a fiftieth of Size.
	Size int64 `json:"size,omitempty"`
	Free int64 `json:"free,omitempty"`
	// Bricks are the directories in it that are bricks of a volume, or were, sorted by path.
	Bricks []StoredBrick `json:"bricks,omitempty"`
	// Problem says why the store cannot be used (not mounted, shut down, gone); empty when it can.
	Problem string `json:"problem,omitempty"`
}

// StoredBrick is the directory of a brick, as it lies in a store.
type StoredBrick struct {
	Path string `json:"path"`
	// Volume is the identity of the volume (the attribute trusted.glusterfs.volume-id); empty for a directory that has none.
	Volume string `json:"volume,omitempty"`
	// Limit is how many bytes the whole volume may hold, as the brick has it; 0 where nothing is said. It counts while the volume's
	// option OptionQuota is "on".
	Limit int64 `json:"limit,omitempty"`
}

// RoundFree rounds free space down, so that a report does not change with each file that is written.
func RoundFree(size, free int64) int64 {
	step := size / 50
	if step <= 0 {
		return free
	}
	return free / step * step
}

// Pool is what one node knows of the whole pool.
type Pool struct {
	// Volumes are all volumes, sorted by name.
	Volumes []Volume `json:"volumes,omitempty"`
}

// The states of a volume.
const (
	VolumeCreated = "Created"
	VolumeStarted = "Started"
	VolumeStopped = "Stopped"
)

// Volume is a volume as glusterd knows it.
type Volume struct {
	Name  string `json:"name"`
	ID    string `json:"id"`
	State string `json:"state"`
	// Replica is the number of bricks of a replica set, arbiters among them; 1 where there is no replication.
	Replica int `json:"replica,omitempty"`
	// Arbiter is how many bricks of a replica set hold only names and attributes.
	Arbiter int `json:"arbiter,omitempty"`
	// Disperse is the number of bricks of a dispersed set, Redundancy how many of them it can do without; 0 where there is none.
	Disperse   int `json:"disperse,omitempty"`
	Redundancy int `json:"redundancy,omitempty"`
	// Bricks are in glusterd's order: each SetSize of them that follow each other are one set.
	Bricks  []Brick           `json:"bricks,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// HealersDown are the nodes, by address, whose self-heal daemon does not run; "localhost" is
	// the one that reports.
	HealersDown []string `json:"healersDown,omitempty"`
	// Refused are options that GlusterFS did not take when they were set the last time, sorted by
	// name.
	Refused []RefusedOption `json:"refused,omitempty"`
	// Task is the rebalance or remove-brick that glusterd remembers, or nil.
	Task *Task `json:"task,omitempty"`
	// Unknown says why not all is known of the bricks, of what is to be healed, or of the task: not all could be asked.
	Unknown string `json:"unknown,omitempty"`
	// Silent says that nobody could be asked which bricks serve: then BrickUnknown means nothing.
	Silent bool `json:"silent,omitempty"`
}

// RefusedOption is an option that GlusterFS did not take with this value, and what it said.
type RefusedOption struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Text  string `json:"text"`
}

// SetSize is the number of bricks that hold the same data, each its copy or its part.
func (v *Volume) SetSize() int { return max(1, v.Replica, v.Disperse) }

// Sets are the volume's replica or dispersed sets; each brick of a volume without either is a set.
func (v *Volume) Sets() [][]Brick {
	var sets [][]Brick
	for size, rest := v.SetSize(), v.Bricks; len(rest) >= size; rest = rest[size:] {
		sets = append(sets, rest[:size])
	}
	return sets
}

// OptionQuota is the option that VerbQuota turns on and off.
const OptionQuota = "features.quota"

// BrickState says whether a brick's process serves.
type BrickState string

// The states of a brick.
const (
	// BrickUnknown: nobody says. The glusterd of the brick's node is not heard; the brick may well serve.
	BrickUnknown BrickState = ""
	BrickOnline  BrickState = "online"
	BrickOffline BrickState = "offline"
)

// Brick is one brick of a volume.
type Brick struct {
	// Address is the node's, as the pool has it, and UUID the node's identity.
	Address string     `json:"address"`
	UUID    string     `json:"uuid,omitempty"`
	Path    string     `json:"path"`
	Arbiter bool       `json:"arbiter,omitempty"`
	State   BrickState `json:"state,omitempty"`
	// Heal is what this brick has that others of its set still lack; nil where it could not be asked.
	Heal *Heal `json:"heal,omitempty"`
	// Leaving is set while the brick is being drained by remove-brick.
	Leaving bool `json:"leaving,omitempty"`
}

// Name is the brick as gluster writes it: address:path.
func (b *Brick) Name() string { return b.Address + ":" + b.Path }

// Heal are entries of a brick that are not yet the same in its set. Numbers are rounded to two digits.
type Heal struct {
	Pending    int64 `json:"pending,omitempty"`
	SplitBrain int64 `json:"splitBrain,omitempty"`
	// Files are some of those in split-brain, by path or gfid.
	Files []string `json:"files,omitempty"`
}

// The kinds of tasks, and their states, in gluster's words.
const (
	TaskRebalance   = "Rebalance"
	TaskRemoveBrick = "Remove brick"

	TaskNotStarted = "not started"
	TaskInProgress = "in progress"
	TaskStopped    = "stopped"
	TaskCompleted  = "completed"
	TaskFailed     = "failed"
)

// Task moves files between bricks.
type Task struct {
	Kind  string `json:"kind"`
	ID    string `json:"id,omitempty"`
	State string `json:"state"`
	// Bricks are those that are removed, as address:path.
	Bricks []string `json:"bricks,omitempty"`
	// Failures are files that could not be moved. A task with failures says "completed" nevertheless.
	Failures int64 `json:"failures,omitempty"`
}

// Parse reads a report. An empty text is no report, and no error.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("while reading the report of a glusterd: %w", err)
	}
	return r, nil
}

// Text writes a report as Parse reads it.
func (r *Report) Text() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("while writing the report of a glusterd: %w", err)
	}
	return string(b), nil
}
