package etcd

import (
	"fmt"
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var now = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// word is one that has been said for a time.
func word(good bool, since time.Duration) Word {
	return Word{Good: good, Since: now.Add(-since), Seen: 10}
}

// picture builds a view from words such as "a:voter b:dead c:standby". The first member leads.
func picture(t *testing.T, text string) View {
	t.Helper()
	var v View
	for i, field := range strings.Fields(text) {
		name, what, _ := strings.Cut(field, ":")
		what, rack, _ := strings.Cut(what, "@")
		good, bad := word(true, time.Hour), word(false, time.Hour)
		s := Server{Name: name, Agent: good, Labels: map[string]string{api.LabelRack: rack}}
		m := Member{ID: uint64(i + 1), Name: name, Voter: true, Started: true, Etcd: good}
		member := true
		switch what {
		case "voter":
		case "dead":
			s.Agent, m.Etcd = bad, bad
		case "silent": // Not for long enough.
			s.Agent, m.Etcd = word(false, time.Minute), word(false, time.Minute)
		case "cut": // The agent is heard, etcd is not.
			m.Etcd = bad
		case "hung": // It can be reached, and does nothing.
			m.Answers, m.Etcd = good, bad
		case "slow": // Not for long enough.
			m.Answers, m.Etcd = good, word(false, time.Minute)
		case "filling":
			m.Voter, m.Answers, m.Etcd = false, word(true, 20*time.Minute), word(false, 20*time.Minute)
		case "unfilled":
			m.Voter, m.Answers, m.Etcd = false, good, bad
		case "maintenance":
			s.Mode = api.HostMaintenance
		case "switchedoff": // In maintenance, a moment ago.
			s.Mode, s.Agent, m.Etcd = api.HostMaintenance, word(false, time.Second), word(false, time.Second)
		case "removed":
			s.Removed = now.Add(-time.Hour)
		case "going": // Its Host is gone, not for long enough.
			s.Removed = now.Add(-time.Minute - time.Second)
		case "lost": // Removed, and dead.
			s.Removed, s.Agent, m.Etcd = now.Add(-time.Second), bad, bad
		case "empty": // It asks for a seat, although it has one.
			s.Lost, s.Asks, m.Etcd = true, good, word(false, time.Second)
		case "emptied": // The same, and its member was heard a moment ago.
			s.Lost, s.Asks = true, good
		case "learner":
			m.Voter = false
		case "new": // A learner that has not run yet.
			m.Voter, m.Started, m.Etcd = false, false, word(false, time.Second)
		case "stuck":
			m.Voter, m.Started, m.Etcd = false, false, bad
		case "standby":
			s.Asks, member = good, false
		case "off":
			s.Agent, s.Asks, member = bad, bad, false
		case "failed":
			s.Asks, s.Failed, member = good, now.Add(-time.Minute), false
		default:
			t.Fatalf("what is %q?", what)
		}
		v.Servers = append(v.Servers, s)
		if m.Answers.Seen == 0 {
			m.Answers = m.Etcd
		}
		if member {
			v.Members = append(v.Members, m)
			if v.Leader == "" {
				v.Leader = name
			}
		}
	}
	return v
}

// many adds servers that are off, up to a number: how many servers there are says how many members are wanted.
func many(view string, servers int) string {
	for i := len(strings.Fields(view)); i < servers; i++ {
		view += fmt.Sprintf(" z%03d:off", i)
	}
	return view
}

func TestMake(t *testing.T) {
	for _, test := range []struct{ name, view, want string }{
		{"one server", "a:voter", ""},
		{"two servers: the second is a standby", "a:voter b:standby", ""},
		{"two servers, and the member is dead: nothing can decide", "a:dead b:standby", ""},
		{"three servers: the first learner", "a:voter b:standby c:standby", "Add b"},
		{"the second learner", "a:voter b:new c:standby", "Add c"},
		{"two voters would survive no more than one", "a:voter b:learner c:new", ""},
		{"a learner stays a learner while the third server is off", "a:voter b:learner c:off", ""},
		{"both can vote: the first", "a:voter b:learner c:learner", "Promote b"},
		{"and the second", "a:voter b:voter c:learner", "Promote c"},
		{"three members are enough for four servers", "a:voter b:voter c:voter d:standby", ""},
		{"a dead member, and nobody to take its place", "a:voter b:voter c:dead", ""},
		{"a dead member is replaced", "a:voter b:voter c:dead d:standby", "Add d"},
		{"not before the grace", "a:voter b:voter c:silent d:standby", ""},
		{"not while its agent is heard", "a:voter b:voter c:cut d:standby", ""},
		{"a member whose disk hangs goes first, although its agent is heard: it would turn new ones away", "a:voter b:voter c:hung d:standby", "Remove c"},
		{"then its place is taken", "a:voter b:voter c:standby d:standby", "Add c"},
		{"it does not go when nobody takes its place", "a:voter b:voter c:hung", ""},
		{"it makes way for one that it turns away", "a:voter b:voter c:hung d:new", "Remove c"},
		{"and for one that has caught up", "a:voter b:voter c:hung d:learner", "Promote d"},
		{"not before the grace: it may catch up", "a:voter b:voter c:slow d:standby", ""},
		{"what hangs is not counted on", "a:voter b:slow c:removed", ""},
		{"a learner takes its time", "a:voter b:filling c:learner", ""},
		{"a learner that never catches up makes room", "a:voter b:unfilled c:learner", "Remove b"},
		{"promoted, and only then the dead one is removed", "a:voter b:voter c:dead d:learner", "Promote d"},
		{"now it is removed", "a:voter b:voter c:dead d:voter", "Remove c"},
		{"a leader that has just begun knows nobody for dead: the learner that it finds stays, and does not vote yet", "a:voter b:voter c:silent d:learner", ""},
		{"it holds up no other learner, which spreads them", "a:voter@r1 b:voter@r1 c:silent@r1 d:learner@r1 e:learner@r2", "Promote e"},
		{"nor does it go while it is filled", "a:voter b:voter c:silent d:new", ""},
		{"the dead one came back in time: the spare learner goes", "a:voter b:voter c:voter d:learner", "Remove d"},
		{"it came back after the promotion: the fourth goes", "a:voter b:voter c:voter d:voter", "Remove d"},
		{"five voters are not made three: that survives less", "a:voter b:voter c:voter d:voter e:voter", ""},
		{"maintenance: another takes the seat", "a:voter b:voter c:maintenance d:standby", "Add d"},
		{"maintenance of the leader", "a:maintenance b:standby", "Add b"},
		{"it takes over", "a:maintenance b:learner", "Promote b"},
		{"the leader gives up its seat", "a:maintenance b:voter", "Remove a"},
		{"maintenance, and nobody takes the seat", "a:voter b:voter c:maintenance", ""},
		{"one in maintenance, of five where three are wanted, works: without it less would be survived", "a:voter b:voter c:voter d:voter e:maintenance", ""},
		{"it goes as soon as it does not, before the grace", "a:voter b:voter c:voter d:voter e:switchedoff", "Remove e"},
		{"of four it goes at once, rather than another one: three survive as much", "a:maintenance b:voter c:voter d:voter", "Remove a"},
		{"of five, two in maintenance: neither", "a:voter b:voter c:voter d:maintenance e:maintenance", ""},
		{"one of them is switched off: it goes", "a:voter b:voter c:voter d:maintenance e:switchedoff", "Remove e"},
		{"then the other one", "a:voter b:voter c:voter d:maintenance", "Remove d"},
		{"a removed one goes although nobody takes the seat", "a:voter b:voter c:removed", "Remove c"},
		{"a removed and dead one goes at once", "a:voter b:voter c:lost", "Remove c"},
		{"two servers are left for good: two copies are kept", "a:voter b:voter", ""},
		{"one of two is removed", "a:voter b:removed", "Remove b"},
		{"one of two is removed, and is needed to do it", "a:voter b:lost", ""},
		{"a removed one is needed by those that are left", "a:voter b:removed c:cut", ""},
		{"one that lost its data makes room for itself", "a:voter b:voter c:empty", "Remove c"},
		{"not while its member is counted on", "a:voter b:cut c:emptied", ""},
		{"a removed one is replaced first", "a:voter b:voter c:removed d:standby", "Add d"},
		{"one whose Host is gone keeps its seat for the grace: it may be a mistake", "a:voter b:voter c:going d:standby", ""},
		{"if it leads, another one leads at once", "a:going b:voter c:voter d:standby", "Lead b"},
		{"one that works, and stays", "a:going b:cut c:going d:voter e:voter", "Lead d"},
		{"where nobody stays it leads on", "a:going b:going", ""},
		{"it goes rather than the one that took its place, which a leader that has just begun finds", "a:voter b:going c:voter d:voter", "Remove b"},
		{"who is about to take its place stays, and does not vote yet", "a:voter b:going c:voter d:learner", ""},
		{"nobody is exchanged for the spread meanwhile", "a:voter@1 b:voter@1 c:going d:standby@2", ""},
		{"two are left, and the grace is kept", "a:voter b:going", ""},
		{"a stuck learner makes room", "a:voter b:stuck c:standby", "Remove b"},
		{"its server is not tried again at once", "a:voter b:failed c:standby", "Add c"},
		{"without a majority nothing is promoted", "a:voter b:dead c:dead d:learner", ""},
		{"a hundred servers: five members are enough", many("a:voter b:voter c:voter d:voter e:voter f:standby g:standby", 100), ""},
		{"one server more: a sixth", many("a:voter b:voter c:voter d:voter e:voter f:standby g:standby", 101), "Add f"},
		{"and a seventh beside it", many("a:voter b:voter c:voter d:voter e:voter f:new g:standby", 101), "Add g"},
		{"no more than two learn at one time", many("a:voter b:voter c:voter d:new e:new f:standby g:standby", 101), ""},
		{"six voters would survive no more than five", many("a:voter b:voter c:voter d:voter e:voter f:learner g:new", 101), ""},
		{"both can vote: the sixth", many("a:voter b:voter c:voter d:voter e:voter f:learner g:learner", 101), "Promote f"},
		{"and the seventh", many("a:voter b:voter c:voter d:voter e:voter f:voter g:learner", 101), "Promote g"},
		{"seven are enough", many("a:voter b:voter c:voter d:voter e:voter f:voter g:voter h:standby", 101), ""},
		{"a dead one of seven, and nobody to take its place", many("a:voter b:voter c:voter d:voter e:voter f:voter g:dead", 101), ""},
		{"a dead one of seven is replaced", many("a:voter b:voter c:voter d:voter e:voter f:voter g:dead h:standby", 101), "Add h"},
		{"promoted before that one is removed", many("a:voter b:voter c:voter d:voter e:voter f:voter g:dead h:learner", 101), "Promote h"},
		{"then it is removed", many("a:voter b:voter c:voter d:voter e:voter f:voter g:dead h:voter", 101), "Remove g"},
		{"two dead ones of seven: two learn", many("a:voter b:voter c:voter d:voter e:voter f:dead g:dead h:new i:standby", 101), "Add i"},
		{"one of them votes at once: six voters and two dead ones survive more than five and two", many("a:voter b:voter c:voter d:voter e:voter f:dead g:dead h:learner i:new", 101), "Promote h"},
		{"three of seven are left: nothing can be decided", many("a:voter b:voter c:voter d:dead e:dead f:dead g:dead h:standby", 101), ""},
		{"seven voters are not made five: that survives less", many("a:voter b:voter c:voter d:voter e:voter f:voter g:voter", 100), ""},
		{"a dead one of seven, and five are enough: it goes without being replaced", many("a:voter b:voter c:voter d:voter e:voter f:voter g:dead h:standby", 100), "Remove g"},
		{"so does a removed one", many("a:voter b:voter c:voter d:voter e:voter f:voter g:removed h:standby", 101), "Remove g"},
		{"six survive no more than five: the sixth goes", many("a:voter b:voter c:voter d:voter e:voter f:voter", 100), "Remove f"},
		{"another rack first", "a:voter@1 b:standby@1 c:standby@2", "Add c"},
		{"the spread is bettered", "a:voter@1 b:voter@1 c:voter@1 d:standby@2", "Add d"},
		{"by a fourth member", "a:voter@1 b:voter@1 c:voter@1 d:learner@2", "Promote d"},
		{"and one of the crowded rack goes, not the leader", "a:voter@1 b:voter@1 c:voter@1 d:voter@2", "Remove c"},
		{"then it stays so", "a:voter@1 b:voter@1 c:standby@1 d:voter@2", ""},
		{"no better spread is possible", "a:voter@1 b:voter@1 c:voter@2 d:standby@2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan, got := Make(picture(t, test.view), Settings{}, now), ""
			if plan.Step != nil {
				got = string(plan.Step.Verb) + " " + plan.Step.Server
			}
			if got != test.want {
				t.Errorf("%s: got %q, want %q; decisions: %v", test.view, got, test.want, plan.Decisions)
			}
		})
	}
}

