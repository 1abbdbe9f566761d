package etcd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/quorumlog"
)

// machine is a server of the simulated control plane.
type machine struct {
	name, rack string
	up         bool
	lost       bool // It has lost the data of its member.
	hung       bool // The disk of its member hangs.
	mode       api.HostMode
	gone       time.Time // It has no Host since then,
	removed    time.Time // as whoever leads has known since then.
	failed     time.Time
	asks       Word
	agent      Word
}

// world is the simulated control plane. One tick is ten seconds.
type world struct {
	t        *rapid.T
	now      time.Time
	machines []*machine
	members  []*Member
	leader   string
	nextID   uint64
	steps    int
	// told is what the events in the log have told. While mute is set each leader ends after its step and before it tells.
	told  Told
	log   []api.ClusterEvent
	mute  bool
	tried []Step
}

// answers says whether the machine's member runs, if it has one, and works whether it does its part.
func (m *machine) answers() bool { return m.up && !m.lost }
func (m *machine) works() bool   { return m.answers() && !m.hung }

func (w *world) machine(name string) *machine {
	return w.machines[slices.IndexFunc(w.machines, func(m *machine) bool { return m.name == name })]
}

func (w *world) seated(name string) bool {
	return slices.ContainsFunc(w.members, func(m *Member) bool { return m.Name == name })
}

func (w *world) votes(name string) bool {
	return slices.ContainsFunc(w.members, func(m *Member) bool { return m.Name == name && m.Voter })
}

// quorum says whether more than half of the voters run.
func (w *world) quorum() bool { return w.spare() >= 0 }

func (w *world) spare() int {
	voters, healthy := 0, 0
	for _, m := range w.members {
		if m.Voter {
			voters++
			if w.machine(m.Name).works() {
				healthy++
			}
		}
	}
	return spare(voters, healthy)
}

// elect has another voter that does its part lead if the one that led does not.
func (w *world) elect() {
	var able []string
	for _, m := range w.members {
		if m.Voter && w.machine(m.Name).works() {
			able = append(able, m.Name)
		}
	}
	if w.quorum() && !slices.Contains(able, w.leader) {
		w.lead(able[0])
	}
}

// lead has a member lead. It has observed nothing yet.
func (w *world) lead(name string) {
	w.leader = name
	for _, m := range w.members {
		m.Answers, m.Etcd = Word{}, Word{}
	}
	for _, m := range w.machines {
		m.agent, m.asks, m.removed, m.failed = Word{}, Word{}, time.Time{}, time.Time{}
	}
}

// handOver has another voter lead than this one.
func (w *world) handOver(from string) {
	for _, m := range w.members {
		if m.Voter && m.Name != from && w.machine(m.Name).works() {
			w.lead(m.Name)
			return
		}
	}
	w.t.Fatalf("nobody can lead in the place of %s", from)
}

// server is what is known of a machine.
func (m *machine) server() Server {
	if !m.gone.IsZero() {
		return Server{Name: m.name, Removed: m.removed}
	}
	return Server{
		Name: m.name, Labels: map[string]string{api.LabelRack: m.rack}, Mode: m.mode,
		Agent: m.agent, Asks: m.asks, Failed: m.failed, Lost: m.lost && m.up,
	}
}

func (w *world) view() View {
	w.elect()
	v := View{}
	for _, m := range w.members {
		answers, works := w.machine(m.Name).answers(), w.machine(m.Name).works()
		m.Started = m.Started || answers
		m.Answers, m.Etcd = m.Answers.Note(answers, w.now), m.Etcd.Note(works, w.now)
		v.Members = append(v.Members, *m)
	}
	if w.quorum() {
		v.Leader = w.leader
	}
	for _, m := range w.machines {
		m.agent = m.agent.Note(m.up, w.now)
		m.asks = m.asks.Note(m.up && (!w.seated(m.name) || m.lost), w.now)
		if !m.gone.IsZero() && m.removed.IsZero() {
			m.removed = w.now
		}
		if m.gone.IsZero() || w.seated(m.name) {
			v.Servers = append(v.Servers, m.server())
		}
	}
	return v
}

