// Package etcd decides which servers of the control plane hold a member of etcd. It is pure: from a
// View of members and servers it plans at most one step at a time (Add, Promote, Remove, Lead). Package
// control makes the view, takes the step, and imports this package as quorum. It is no engine.Driver:
// the quorum must be mended when no leader can be elected.
package etcd

import (
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// View is what the leader of etcd knows of the servers and members.
type View struct {
	Servers []Server
	Members []Member
	// Leader is the name of the member that leads; empty when there is none, and nothing can be decided.
	Leader string
	// Generation is the life of the control plane: it grows with each restore, and is 0 before the first. Restored says on which server it began, and from
	// what; empty where the leader does not know.
	Generation int64
	Restored   string
}

// Server is a machine that runs 'holdfast server', whether it holds a member or not.
type Server struct {
	Name string
	// Labels hold its location; see api.LocationLabels.
	Labels map[string]string
	Mode   api.HostMode
	// Agent is good while the server's agent is heard.
	Agent Word
	// Asks is good while the server, a standby, asks for a seat.
	Asks Word
	// Removed is since when its Host is gone; zero for a server that was not removed.
	Removed time.Time
	// Lost is set when the server says that it has lost the data of its member.
	Lost bool
	// LostBy is how, where the server knows it.
	LostBy string
	// Failed is when it was last given a seat and did not take it; zero for never.
	Failed time.Time
}

// Member is a member of etcd.
type Member struct {
	ID uint64
	// Name of the server. Unnamed is set while nobody knows it: a server that was given a seat of late, and has not taken it. Name is
	// its address then.
	Name    string
	Unnamed bool
	// Voter is false for a learner.
	Voter bool
	// Started is false for a member that was added and has never run.
	Started bool
	// Answers is good while the member's process can be reached; Etcd while it does its part, too: all that was decided can be
	// read through it in time. One whose disk hangs answers, and does no part; so does a learner that is being filled.
	Answers, Etcd Word
}

// Word is what is said of something, since when, and how many observations in a row have said so.
type Word struct {
	Good  bool
	Since time.Time
	Seen  int
}

// Note returns the word after one more observation. A Word that was never seen takes the first one as it is.
func (w Word) Note(good bool, now time.Time) Word {
	if w.Seen == 0 || w.Good != good {
		return Word{Good: good, Since: now, Seen: 1}
	}
	w.Seen++
	return w
}

// Settings are the times that a plan waits. The zero value means the defaults.
type Settings struct {
	// Grace is how long a member is dead before it is replaced. Default 5 min: replacing it costs a copy of the database, and
	// a machine that boots is back sooner.
	Grace time.Duration
	// JoinGrace is how long a learner may be silent before it is given up, and RetryAfter how long its server then is not
	// tried again. Default 1 min and 10 min.
	JoinGrace, RetryAfter time.Duration
	// FillGrace is how long a learner may take to catch up. Default 30 min: the largest database over a slow line.
	FillGrace time.Duration
	// Confirm is how many observations in a row must say the same. Default 3.
	Confirm int
}

func (s Settings) orDefaults() Settings {
	if s.Grace == 0 {
		s.Grace = 5 * time.Minute
	}
	if s.JoinGrace == 0 {
		s.JoinGrace = time.Minute
	}
	if s.FillGrace == 0 {
		s.FillGrace = 30 * time.Minute
	}
	if s.RetryAfter == 0 {
		s.RetryAfter = 10 * time.Minute
	}
	if s.Confirm == 0 {
		s.Confirm = 3
	}
	return s
}

// bad says whether a word has been bad for long enough, and often enough, to act on it.
func (s Settings) bad(w Word, since time.Duration, now time.Time) bool {
	return !w.Good && w.Seen >= s.Confirm && now.Sub(w.Since) >= since
}