// TestMake_confirms: a member counts as dead when both its etcd and its agent were found silent several times in a row, however long ago
// the first of these was.
func TestMake_confirms(t *testing.T) {
	for _, test := range []struct {
		etcd, agent, confirm int
		want                 Verb
	}{
		{etcd: 3, agent: 3, want: Add},
		{etcd: 2, agent: 10},
		{etcd: 10, agent: 2},
		{etcd: 1, agent: 1, confirm: 1, want: Add},
		{etcd: 4, agent: 5, confirm: 5},
		{etcd: 5, agent: 5, confirm: 5, want: Add},
	} {
		v := picture(t, "a:voter b:voter c:dead d:standby")
		v.Members[2].Etcd.Seen, v.Members[2].Answers.Seen, v.Servers[2].Agent.Seen = test.etcd, test.etcd, test.agent
		got := Verb("")
		if plan := Make(v, Settings{Confirm: test.confirm}, now); plan.Step != nil {
			got = plan.Step.Verb
		}
		if got != test.want {
			t.Errorf("%+v: got %q", test, got)
		}
	}
}

// TestWord_Note: one good answer among bad ones begins the count anew.
func TestWord_Note(t *testing.T) {
	var w Word
	for i, good := range []bool{false, false, true, false, false} {
		w = w.Note(good, now.Add(time.Duration(i)*time.Minute))
	}
	if want := (Word{Since: now.Add(3 * time.Minute), Seen: 2}); w != want {
		t.Errorf("got %+v, want %+v", w, want)
	}
}

