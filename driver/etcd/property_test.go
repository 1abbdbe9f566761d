package etcd

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// machine is a server of the simulated control plane.
type machine struct {
	name, rack string
	up         bool
	lost       bool // It has lost the data of its member.
	hung       bool // The disk of its member hangs.
	mode       api.HostMode
	removed    time.Time
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
	nextID   uint64
	steps    int
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

func (w *world) view() View {
	v := View{}
	for _, m := range w.members {
		answers, works := w.machine(m.Name).answers(), w.machine(m.Name).works()
		m.Started = m.Started || answers
		m.Answers, m.Etcd = m.Answers.Note(answers, w.now), m.Etcd.Note(works, w.now)
		v.Members = append(v.Members, *m)
		if m.Voter && works && v.Leader == "" && w.quorum() {
			v.Leader = m.Name
		}
	}
	for _, m := range w.machines {
		m.agent = m.agent.Note(m.up, w.now)
		m.asks = m.asks.Note(m.up && (!w.seated(m.name) || m.lost), w.now)
		v.Servers = append(v.Servers, Server{
			Name: m.name, Labels: map[string]string{api.LabelRack: m.rack}, Mode: m.mode,
			Agent: m.agent, Asks: m.asks, Removed: m.removed, Failed: m.failed, Lost: m.lost && m.up,
		})
	}
	return v
}

// tick lets the plan do one step, and checks it.
func (w *world) tick() (acted bool) {
	w.now = w.now.Add(10 * time.Second)
	plan := Make(w.view(), Settings{}, w.now)
	if plan.Step == nil {
		return false
	}
	before := w.spare()
	w.do(plan.Step)
	removed := plan.Step.Verb == Remove && !w.machine(plan.Step.Server).removed.IsZero()
	if after := w.spare(); after < 0 || after < before && !removed {
		w.t.Fatalf("%s %s (%s): %d failures were survived before, %d after", plan.Step.Verb, plan.Step.Server, plan.Step.Reason, before, after)
	}
	return true
}

func (w *world) do(s *Step) {
	w.steps++
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
	case Remove:
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
	m := rapid.SampledFrom(w.machines).Draw(t, "machine")
	was := *m
	switch rapid.SampledFrom([]string{"down", "up", "maintenance", "active", "drain", "remove", "new", "lose", "hang", "thaw"}).Draw(t, "what") {
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
		if m.removed.IsZero() {
			m.removed = w.now
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
	return &machine{name: fmt.Sprintf("s%02d", len(w.machines)), rack: rack, up: true}
}

// TestProperty: whatever fails, comes back, is added or removed: no step of ours loses the quorum or lowers what is survived;
// it comes to rest; at rest everything that can be had is had; and it takes few steps.
func TestProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, now: now}
		// Few servers are where it is close.
		for range rapid.OneOf(rapid.IntRange(1, 5), rapid.IntRange(1, 25)).Draw(t, "servers") {
			w.machines = append(w.machines, w.newMachine(t))
		}
		w.nextID = 1
		w.members = []*Member{{ID: 1, Name: "s00", Voter: true}}
		events := rapid.IntRange(0, 12).Draw(t, "events")
		for range events {
			w.fail(t)
			for range rapid.IntRange(0, 80).Draw(t, "ticks") {
				w.tick()
			}
		}
		w.settle()
		w.check()
		// Three steps exchange a member. A spread may be bettered by as many exchanges as there are members.
		if limit := 40 * (events + 1); w.steps > limit {
			t.Errorf("%d steps for %d events", w.steps, events)
		}
	})
}

// check says what must be so at rest.
func (w *world) check() {
	count, able := 0, 0
	for _, m := range w.machines {
		if m.removed.IsZero() {
			count++
			if m.up && !m.hung && (m.mode == "" || m.mode == api.HostActive) {
				able++
			}
		}
	}
	healthy := 0
	for _, m := range w.members {
		if m.Voter && w.machine(m.Name).works() && w.machine(m.Name).removed.IsZero() {
			healthy++
		}
	}
	want := Size(count)
	if able >= want && healthy < want {
		w.t.Errorf("%d of %d servers can hold a member, %d are wanted, and %d vote", able, len(w.machines), want, healthy)
	}
}
