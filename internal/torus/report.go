package torus

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is what one torusd's agent says. It reads the same as long as nothing changes that matters.
type Report struct {
	// Generation is the generation of the Daemon that the report was made for.
	Generation int64 `json:"generation,omitempty"`
	// UUID is the peer's own, which its store keeps.
	UUID string `json:"uuid,omitempty"`
	// Started is the start of the torusd that the report speaks of, as StartText writes it; empty in reports of older agents. Settled says
	// that the blocks of the peer have settled since then: what it missed while it was away is there.
	Started string `json:"started,omitempty"`
	Settled bool   `json:"settled,omitempty"`
	// Cluster is set in a report of the depth DepthCluster.
	Cluster *Cluster `json:"cluster,omitempty"`
}

// Cluster is what Torus says of itself.
type Cluster struct {
	Replication int    `json:"replication,omitempty"`
	Peers       []Peer `json:"peers,omitempty"`
	// Moving says that copies are being made: the ring changed, or a peer of it came back, and what the peers store has not stayed the
	// same since.
	Moving bool `json:"moving,omitempty"`
	// Back are the UUIDs of the peers that were DOWN and came back, while Moving.
	Back    []string `json:"back,omitempty"`
	Volumes []Volume `json:"volumes,omitempty"`
}

// PeerState says what a peer is to the ring, in Torus's words.
type PeerState string

// The states of a peer.
const (
	// PeerAvail: it is heard and does not belong to the ring.
	PeerAvail PeerState = "Avail"
	// PeerOK: it is heard and belongs to the ring.
	PeerOK PeerState = "OK"
	// PeerDown: it belongs to the ring and is not heard. Torus says so when its lease ends, after 30 s.
	PeerDown PeerState = "DOWN"
)

// Peer is a torusd as Torus knows it.
type Peer struct {
	// Address is empty for one that is not heard.
	Address string    `json:"address,omitempty"`
	UUID    string    `json:"uuid"`
	State   PeerState `json:"state"`
	// Size and Used are in bytes; Torus rounds them to two or three digits.
	Size int64 `json:"size,omitempty"`
	Used int64 `json:"used,omitempty"`
}

// Volume is a block volume. Its size is rounded, in Torus's own writing.
type Volume struct {
	Name  string `json:"name"`
	Size  string `json:"size"`
	InUse bool   `json:"inUse,omitempty"`
}

// Peer is the peer of a UUID, or nil.
func (c *Cluster) Peer(uuid string) *Peer {
	if i := slices.IndexFunc(c.Peers, func(p Peer) bool { return p.UUID == uuid && uuid != "" }); i >= 0 {
		return &c.Peers[i]
	}
	return nil
}

// Volume is the volume of a name, or nil.
func (c *Cluster) Volume(name string) *Volume {
	if i := slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Name == name }); i >= 0 {
		return &c.Volumes[i]
	}
	return nil
}

// Count counts the peers in a state.
func (c *Cluster) Count(state PeerState) (n int) {
	for _, p := range c.Peers {
		if p.State == state {
			n++
		}
	}
	return n
}

// Members counts the peers of the ring.
func (c *Cluster) Members() int { return c.Count(PeerOK) + c.Count(PeerDown) }

// StartText writes when a daemon was started; nothing where nobody knows.
func StartText(at *metav1.MicroTime) string {
	if at == nil {
		return ""
	}
	return at.UTC().Format(time.RFC3339Nano)
}

// Whole says whether a peer that was started at that time has all blocks that it should. Of one whose agent does not tell yet when it
// was started last, nobody knows; an older agent tells nothing, and is believed.
func (r *Report) Whole(started *metav1.MicroTime) bool {
	return r.Started == "" || r.Started == StartText(started) && r.Settled
}

// Parse reads a report. An empty text is no report, and no error.
func Parse(text string) (*Report, error) {
	if text == "" {
		return nil, nil //nolint:nilnil // no report is an answer
	}
	r := &Report{}
	if err := json.Unmarshal([]byte(text), r); err != nil {
		return nil, fmt.Errorf("while reading the report of a torusd: %w", err)
	}
	return r, nil
}

// Text writes a report as Parse reads it.
func (r *Report) Text() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("while writing the report of a torusd: %w", err)
	}
	return string(b), nil
}