// TestMake_says: what is decided, and what is not, is said with the reason and the way out.
func TestMake_says(t *testing.T) {
	for _, test := range []struct{ view, degraded, decision string }{
		{"a:voter b:voter c:dead", "1 of 3 members of etcd do not answer", "start another one with 'holdfast server --join'"},
		{"a:voter b:voter c:hung", "1 of 3 members of etcd run, and do nothing", "its disk hangs, or is too slow; its member of etcd stays until"},
		{"a:voter b:voter c:maintenance", "", "the host is in maintenance; its member of etcd stays until"},
		{"a:voter b:voter c:voter d:voter e:maintenance", "", "the host is in maintenance; its surplus member of etcd stays while it works"},
		{"a:voter b:voter c:going", "", "its Host was deleted; its membership ends in 4 min. If that was a mistake"},
		{"a:voter b:learner c:off", "3 members of etcd are wanted, and 1 vote", "learner; it votes as soon as another server can vote, too"},
		{"a:voter b:voter c:dead d:standby", "1 of 3", "Add: it takes the place of c: neither etcd nor the agent"},
	} {
		plan := Make(picture(t, test.view), Settings{}, now)
		var said []string
		for _, d := range plan.Decisions {
			said = append(said, d.Message)
		}
		if !strings.Contains(plan.Degraded, test.degraded) || (test.degraded == "") != (plan.Degraded == "") {
			t.Errorf("%s: degraded: %q, want %q", test.view, plan.Degraded, test.degraded)
		}
		if text := strings.Join(said, "\n"); !strings.Contains(text, test.decision) {
			t.Errorf("%s: said %q, want %q", test.view, text, test.decision)
		}
	}
}

func TestSize(t *testing.T) {
	for servers, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 3, 20: 3, 21: 5, 100: 5, 101: 7, 5000: 7} {
		if got := Size(servers); got != want {
			t.Errorf("%d servers: %d members, want %d", servers, got, want)
		}
	}
}