// tick lets the plan do one step, and checks it.
func (w *world) tick() (acted bool) {
	w.now = w.now.Add(10 * time.Second)
	v := w.view()
	plan := Make(v, Settings{}, w.now)
	w.tell(v, plan)
	if plan.Step == nil {
		return false
	}
	before := w.spare()
	w.checkSpread(plan.Step, v)
	w.checkGone(plan, v)
	w.do(plan.Step)
	removed := plan.Step.Verb == Remove && !w.machine(plan.Step.Server).gone.IsZero()
	if after := w.spare(); after < 0 || after < before && !removed {
		w.t.Fatalf("%s %s (%s): %d failures were survived before, %d after", plan.Step.Verb, plan.Step.Server, plan.Step.Reason, before, after)
	}
	return true
}

// tell has the leader tell what is new, or end before it can.
func (w *world) tell(v View, plan Plan) {
	if !w.mute {
		var events []Event
		events, w.told = tell(w.t, w.told, v, plan, w.tried)
		for _, e := range events {
			w.log = append(w.log, api.ClusterEvent{Sequence: int64(len(w.log) + 1), Code: e.Code, Object: e.Object, Message: e.Message})
		}
	}
	w.tried = nil
}

func (w *world) do(s *Step) {
	w.steps++
	w.tried = append(w.tried, *s)
	i := slices.IndexFunc(w.members, func(m *Member) bool { return m.ID == s.Member })
	switch s.Verb {
	case Add:
		if w.seated(s.Server) {
			w.t.Fatalf("%s holds a seat already", s.Server)
		}
		w.nextID++
		w.members = append(w.members, &Member{ID: w.nextID, Name: s.Server})
	case Promote:
		if w.members[i].Voter || !w.machine(s.Server).works() {
			w.t.Fatalf("%s cannot be promoted", s.Server)
		}
		w.members[i].Voter = true
	case Lead:
		if m := w.members[i]; !m.Voter || m.Name == w.leader || !w.machine(m.Name).works() {
			w.t.Fatalf("%s cannot lead in the place of %s", m.Name, w.leader)
		}
		w.lead(s.Server)
	case Remove:
		if s.Server == w.leader {
			w.handOver(s.Server)
			return
		}
		if !w.members[i].Voter {
			w.machine(s.Server).failed = w.now
		}
		w.machine(s.Server).lost, w.machine(s.Server).hung = false, false
		w.members = slices.Delete(w.members, i, i+1)
	}
}

// settle lets time go by until nothing has been done for longer than any grace, and fails if that does not come.
func (w *world) settle() {
	quiet := 0
	for range 10000 {
		if quiet++; w.tick() {
			quiet = 0
		}
		if quiet > 200 { // a learner may take half an hour
			return
		}
	}
	w.t.Fatal("it does not come to rest")
}

// fail is something that happens. What would lose the quorum without any step is left out: nothing could be decided then.
func (w *world) fail(t *rapid.T) {
	among := w.machines
	if rapid.Bool().Draw(t, "seated") { // Of many servers few hold a seat, and those matter.
		among = slices.DeleteFunc(slices.Clone(among), func(m *machine) bool { return !w.seated(m.name) })
	}
	m := rapid.SampledFrom(among).Draw(t, "machine")
	was := *m
	switch rapid.SampledFrom([]string{"down", "up", "maintenance", "active", "drain", "remove", "join", "new", "lose", "hang", "thaw", "elect"}).Draw(t, "what") {
	case "down":
		m.up = false
	case "up":
		m.up = true
	case "maintenance":
		m.mode = api.HostMaintenance
	case "active":
		m.mode = api.HostActive
	case "drain":
		m.mode = api.HostDrain
	case "remove":
		if m.gone.IsZero() {
			m.gone = w.now
		}
	case "join":
		m.gone, m.removed = time.Time{}, time.Time{}
	case "elect":
		if w.votes(m.name) && m.works() {
			w.lead(m.name)
		}
	case "lose":
		m.lost = w.seated(m.name)
	case "hang":
		m.hung = w.seated(m.name)
	case "thaw":
		m.hung = false
	case "new":
		w.machines = append(w.machines, w.newMachine(t))
	}
	if !w.quorum() {
		*m = was
	}
}

func (w *world) newMachine(t *rapid.T) *machine {
	rack := rapid.SampledFrom([]string{"", "r1", "r2", "r3"}).Draw(t, "rack")
	return &machine{name: fmt.Sprintf("s%03d", len(w.machines)), rack: rack, up: true}
}

