package torus

import (
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/torus"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// A torusd whose store is full takes no block; Torus itself does not warn of it (coreos/torus#401).
const (
	nearFullPercent = 85
	// fullPercent is how full a store may get by a change of Holdfast's, and from where on it is called full.
	fullPercent = 95
)

func percent(x *torus.Peer) int64 {
	if x == nil || x.Size <= 0 {
		return 0
	}
	return 100 * x.Used / x.Size
}

// fullest is how full the fullest store of the ring is, in percent.
func (p *planner) fullest() (most int64) {
	for i := range p.word.Peers {
		if x := &p.word.Peers[i]; x.State == torus.PeerOK {
			most = max(most, percent(x))
		}
	}
	return most
}

// judgeRoom warns of a store that gets full.
func (p *planner) judgeRoom(n *node, because func(string, ...any)) {
	x := p.peer(n)
	if x == nil || x.State != torus.PeerOK || percent(x) < nearFullPercent {
		return
	}
	what := "nearly full"
	if percent(x) >= fullPercent {
		what = "full: no space for more blocks"
	}
	because("node %s: its store is %s (%s of %s used); add nodes, or delete volumes", n.name, what, torus.SizeText(x.Used), torus.SizeText(x.Size))
}

// noRoom says that the blocks of a member do not fit on the others; nothing when they do. What one that is DOWN has Torus does not tell:
// it counts as much as the others have on average.
func (p *planner) noRoom(leaver *torus.Peer) string {
	var others []torus.Peer
	used := int64(0)
	for _, x := range p.word.Peers {
		if x.State == torus.PeerOK && x.UUID != leaver.UUID {
			others, used = append(others, x), used+x.Used
		}
	}
	own, about := leaver.Used, ""
	if leaver.State == torus.PeerDown && len(others) > 0 {
		own, about = used/int64(len(others)), "about "
	}
	if own == 0 || fits(others, max(1, p.word.Replication), used+own) {
		return ""
	}
	return fmt.Sprintf("its blocks (%s%s) do not fit on the other %s of the ring, which have %s of %s in use and are filled to %d %% at most: "+
		"add a node, or delete volumes", about, torus.SizeText(own), words.Plural(len(others), "peer"), torus.SizeText(used), torus.SizeText(sizeOf(others)), fullPercent)
}

// noRoomFor says that the ring has no room for more copies of all blocks; nothing when it has.
func (p *planner) noRoomFor(copies int) string {
	var members []torus.Peer
	used := int64(0)
	for _, x := range p.word.Peers {
		if x.State == torus.PeerOK {
			members, used = append(members, x), used+x.Used
		}
	}
	wanted := used / int64(max(1, p.word.Replication)) * int64(copies)
	if used == 0 || len(members) < copies || fits(members, copies, wanted) {
		return ""
	}
	return fmt.Sprintf("cannot change replication from %d to %d: all copies need %s, but the ring has %s, of which at "+
		"most %d %% are filled; add a node, or leave spec.torus.replication at %d",
		p.word.Replication, copies, torus.SizeText(wanted), torus.SizeText(sizeOf(members)), fullPercent, p.word.Replication)
}

func sizeOf(peers []torus.Peer) (size int64) {
	for _, x := range peers {
		size += x.Size
	}
	return size
}

// fits says whether peers can hold so many bytes of blocks, of each of which the copies lie on as many peers: what a large one has more
// than all others together is of no use.
func fits(peers []torus.Peer, copies int, bytes int64) bool {
	if len(peers) < copies {
		return false
	}
	each := bytes / int64(copies)
	room := int64(0)
	for _, x := range peers {
		room += min(x.Size/100*fullPercent, each)
	}
	return room >= bytes/int64(copies)*int64(copies)
}

// returned says whether a member came back, and what it missed may not be on it yet.
func (p *planner) returned(n *node) bool {
	x := p.peer(n)
	if x == nil || x.State != torus.PeerOK {
		return false
	}
	return slices.Contains(p.word.Back, x.UUID) || n.running() && !n.report.Whole(n.torusd.Status.Started)
}

func (p *planner) notWhole(n *node) string {
	return fmt.Sprintf("node %s came back, and its missing blocks are being copied: some blocks may have too few "+
		"copies until its used space (%s) has been constant for a while", n.name, torus.SizeText(p.peer(n).Used))
}

// moving says why copies of blocks are being made, or may be; nothing when the ring is at rest.
func (p *planner) moving() string {
	for _, n := range p.nodes {
		if p.returned(n) {
			return p.notWhole(n)
		}
	}
	if p.word.Moving {
		return "copies of blocks are being made"
	}
	return ""
}
