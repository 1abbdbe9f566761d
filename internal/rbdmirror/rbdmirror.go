// Package rbdmirror holds what the driver for Ceph and the agents that run rbd-mirror must agree on: the names in a Daemon, the commands about pools,
// the report that an agent makes, and the token by which clusters find each other. It runs nothing itself.
package rbdmirror

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Type is the type of the Daemon, as in Daemon.spec.type. Its program is rbd-mirror.
const Type = "ceph-rbd-mirror"

const (
	// EntityPrefix begins the entities of the daemons.
	EntityPrefix = "client.rbd-mirror."
	// PeerEntity is whom another cluster's daemons come as.
	PeerEntity = "client.rbd-mirror-peer"

	// FileConf is ceph.conf.
	FileConf = "ceph.conf"
	// ParamPools are the pools to be told of, with a space between them.
	ParamPools = "pools"
)

// The verbs of commands, whose object is the RBDMirror, and their parameters.
const (
	// VerbEnable has the images of a pool mirrored.
	VerbEnable = "rbd mirror pool enable"
	// VerbImport has a pool's images fetched from the cluster whose token is in the command's Secret.
	VerbImport = "rbd mirror pool peer bootstrap import"

	ParamPool = "pool"
	// ParamMode is image or pool.
	ParamMode = "mode"
)

// Entity is what cephx calls the daemon of an id.
func Entity(id string) string { return EntityPrefix + id }

// Report is what an agent says of a daemon and of the pools, as JSON in Daemon.status.report.
type Report struct {
	// PID is the process of which Up and Problem are said. A report outlives its process.
	PID int32 `json:"pid,omitempty"`
	// Up says that it answers; Problem why not, or why nothing is known of the pools.
	Up      bool   `json:"up,omitempty"`
	Problem string `json:"problem,omitempty"`
	// Pools are the pools by their names; one that is missing could not be asked about.
	Pools map[string]Pool `json:"pools,omitempty"`
}

// Pool is how a pool is mirrored, in Ceph's words.
type Pool struct {
	// Mode is disabled, image or pool.
	Mode  string `json:"mode,omitempty"`
	Peers []Peer `json:"peers,omitempty"`
	// Health is OK, WARNING, ERROR or UNKNOWN, and Images counts the mirrored images by their states.
	Health string         `json:"health,omitempty"`
	Images map[string]int `json:"images,omitempty"`
}

// Peer is another cluster.
type Peer struct {
	UUID      string `json:"uuid,omitempty"`
	Site      string `json:"site,omitempty"`
	Direction string `json:"direction,omitempty"`
}

// Fetches says whether images are fetched from another cluster.
func (p Pool) Fetches() bool { return slices.ContainsFunc(p.Peers, Peer.fetched) }

// Fetched is the UUID of the peer that images are fetched from.
func (p Pool) Fetched() string {
	for _, peer := range p.Peers {
		if peer.fetched() {
			return peer.UUID
		}
	}
	return ""
}

func (p Peer) fetched() bool { return strings.HasPrefix(p.Direction, "rx") }

// Parse reads a report; nil where there is none yet.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // none is no error
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("reading the report of an rbd-mirror: %w", err)
	}
	return r, nil
}

// Token says where a cluster is, and has the key of whom its daemons let in (librbd, Mirror::peer_bootstrap_create).
type Token struct {
	FSID     string `json:"fsid"`
	ClientID string `json:"client_id"`
	Key      string `json:"key"`
	MonHost  string `json:"mon_host"`
}

// Encode is the token as people pass it on.
func (t Token) Encode() string {
	text, err := json.Marshal(t)
	if err != nil {
		panic(err) // strings
	}
	return base64.StdEncoding.EncodeToString(text)
}

// errToken says nothing of what is in the token, which is secret.
var errToken = errors.New("not a bootstrap token: create one in the other cluster with 'holdfast ceph " +
	"mirror-token' or 'rbd mirror pool peer bootstrap create'")

// Decode reads a token.
func Decode(text string) (t Token, err error) {
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || json.Unmarshal(raw, &t) != nil || t.FSID == "" || t.ClientID == "" || t.Key == "" || t.MonHost == "" {
		return Token{}, errToken
	}
	return t, nil
}
