package etcd

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/etcdserver"
)

// How often, and how long, the data of the members is compared before that is given up: one may be
// a little behind, or just be removing old versions.
const (
	compareTries = 3
	comparePause = 100 * time.Millisecond
	compareFor   = 2 * time.Second
)

// content is what the data of a member comes to, by its hash.
type content struct {
	hash    uint32
	compact int64
}

// Differs compares the data of this member with that of the others, at one revision. It is the
// damage where more than half of all voting members agree on other data: a byte that changed on
// the disk has no other mark. Where they do not answer nothing is known.
func Differs(ctx context.Context, m *Member) *Damage {
	ctx, cancel := context.WithTimeout(ctx, compareFor)
	defer cancel()
	for range compareTries {
		damage, sure := compare(ctx, m)
		if sure || ctx.Err() != nil {
			return damage
		}
		time.Sleep(comparePause) // The others get there by themselves.
	}
	return nil
}

// compare is sure when more than half of the voting members have the same data, or this one is alone.
func compare(ctx context.Context, m *Member) (damage *Damage, sure bool) {
	hash, _, err := m.etcd.Server.KV().HashStorage().HashByRev(0)
	if err != nil {
		return nil, false //nolint:nilerr // a member that cannot be asked is compared later
	}
	own := content{hash.Hash, hash.CompactRevision}
	voters, votes := 0, map[content]int{own: 1}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, other := range m.Members() {
		if !other.Voter {
			continue
		}
		if voters++; other.ID == m.ID() {
			continue
		}
		all.Go(func() {
			its, err := etcdserver.HashByRev(ctx, m.etcd.Server.Cluster().ID(), m.prober, other.PeerURL, hash.Revision)
			if err != nil {
				m.log.Debug("the data of another member cannot be compared", "member", other.Name, "error", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			votes[content{its.Hash, its.CompactRevision}]++
		})
	}
	all.Wait()
	for other, n := range votes {
		switch {
		case n <= voters/2:
		case other == own:
			return nil, true
		case other.compact == own.compact:
			return &Damage{databaseFile, fmt.Errorf("its content at revision %d is not that of the other %d members",
				hash.Revision, n)}, true
		}
	}
	return nil, voters == 1
}
