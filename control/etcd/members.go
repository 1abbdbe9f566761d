package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.etcd.io/etcd/server/v3/etcdserver/api/rafthttp"
	etcderrors "go.etcd.io/etcd/server/v3/etcdserver/errors"
)

// Info is what is known of a member.
type Info struct {
	ID uint64
	// Name is empty for a member that was added and has never run.
	Name    string
	PeerURL string
	// Voter is false for a learner.
	Voter bool
}

// Members lists the members, as this one knows them.
func (m *Member) Members() []Info {
	var list []Info
	for _, member := range m.etcd.Server.Cluster().Members() {
		list = append(list, Info{
			ID: uint64(member.ID), Name: member.Name, PeerURL: strings.Join(member.PeerURLs, " "), Voter: !member.IsLearner,
		})
	}
	return list
}

// Find returns the member at a peer URL.
func (m *Member) Find(peerURL string) (Info, bool) {
	list := m.Members()
	i := slices.IndexFunc(list, func(i Info) bool { return i.PeerURL == peerURL })
	if i < 0 {
		return Info{}, false
	}
	return list[i], true
}

// Sync returns once this member knows all that was decided before, or an error when there is no quorum to say so.
func (m *Member) Sync(ctx context.Context) error { return m.etcd.Server.LinearizableReadNotify(ctx) }

// AddLearner adds a member that learns before it votes. It is to be started with Existing.
func (m *Member) AddLearner(ctx context.Context, peerURL string) error {
	urls, err := types.NewURLs([]string{peerURL})
	if err != nil {
		return err
	}
	now := time.Now()
	_, err = m.etcd.Server.AddMember(ctx, *membership.NewMemberAsLearner("", urls, "", &now))
	return err
}

// Move has all members know a member by another peer URL. Nothing is done where they do.
func Move(ctx context.Context, m *Member, peerURL string) error {
	own := m.etcd.Server.Cluster().Member(m.etcd.Server.MemberID())
	urls, err := types.NewURLs([]string{peerURL})
	if err != nil || own == nil || slices.Equal(own.PeerURLs, urls.StringSlice()) {
		return err
	}
	next := membership.Member{ID: own.ID, RaftAttributes: own.RaftAttributes}
	next.PeerURLs = urls.StringSlice()
	_, err = m.etcd.Server.UpdateMember(ctx, next)
	return err
}

// ErrNotReady says that a learner has not caught up yet.
var ErrNotReady = etcderrors.ErrLearnerNotReady

// Promote makes a voter of a learner. Only the leader can.
func (m *Member) Promote(ctx context.Context, id uint64) error {
	_, err := m.etcd.Server.PromoteMember(ctx, id)
	return err
}

// Remove takes a member out. The leader itself hands its leadership over instead, and the next leader takes it out.
func (m *Member) Remove(ctx context.Context, id uint64) error {
	if id == uint64(m.etcd.Server.MemberID()) {
		return m.etcd.Server.TryTransferLeadershipOnShutdown()
	}
	_, err := m.etcd.Server.RemoveMember(ctx, id)
	return err
}

// Lead makes another voter the leader, in the place of this one.
func (m *Member) Lead(ctx context.Context, id uint64) error {
	return m.etcd.Server.MoveLeader(ctx, m.ID(), id)
}

// Existing is what a new member at a peer URL is to be started with; see Config. Members that were added and do not run yet
// have no name.
func (m *Member) Existing(name, peerURL string) string {
	entries := []string{name + "=" + peerURL}
	for _, member := range m.Members() {
		if member.PeerURL != peerURL {
			entries = append(entries, member.Name+"="+member.PeerURL)
		}
	}
	return strings.Join(entries, ",")
}

// probeTimeout is how long a member may take to say that it is there, and readTimeout to read what the others have decided.
const (
	probeTimeout = 2 * time.Second
	readTimeout  = 3 * time.Second
)

