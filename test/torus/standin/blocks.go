package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// blocks are the numbers of blocks that a store has, by the number of their volume. They stay when the peer ends, and what is written
// meanwhile is missing when it is back: Torus writes it to others, and copies it when all of the ring are heard.
type blocks struct {
	path string
	held map[int]uint64
}

func openBlocks(dir string) (*blocks, error) {
	b := &blocks{path: filepath.Join(dir, "metadata", "blocks"), held: map[int]uint64{}}
	text, err := os.ReadFile(b.path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, nil
	}
	return b, errors.Join(err, json.Unmarshal(text, &b.held))
}

func (b *blocks) used() (n uint64) {
	for _, x := range b.held {
		n += x
	}
	return n
}

// tell writes with each beat how the peer is, under a lease. When the etcd does not answer it goes on trying.
func tell(m meta, p peer, b *blocks) {
	granted := clientv3.LeaseID(0)
	for ; ; time.Sleep(beat) {
		if granted == 0 {
			r, err := m.Grant(forever(), lease)
			if err != nil {
				continue
			}
			granted = r.ID
		}
		if err := b.move(m, &p); err != nil {
			continue
		}
		p.LastSeen = time.Now().UnixNano()
		_, errAlive := m.KeepAliveOnce(forever(), granted)
		_, errPut := m.Put(forever(), prefix+"nodes/"+p.UUID, text(p), clientv3.WithLease(granted))
		if errAlive != nil || errPut != nil {
			granted = 0 // the lease may have ended
		}
	}
}

// perBeat is how many blocks a peer moves in a beat: 22 MiB in a second.
const perBeat = 220

// move brings the blocks of each volume a step nearer to where they belong. The real torusd scans its blocks round after round, and says
// "0 B/sec" but for the moment after a round in which it sent some: this one says so always.
func (b *blocks) move(m meta, p *peer) error {
	r, _, errRing := m.ring()
	volumes, errVolumes := m.volumes()
	peers, errPeers := m.peers()
	if err := errors.Join(errRing, errVolumes, errPeers); err != nil {
		return err
	}
	heard := func(uuid string) bool {
		return uuid == p.UUID || slices.ContainsFunc(peers, func(x peer) bool { return x.UUID == uuid })
	}
	whole := !slices.ContainsFunc(r.Peers, func(uuid string) bool { return !heard(uuid) })
	next, left := map[int]uint64{}, uint64(perBeat)
	for _, v := range volumes {
		have, written := b.held[v.ID]
		switch {
		case !written && slices.Contains(v.Homes, p.UUID):
			next[v.ID] = part(v.Blocks, r.Replication, len(v.Homes)) // clients wrote it there
		case !whole && slices.Contains(r.Peers, p.UUID):
			next[v.ID] = have
		default:
			next[v.ID] = step(have, share(v, r, p.UUID), &left)
		}
	}
	b.held = next
	p.UsedBlocks = min(p.TotalBlocks, b.used())
	return os.WriteFile(b.path, []byte(text(next)), 0o600)
}

// share is how many blocks of a volume belong on a peer.
func share(v volume, r ring, uuid string) uint64 {
	if !slices.Contains(r.Peers, uuid) {
		return 0
	}
	return part(v.Blocks, r.Replication, len(r.Peers))
}

func part(blocks uint64, copies, peers int) uint64 {
	if peers == 0 {
		return 0
	}
	return (blocks*uint64(min(copies, peers)) + uint64(peers) - 1) / uint64(peers)
}

// step goes from one number towards another, by what is left of a beat.
func step(from, to uint64, left *uint64) uint64 {
	by := min(max(from, to)-min(from, to), *left)
	*left -= by
	if to > from {
		return from + by
	}
	return from - by
}