// servers is how many there are at first. Few servers are where it is close. A hundred are about where seven members come to be
// wanted; they cost time, and are rare.
func servers() *rapid.Generator[int] {
	usual := rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 25))
	return rapid.OneOf(append(slices.Repeat([]*rapid.Generator[int]{usual}, 24), rapid.IntRange(99, 104))...)
}

// TestProperty: whatever fails, comes back, is added or removed: no step of ours loses the quorum or lowers what is survived;
// seats are given and taken so that they are spread over the racks; it comes to rest; at rest everything that can be had is had;
// it takes few steps; and each change is told once, although leaders end between a step and its event, and forget what they saw.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: now}
		for range servers().Draw(t, "servers") {
			w.machines = append(w.machines, w.newMachine(t))
		}
		w.nextID = 1
		w.members = []*Member{{ID: 1, Name: "s000", Voter: true}}
		w.tick() // The first event of all tells of no member.
		events := rapid.IntRange(0, 12).Draw(t, "events")
		for range events {
			w.fail(t)
			w.mute = rapid.Bool().Draw(t, "mute")
			for range rapid.IntRange(0, 80).Draw(t, "ticks") {
				w.tick()
			}
		}
		w.mute = false
		w.settle()
		w.check()
		// Three steps exchange a member. A spread may be bettered by as many exchanges as there are members.
		if limit := 40 * (events + 1); w.steps > limit {
			t.Errorf("%d steps for %d events", w.steps, events)
		}
	})
}

// TestProperty_removedLeader: the Host of the server that leads is removed, and others lead after any of the steps that follow. It loses its seat once the grace is over,
// which begins anew at most once, and only another server's place is taken for it: none that was given a seat loses it again.
func TestProperty_removedLeader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: now, nextID: 1, members: []*Member{{ID: 1, Name: "s000", Voter: true}}}
		for i := range rapid.IntRange(4, 5).Draw(t, "servers") {
			w.machines = append(w.machines, &machine{name: fmt.Sprintf("s%03d", i), up: true})
		}
		w.settle()
		leaves, from, steps, told := w.machine(w.leader), w.now, w.steps, len(w.log)
		leaves.gone = w.now
		changes := rapid.IntRange(1, 6).Draw(t, "the step after which others lead")
		for w.seated(leaves.name) {
			if w.tick() && w.steps-steps == changes {
				w.handOver(w.leader)
			}
			if w.now.Sub(from) > 2*(Settings{}.orDefaults().Grace+time.Minute) {
				t.Fatalf("it holds its seat %s later", w.now.Sub(from))
			}
		}
		w.settle()
		for _, e := range w.log[told:] {
			if e.Code == CodeRemoved && e.Object != "host/"+leaves.name {
				t.Errorf("%s lost its seat: %s", e.Object, e.Message)
			}
		}
		w.check()
	})
}

// seats counts, for each rack, the seats of servers that are not about to give theirs up.
func seats(v View, now time.Time) map[string]int {
	p, racks := newPlanner(v, Settings{}.orDefaults(), now), map[string]int{}
	for _, m := range slices.Concat(p.keeping, p.learners) {
		racks[p.servers[m.Name].Labels[api.LabelRack]]++
	}
	return racks
}

// waiting are the racks of the standbys that could take a seat.
func (w *world) waiting(v View) (racks []string) {
	for _, s := range v.Servers {
		failed := !s.Failed.IsZero() && w.now.Sub(s.Failed) < Settings{}.orDefaults().RetryAfter
		active := s.Mode == "" || s.Mode == api.HostActive
		if s.Asks.Good && s.Removed.IsZero() && active && !failed && !w.seated(s.Name) {
			racks = append(racks, s.Labels[api.LabelRack])
		}
	}
	return racks
}

