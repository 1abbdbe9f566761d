package etcd

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Verb is what a Step does.
type Verb string

// The verbs.
const (
	// Add makes a server a learner: it gets the data, and does not vote.
	Add Verb = "Add"
	// Promote makes a voter of a learner.
	Promote Verb = "Promote"
	// Remove takes a member out. Its server goes on as a standby. A member that leads hands its leadership over instead.
	Remove Verb = "Remove"
	// Lead makes a voter the leader, in the place of the one that leads.
	Lead Verb = "Lead"
)

// stepReasons are the reasons of the decisions to take a step.
var stepReasons = map[Verb]api.Reason{
	Add: api.ReasonDeclared, Promote: api.ReasonJoining, Remove: api.ReasonRemoving, Lead: api.ReasonHandingOver,
}

// Step is one change of the membership.
type Step struct {
	Verb Verb
	// Server is the name of the server, and Member the id of its member; 0 for Add.
	Server string
	Member uint64
	Reason string
	// Replaces is the server whose dead member makes room with this step, or made it necessary; empty otherwise.
	Replaces string
}

// Plan is what shall be done next.
type Plan struct {
	// Step is nil when nothing is to be done now.
	Step *Step
	// Want is how many voting members there should be.
	Want int
	// Spare is how many more voting members may fail before the control plane stops: below zero it has stopped.
	Spare int
	// Degraded says in a sentence what is missing for Want members that all answer; empty when nothing is.
	Degraded string
	// Decisions say what was decided, and why; also why not.
	Decisions []api.Decision
}

// Size is how many members a number of servers should have: most of them are to survive, and each one costs a write.
func Size(servers int) int {
	switch {
	case servers > 100:
		return 7
	case servers > 20:
		return 5
	case servers > 2:
		return 3
	default:
		return 1
	}
}

// maxLearners is how many members may learn at one time: growing from one voter to three goes by two learners.
const maxLearners = 2

// Make says what to do next. Equal arguments give equal plans.
//
// A step never loses the quorum, and never lowers the number of failures that are survived, unless an administrator removed
// the server. For lack of servers the number of members is not lowered, except from an even number that survives no more
// than the odd one below it; and never to a single member, because two hold two copies of the data.
func Make(v View, s Settings, now time.Time) Plan {
	p := newPlanner(v, s.orDefaults(), now)
	plan := Plan{Want: p.want, Spare: spare(len(p.voters), p.healthy)}
	if v.Leader == "" || plan.Spare < 0 {
		plan.Degraded = "etcd has no leader: more than half of its members must run and reach each other"
		return plan
	}
	p.tellRemoved()
	for _, step := range []func() *Step{p.handOver, p.dropLearner, p.promote, p.removeVoter, p.add} {
		if plan.Step = step(); plan.Step != nil {
			p.decide(api.VerdictDo, stepReasons[plan.Step.Verb], plan.Step.Server, string(plan.Step.Verb)+": "+plan.Step.Reason)
			break
		}
	}
	plan.Degraded, plan.Decisions = p.degraded(), p.decisions
	return plan
}

// spare is how many of the healthy voters may fail.
func spare(voters, healthy int) int { return healthy - (voters/2 + 1) }

// planner holds what is known while a plan is made. All lists are sorted by name.
type planner struct {
	Settings
	now       time.Time
	leader    string
	servers   map[string]Server
	voters    []Member
	learners  []Member
	losing    []Member // voters that shall give up their seat
	keeping   []Member // the other voters
	healthy   int      // voters that do their part
	want      int
	key       string // the location label that tells failure domains apart
	decisions []api.Decision
}

