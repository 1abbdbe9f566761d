package etcd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// ErrBusy is wrapped by errors that pass by themselves: another member is just being added, or the members have not been
// connected for long enough to change their number safely.
var ErrBusy = errors.New("the etcd cluster is not ready for another member")

// promoteEvery is how often the leader looks for learners to promote. Looking costs a read of memory.
const promoteEvery = 250 * time.Millisecond

// ErrTaken is wrapped by errors that only a person can help with: another server has the name or the address.
var ErrTaken = errors.New("another server is in the way")

// Add adds a member that learns before it votes, and returns what to set as its Config.Existing. A member that was added and
// never ran is not added again, so Add may be repeated until the new member runs. A member of this name that did run has
// lost its data, or it would not join: it is replaced, because with an empty log it must not vote in its own old place.
func (m *Member) Add(ctx context.Context, name, peerURL string) (string, error) {
	for _, member := range m.etcd.Server.Cluster().Members() {
		known := slices.Contains(member.PeerURLs, peerURL)
		switch {
		case known && member.Name == "":
			return m.existing(name, peerURL), nil
		case member.Name == name:
			if err := m.removeLost(ctx, member); err != nil {
				return "", err
			}
		case known:
			return "", fmt.Errorf("%w: etcd has a member at %s already, %s", ErrTaken, peerURL, member.Name)
		}
	}
	if err := m.makeRoom(ctx); err != nil {
		return "", err
	}
	urls, err := types.NewURLs([]string{peerURL})
	if err != nil {
		return "", err
	}
	now := time.Now()
	_, err = m.etcd.Server.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	if err != nil {
		return "", busy(fmt.Errorf("while adding %s to etcd: %w", name, err))
	}
	return m.existing(name, peerURL), nil
}

// busy marks errors of etcd that pass by themselves.
func busy(err error) error {
	if errors.Is(err, membership.ErrTooManyLearners) || errors.Is(err, etcderrors.ErrUnhealthy) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// removeLost removes a member that lost its data. One that still answers has not, and is left alone.
func (m *Member) removeLost(ctx context.Context, member *membership.Member) error {
	for _, peer := range member.PeerURLs {
		if answers(ctx, peer) {
			return fmt.Errorf("%w: the server %s still runs at %s", ErrTaken, member.Name, peer)
		}
	}
	m.log.Warn("a server joins again without its data: its old member of etcd is removed", "member", member.Name)
	if _, err := m.etcd.Server.RemoveMember(ctx, uint64(member.ID)); err != nil {
		return busy(fmt.Errorf("while removing the lost member %s from etcd: %w", member.Name, err))
	}
	return nil
}

// answers says whether somebody listens at a peer URL.
func answers(ctx context.Context, peer string) bool {
	u, err := url.Parse(peer)
	if err != nil {
		return false
	}
	conn, err := (&net.Dialer{Timeout: 2 * time.Second}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// abandonAfter is how long a member that was added may take to run for the first time, before it makes room for another one
// that wants to join. A joiner gives up sooner.
const abandonAfter = 5 * time.Minute

// makeRoom makes sure that no other member learns: etcd takes one at a time. A machine that died while it joined would be
// in the way for ever; it can join anew.
func (m *Member) makeRoom(ctx context.Context) error {
	for _, member := range m.etcd.Server.Cluster().Members() {
		if !member.IsLearner {
			continue
		}
		name := cmp.Or(member.Name, strings.Join(member.PeerURLs, " "))
		if since := m.waiting.since(member); member.IsStarted() || time.Since(since) < m.abandonAfter {
			return fmt.Errorf("%w: %s is just being added", ErrBusy, name)
		}
		m.log.Warn("a server was added and never ran: it makes room for another one", "member", name)
		if _, err := m.etcd.Server.RemoveMember(ctx, uint64(member.ID)); err != nil {
			return busy(fmt.Errorf("while removing %s, which never ran, from etcd: %w", name, err))
		}
	}
	return nil
}

// waiting remembers since when this member has seen others that were added and do not run yet.
type waiting struct {
	mu   sync.Mutex
	seen map[types.ID]time.Time
}

func (w *waiting) since(member *membership.Member) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, ok := w.seen[member.ID]
	if !ok {
		at = time.Now()
		w.seen[member.ID] = at
	}
	return at
}

// existing lists the members that run, and the new one. Members that were added and do not run yet have no name.
func (m *Member) existing(name, peerURL string) string {
	entries := []string{name + "=" + peerURL}
	for _, member := range m.etcd.Server.Cluster().Members() {
		for _, u := range member.PeerURLs {
			if u != peerURL {
				entries = append(entries, member.Name+"="+u)
			}
		}
	}
	return strings.Join(entries, ",")
}

// Names lists the members, learners among them, by name; one that was added and never ran by its URL.
func (m *Member) Names() []string {
	var names []string
	for _, member := range m.etcd.Server.Cluster().Members() {
		if member.Name == "" {
			names = append(names, strings.Join(member.PeerURLs, " "))
			continue
		}
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names
}

// Voters counts the members that vote.
func (m *Member) Voters() int {
	n := 0
	for _, member := range m.etcd.Server.Cluster().Members() {
		if !member.IsLearner {
			n++
		}
	}
	return n
}

// Leads says whether this member leads the etcd cluster now.
func (m *Member) Leads() bool { return m.etcd.Server.Leader() == m.etcd.Server.MemberID() }

// Problem returns what keeps etcd from serving writes, as a sentence with what to do, or nil.
func (m *Member) Problem() error {
	if m.etcd.Server.Leader() == 0 {
		return fmt.Errorf("etcd has no leader: more than half of the servers %v must run and reach each other", m.Names())
	}
	for _, alarm := range m.etcd.Server.Alarms() {
		if alarm.Alarm == etcdserverpb.AlarmType_NOSPACE {
			return fmt.Errorf("the database of etcd is full (%d MiB): only reads are served. Delete what is not needed, "+
				"then compact, defragment and disarm the alarm (etcd docs, Maintenance)", quota>>20)
		}
		if alarm.Alarm == etcdserverpb.AlarmType_CORRUPT {
			return fmt.Errorf("etcd found that the data of member %x differs from the others'", alarm.MemberID)
		}
	}
	return nil
}

// promote makes voters of learners that have caught up. Every member runs it, and only the one that leads acts, so that it
// goes on whichever server fails.
func (m *Member) promote(ctx context.Context) {
	tick := time.NewTicker(promoteEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, member := range m.etcd.Server.Cluster().Members() {
			switch {
			case !member.IsStarted():
				m.waiting.since(member)
			case member.IsLearner && m.Leads():
				m.promoteOne(ctx, member)
			}
		}
	}
}

func (m *Member) promoteOne(ctx context.Context, member *membership.Member) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, err := m.etcd.Server.PromoteMember(ctx, uint64(member.ID))
	switch {
	case err == nil:
		m.log.Info("promoted a learner of etcd to a voting member", "member", member.Name)
	case errors.Is(err, etcderrors.ErrLearnerNotReady) || ctx.Err() != nil: // It is looked at again soon.
	default:
		m.log.Warn("could not promote a learner of etcd", "member", member.Name, "error", err)
	}
}
