package quorumview

import (
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/internal/words"
)

// Needs says why the control plane would stop if a server were switched off now; nothing when it
// would not. Members count as left that answer, and whose servers stay: of the others nobody knows
// when they are switched off.
func (s *Status) Needs(server string, stays func(name string) bool) string {
	voters, left, votes := 0, 0, false
	for _, m := range s.Members {
		switch {
		case !m.Voter:
			continue
		case m.Name == server:
			votes = true
		case m.Answers && stays(m.Name):
			left++
		}
		voters++
	}
	switch needed := voters/2 + 1; {
	case voters == 0:
		return "the leader of etcd to observe its members"
	case votes && left < needed:
		return fmt.Sprintf("its member of etcd to be released: without it %d of %d members would be left, and %d are needed "+
			"(see 'holdfast quorum')",
			left, voters, needed)
	}
	return ""
}

// Stuck says why what a server Needs will not come about by itself, and what to do; nothing where
// a standby that stays can take its seat, or where nobody has looked at the members yet.
func (s *Status) Stuck(server string, stays func(name string) bool) string {
	standby := func(name string) bool { return name != server && stays(name) }
	if len(s.Members) == 0 || slices.ContainsFunc(s.Standbys, standby) {
		return ""
	}
	var away []string
	for _, m := range s.Members {
		if m.Voter && m.Name != server && (!m.Answers || !stays(m.Name)) {
			away = append(away, m.Name)
		}
	}
	because := "it needs each of its members of etcd"
	if len(away) > 0 {
		because = "these servers are disconnected, removed or in maintenance: " + words.Few(away)
	}
	return fmt.Sprintf("without host %s the control plane would have no quorum (%s), and no standby can take its place: "+
		"see 'holdfast quorum', "+
		"and bring the others back first, or join one more server ('holdfast token create --role server')", server, because)
}