// checkSpread: no seat goes to a rack while a standby waits in one with fewer seats, and a voter that does its part makes room only
// in a rack that no other one has more seats than.
func (w *world) checkSpread(step *Step, v View) {
	racks, rack := seats(v, w.now), w.machine(step.Server).server().Labels[api.LabelRack]
	if step.Verb == Add {
		for _, other := range w.waiting(v) {
			if racks[other] < racks[rack] {
				w.t.Fatalf("Add %s (%s) in rack %q of %d seats; a standby waits in rack %q of %d", step.Server, step.Reason, rack, racks[rack], other, racks[other])
			}
		}
	}
	p := newPlanner(v, Settings{}.orDefaults(), w.now)
	if step.Verb == Remove && slices.ContainsFunc(p.keeping, func(m Member) bool { return m.ID == step.Member && !p.leaving(m) }) {
		for other, n := range racks {
			if n > racks[rack] {
				w.t.Fatalf("Remove %s (%s) in rack %q of %d seats; rack %q has %d", step.Server, step.Reason, rack, racks[rack], other, n)
			}
		}
	}
}

// checkGone: a server whose Host is gone makes no other one superfluous, and keeps its seat for the grace while it does its part, unless there is one too many.
func (w *world) checkGone(plan Plan, v View) {
	step, p := plan.Step, newPlanner(v, Settings{}.orDefaults(), w.now)
	if step.Verb != Remove {
		return
	}
	m := w.machine(step.Server)
	leaving := slices.ContainsFunc(p.keeping, p.leaving)
	spared := slices.ContainsFunc(slices.Concat(p.keeping, p.learners), func(m Member) bool { return m.ID == step.Member && p.loses(m) == "" })
	if m.gone.IsZero() && leaving && spared && m.works() {
		w.t.Fatalf("Remove %s (%s), while a server whose Host is gone keeps its seat", step.Server, step.Reason)
	}
	if early := w.now.Sub(m.gone) < p.Grace; !m.gone.IsZero() && early && m.works() && w.votes(m.name) && (len(p.voters)%2 != 0 || len(p.voters) <= plan.Want) {
		w.t.Fatalf("Remove %s (%s), whose Host is gone for %s", step.Server, step.Reason, w.now.Sub(m.gone))
	}
}

// checkSpreadAtRest: no standby waits in a rack with two seats fewer than another one, where as many vote as are wanted.
func (w *world) checkSpreadAtRest(want int) {
	v := w.view()
	racks, p := seats(v, w.now), newPlanner(v, Settings{}.orDefaults(), w.now)
	if len(p.keeping) != want || len(p.losing) > 0 {
		return
	}
	for _, waits := range w.waiting(v) {
		for other, n := range racks {
			if n >= racks[waits]+2 {
				w.t.Errorf("a standby waits in rack %q of %d seats, and rack %q has %d", waits, racks[waits], other, n)
			}
		}
	}
}

// checkRemoved: nobody whose Host was removed holds a seat, but one that the quorum needs.
func (w *world) checkRemoved() {
	v := w.view()
	p := newPlanner(v, Settings{}.orDefaults(), w.now)
	for _, m := range p.voters {
		if !w.machine(m.Name).gone.IsZero() && p.keepsQuorum(m) {
			w.t.Errorf("%s was removed, and votes", m.Name)
		}
	}
}

// checkTold: what was told is what is, and nothing was told twice.
func (w *world) checkTold() {
	story, err := quorumlog.Follow(w.log, "s000")
	if err != nil {
		w.t.Fatal(err)
	}
	votes := map[string]bool{}
	for _, m := range w.members {
		votes[m.Name] = m.Voter
	}
	if diff := cmp.Diff(votes, story.Votes); diff != "" {
		w.t.Errorf("who has a seat, and votes: - what is, + what was told\n%s", diff)
	}
	v := w.view()
	if degraded := Make(v, Settings{}, w.now).Degraded; (degraded != "") != story.Degraded {
		w.t.Errorf("%q; that it is degraded was told: %t", degraded, story.Degraded)
	}
}

// check says what must be so at rest.
func (w *world) check() {
	count, able := 0, 0
	for _, m := range w.machines {
		if m.gone.IsZero() {
			count++
			if m.up && !m.hung && (m.mode == "" || m.mode == api.HostActive) {
				able++
			}
		}
	}
	healthy := 0
	for _, m := range w.members {
		if m.Voter && w.machine(m.Name).works() && w.machine(m.Name).gone.IsZero() {
			healthy++
		}
	}
	w.checkTold()
	want := Size(count)
	w.checkSpreadAtRest(want)
	w.checkRemoved()
	if able >= want && healthy < want {
		w.t.Errorf("%d of %d servers can hold a member, %d are wanted, and %d vote", able, len(w.machines), want, healthy)
	}
}