func newPlanner(v View, s Settings, now time.Time) *planner {
	p := &planner{Settings: s, now: now, leader: v.Leader, servers: map[string]Server{}}
	count := 0
	for _, server := range v.Servers {
		p.servers[server.Name] = server
		if server.Removed.IsZero() {
			count++
		}
	}
	p.want, p.key = Size(count), discriminating(v.Servers)
	members := slices.SortedFunc(slices.Values(v.Members), func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, m := range members {
		switch {
		case !m.Voter:
			p.learners = append(p.learners, m)
			continue
		case p.loses(m) != "":
			p.losing = append(p.losing, m)
		default:
			p.keeping = append(p.keeping, m)
		}
		p.voters = append(p.voters, m)
		if m.Etcd.Good {
			p.healthy++
		}
	}
	return p
}

func (p *planner) decide(verdict api.Verdict, reason api.Reason, server, message string) {
	p.decisions = append(p.decisions, api.Decision{Object: "host/" + server, Verdict: verdict, Reason: reason, Message: message})
}

// loses says why a member shall give up its seat; empty when it shall not.
func (p *planner) loses(m Member) string {
	server := p.servers[m.Name]
	switch {
	case p.removed(m):
		return "its Host was removed"
	case server.Lost && m.Voter:
		return strings.TrimSuffix("its server has lost the data: "+server.LostBy, ": ")
	case m.Voter && p.hangs(m):
		return fmt.Sprintf("its etcd runs, and has done nothing for %s: its disk hangs, or is too slow", p.Grace)
	case p.dead(m):
		return fmt.Sprintf("neither etcd nor the agent of the server has answered for %s", p.Grace)
	case server.Mode == api.HostMaintenance:
		return "the host is in maintenance"
	case server.Mode == api.HostDrain:
		return "the host is being drained"
	}
	return ""
}

// removed: an administrator said so. A member that still answers may have lost its Host by mistake; it gets the grace.
func (p *planner) removed(m Member) bool {
	since := p.servers[m.Name].Removed
	if since.IsZero() {
		return false
	}
	return p.bad(m.Etcd, 0, p.now) || p.now.Sub(since) >= p.Grace
}

// tellRemoved says how long members whose Hosts are gone keep their seats.
func (p *planner) tellRemoved() {
	for _, m := range p.keeping {
		if since := p.servers[m.Name].Removed; !since.IsZero() {
			left := max(1, int((p.Grace - p.now.Sub(since) + time.Minute - 1).Minutes()))
			p.decide(api.VerdictWait, api.ReasonGracePeriod, m.Name, fmt.Sprintf("its Host was deleted; its membership ends "+
				"in %d min. If that was a mistake, restart its server: that brings the Host back", left))
		}
	}
}

// leaving says whether a voter that keeps its seat is about to lose it, because its Host is gone. Until that is decided nobody else is one too many.
func (p *planner) leaving(m Member) bool { return !p.servers[m.Name].Removed.IsZero() }

// handOver has a leader whose Host is gone lead no more, at once. It could not remove itself in the end, and the next leader does not know since when its
// Host is gone: the grace would begin anew.
func (p *planner) handOver() *Step {
	if !slices.ContainsFunc(p.keeping, func(m Member) bool { return m.Name == p.leader && p.leaving(m) }) {
		return nil
	}
	i := slices.IndexFunc(p.keeping, func(m Member) bool { return m.Etcd.Good && !p.leaving(m) })
	if i < 0 {
		return nil
	}
	next := p.keeping[i]
	return &Step{Verb: Lead, Server: next.Name, Member: next.ID, Reason: "the Host of " + p.leader + ", which leads, was removed"}
}

// dead: by etcd's own word, and the server's agent is silent, too. A server cut off from the other members alone is not dead.
func (p *planner) dead(m Member) bool {
	server := p.servers[m.Name]
	return p.bad(m.Etcd, p.Grace, p.now) && (p.bad(server.Agent, p.Grace, p.now) || !server.Removed.IsZero())
}

// hangs: it can be reached, and does nothing. That its agent is heard says nothing for it: an agent needs no disk to be heard.
func (p *planner) hangs(m Member) bool {
	return p.bad(m.Etcd, p.Grace, p.now) && m.Answers.Good && p.now.Sub(m.Answers.Since) >= p.Grace
}

// dropLearner removes a learner that is of no use. That is safe: it does not vote.
func (p *planner) dropLearner() *Step {
	for _, m := range p.learners {
		reason := p.loses(m)
		switch {
		case reason != "":
		case p.bad(m.Answers, p.JoinGrace, p.now):
			reason = fmt.Sprintf("it became a member of etcd and has not answered for %s", p.JoinGrace)
		case p.bad(m.Etcd, p.FillGrace, p.now):
			reason = fmt.Sprintf("it became a member of etcd and has not caught up for %s: its disk or network is too slow", p.FillGrace)
		case p.surplus(m) && p.allStay():
			reason = "it is not needed any more"
		default:
			continue
		}
		return &Step{Verb: Remove, Server: m.Name, Member: m.ID, Reason: reason}
	}
	return nil
}

// surplus says whether a learner's seat is one more than wanted.
func (p *planner) surplus(m Member) bool {
	return len(p.keeping) >= p.want && !p.spreads(m.Name)
}

// allStay says whether all voters that keep their seats do their part, and have their Hosts. A leader that has just begun knows nobody for dead or removed: a
// learner that it finds may be there to take the place of one.
func (p *planner) allStay() bool {
	return !slices.ContainsFunc(p.keeping, func(m Member) bool { return !m.Etcd.Good || p.leaving(m) })
}

// kept says whether a learner waits for what becomes of a voter.
func (p *planner) kept(m Member) bool {
	if len(p.losing) > 0 || !p.surplus(m) {
		return false
	}
	p.decide(api.VerdictWait, api.ReasonGracePeriod, m.Name, "it holds a copy of the data, to replace a "+
		"member that stays unreachable or whose Host stays deleted")
	return true
}

func (p *planner) ready(m Member) bool { return m.Started && m.Etcd.Good }

// promote makes a voter of a learner. An even number of voters survives no more failures than the odd number below it, and
// needs more of them: it is passed through quickly, which is when the next step is at hand.
func (p *planner) promote() *Step {
	ready := slices.DeleteFunc(slices.Clone(p.learners), func(m Member) bool { return !p.ready(m) })
	for _, m := range p.learners {
		if !p.ready(m) {
			p.decide(api.VerdictWait, api.ReasonJoining, m.Name, "its member of etcd is being filled")
		}
	}
	ready = slices.DeleteFunc(ready, p.kept)
	if len(ready) == 0 {
		return nil // A voter more that answers is never one too few, where there is a majority.
	}
	odd := len(p.voters)%2 == 0
	if !odd && len(p.losing) == 0 && len(ready) < 2 && len(p.keeping) < p.want {
		p.decide(api.VerdictWait, api.ReasonAwaitingReplacement, ready[0].Name,
			"learner; it votes as soon as another server can vote, too: "+
				fmt.Sprintf("%d voters survive no more failures than %d", len(p.voters)+1, len(p.voters)))
		return nil
	}
	step := &Step{Verb: Promote, Server: ready[0].Name, Member: ready[0].ID, Reason: "it has caught up"}
	if len(p.losing) > 0 {
		step.Replaces = p.losing[0].Name
	}
	return step
}

// removeVoter takes out a voter that shall go, once its place is taken; or one of an even number that are too many.
func (p *planner) removeVoter() *Step {
	losing := slices.Clone(p.losing)
	// What does not answer goes first; the leader last.
	slices.SortStableFunc(losing, func(a, b Member) int {
		return cmp.Or(boolCompare(a.Etcd.Good, b.Etcd.Good), boolCompare(a.Name == p.leader, b.Name == p.leader))
	})
	for _, m := range losing {
		reason := p.loses(m)
		replaced := len(p.keeping) >= p.want
		switch removed := p.removed(m); {
		case replaced && p.keepsSpare(m), removed && (replaced || !p.coming()) && p.keepsQuorum(m), p.servers[m.Name].Lost && p.keepsSpare(m),
			p.hangs(m) && p.coming() && p.keepsSpare(m): // A new member that asks it who the members are is told of old ones, and fails.
			return &Step{Verb: Remove, Server: m.Name, Member: m.ID, Reason: reason, Replaces: m.Name}
		case replaced && !removed:
			p.decide(api.VerdictWait, api.ReasonSurplusKept, m.Name,
				reason+"; its surplus member of etcd stays while it works: without it one failure less would be tolerated")
		case !replaced && !p.coming():
			p.decide(api.VerdictWait, api.ReasonInsufficientNodes, m.Name, reason+"; its member of etcd stays until a healthy server can take its place: "+
				"start another one with 'holdfast server --join'")
		}
	}
	if even := len(p.voters)%2 == 0; len(p.losing) > 0 || !even || len(p.voters) <= 2 || len(p.keeping) <= p.want {
		return nil
	}
	m := p.superfluous()
	if !p.keepsSpare(m) {
		return nil
	}
	return &Step{Verb: Remove, Server: m.Name, Member: m.ID, Reason: fmt.Sprintf("%d members are enough", p.want)}
}

// superfluous is the voter that goes where they are one too many: one whose Host is gone goes soon in any case.
func (p *planner) superfluous() Member {
	if i := slices.IndexFunc(p.keeping, p.leaving); i >= 0 {
		return p.keeping[i]
	}
	return p.mostCrowded()
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}

// coming says whether another server can take a seat, or is taking one.
func (p *planner) coming() bool {
	_, ok := p.candidate()
	return ok || len(p.learners) > 0
}

func (p *planner) without(m Member) int {
	healthy := p.healthy
	if m.Etcd.Good {
		healthy--
	}
	return spare(len(p.voters)-1, healthy)
}

func (p *planner) keepsQuorum(m Member) bool { return len(p.voters) > 1 && p.without(m) >= 0 }

func (p *planner) keepsSpare(m Member) bool {
	return p.keepsQuorum(m) && p.without(m) >= spare(len(p.voters), p.healthy)
}

// add gives a standby a seat.
func (p *planner) add() *Step {
	if len(p.learners) >= maxLearners {
		return nil
	}
	name, ok := p.candidate()
	if !ok {
		return nil
	}
	missing := p.want - len(p.keeping) - len(p.learners)
	step := &Step{Verb: Add, Server: name}
	switch {
	case missing > 0 && len(p.losing) > 0:
		step.Replaces = p.losing[0].Name
		step.Reason = fmt.Sprintf("it takes the place of %s: %s", step.Replaces, p.loses(p.losing[0]))
	case missing > 0:
		step.Reason = fmt.Sprintf("%d members are wanted, and %d vote", p.want, len(p.voters))
	case missing == 0 && len(p.learners) == 0 && len(p.losing) == 0 && p.spreads(name):
		step.Reason = "its failure domain has fewer members (" + p.key + ")"
	default:
		return nil
	}
	return step
}

func (p *planner) degraded() string {
	silent, hung := 0, 0
	for _, m := range p.voters {
		switch {
		case !m.Answers.Good:
			silent++
		case p.bad(m.Etcd, 0, p.now): // One slow moment is none to tell of.
			hung++
		}
	}
	switch {
	case silent > 0:
		return fmt.Sprintf("%d of %d members of etcd do not answer", silent, len(p.voters))
	case hung > 0:
		return fmt.Sprintf("%d of %d members of etcd run, and do nothing: a disk hangs, or is too slow", hung, len(p.voters))
	case len(p.voters) < p.want:
		return fmt.Sprintf("%d members of etcd are wanted, and %d vote", p.want, len(p.voters))
	}
	return ""
}
