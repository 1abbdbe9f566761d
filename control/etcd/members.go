package etcd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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

// Add adds a member that learns before it votes, and returns what to set as its Config.Existing. A member that is already
// there under this name and URL is not added again, so Add may be repeated until the new member runs.
func (m *Member) Add(ctx context.Context, name, peerURL string) (string, error) {
	for _, member := range m.etcd.Server.Cluster().Members() {
		known := slices.Contains(member.PeerURLs, peerURL)
		if !known && member.Name == name {
			return "", fmt.Errorf("etcd has a member %s already, at %v", name, member.PeerURLs)
		}
		if known && member.Name != "" && member.Name != name {
			return "", fmt.Errorf("etcd has a member at %s already: it is %s", peerURL, member.Name)
		}
		if known {
			return m.existing(name, peerURL), nil
		}
	}
	if m.learns() {
		return "", fmt.Errorf("%w: another one is just being added", ErrBusy)
	}
	urls, err := types.NewURLs([]string{peerURL})
	if err != nil {
		return "", err
	}
	now := time.Now()
	_, err = m.etcd.Server.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	if errors.Is(err, membership.ErrTooManyLearners) || errors.Is(err, etcderrors.ErrUnhealthy) {
		return "", fmt.Errorf("%w: %w", ErrBusy, err)
	}
	if err != nil {
		return "", fmt.Errorf("while adding %s to etcd: %w", name, err)
	}
	return m.existing(name, peerURL), nil
}

// learns says whether there is a member that does not vote yet. etcd takes one at a time.
func (m *Member) learns() bool {
	return slices.ContainsFunc(m.etcd.Server.Cluster().Members(), func(member *membership.Member) bool { return member.IsLearner })
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
		if !m.Leads() {
			continue
		}
		for _, member := range m.etcd.Server.Cluster().Members() {
			if member.IsLearner && member.IsStarted() {
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