// Answers says whether the etcd member at a peer URL answers. It may do nothing else; see Works. This path needs no lock of the
// member: /version waits for a commit to the database that hangs.
func (m *Member) Answers(ctx context.Context, peerURL string) bool {
	return get(ctx, m.prober, probeTimeout, peerURL+rafthttp.ProbingPrefix)
}

// Works says whether the etcd member at a peer URL does its part: this is a linearizable read by it. It has to hear from the leader,
// to have written what it heard to its log, and to have applied it, which a member whose disk hangs, or that lags, cannot. It is the
// only path of etcd's peer port that reads so; the member's answer, which is about downgrades, is of no interest.
func (m *Member) Works(ctx context.Context, peerURL string) bool {
	return get(ctx, m.prober, readTimeout, peerURL+etcdserver.DowngradeEnabledPath)
}

func get(ctx context.Context, by *http.Client, timeout time.Duration, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false
	}
	response, err := by.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	// What is not read to its end takes the connection with it, and the next look makes a new one.
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16))
	return response.StatusCode == http.StatusOK
}

// ErrTaken is wrapped by errors that only a person can help with: another server has the name or the address.
var ErrTaken = errors.New("another server is in the way")

// Free refuses a joiner whose name or peer URL belongs to a member that still answers. One that does not has lost its data, or
// it would not join.
func (m *Member) Free(ctx context.Context, name, peerURL string) error {
	for _, member := range m.Members() {
		if (member.Name == name || member.Name != "" && member.PeerURL == peerURL) && m.Answers(ctx, member.PeerURL) {
			return fmt.Errorf("%w: the server %s still runs at %s", ErrTaken, member.Name, member.PeerURL)
		}
	}
	return nil
}

// Names lists the members, learners among them, by name; one that was added and never ran by its URL.
func (m *Member) Names() []string {
	var names []string
	for _, member := range m.Members() {
		if member.Name == "" {
			member.Name = member.PeerURL
		}
		names = append(names, member.Name)
	}
	slices.Sort(names)
	return names
}

// Voters counts the members that vote.
func (m *Member) Voters() int {
	n := 0
	for _, member := range m.Members() {
		if member.Voter {
			n++
		}
	}
	return n
}

// Removed says whether this member has learned that it was removed.
func (m *Member) Removed() bool { return m.etcd.Server.IsIDRemoved(m.ID()) }

// ID is the member's own id.
func (m *Member) ID() uint64 { return uint64(m.etcd.Server.MemberID()) }

// Leads says whether this member leads the etcd cluster now.
func (m *Member) Leads() bool { return m.etcd.Server.Leader() == m.etcd.Server.MemberID() }

// Ready returns what keeps this member from doing its part, as a sentence with what to do, or nil. It is a linearizable read.
func (m *Member) Ready(ctx context.Context) error {
	if err := m.Problem(); err != nil {
		return err
	}
	err := m.Quorum(ctx)
	if problem := m.Problem(); err != nil && problem != nil {
		return problem
	}
	return err
}

// Quorum is Ready without a look at alarms: a member with one reads, and deletes what makes room.
func (m *Member) Quorum(ctx context.Context) error {
	if err := led(m); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	err := m.Sync(ctx)
	if err == nil {
		return nil
	}
	return fmt.Errorf("the member of etcd did nothing for %s: the disk of this machine hangs or is too slow (look at 'dmesg'), it is "+
		"catching up, or it cannot reach more than half of the servers %v: %w", readTimeout, m.Names(), err)
}

// led returns an error where a member knows no leader.
func led(m *Member) error {
	if m.etcd.Server.Leader() == 0 {
		return fmt.Errorf("etcd has no leader: more than half of the servers %v must run and reach each other", m.Names())
	}
	return nil
}

// Problem returns what keeps etcd from serving writes, as a sentence with what to do, or nil.
func (m *Member) Problem() error {
	if err := led(m); err != nil {
		return err
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
