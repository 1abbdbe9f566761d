package etcd

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/engine"
)

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// tell tells all differences, and returns them with what was told in the end. What is recorded with each of them goes
// through JSON, as it does in the control plane.
func tell(t fataler, told Told, v View, p Plan, steps []Step) (events []Event, after Told) {
	t.Helper()
	for range 100 {
		event, next := told.Next(v, p, steps)
		if event == nil {
			return events, told
		}
		if !slices.ContainsFunc(engine.Codes(), func(c engine.CodeInfo) bool { return string(c.Code) == event.Code }) {
			t.Fatalf("nobody knows the code %s", event.Code)
		}
		events = append(events, *event)
		text, err := json.Marshal(next)
		if err != nil {
			t.Fatal(err)
		}
		told = Told{}
		if err := json.Unmarshal(text, &told); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatalf("the telling does not end: %v", events)
	return nil, told
}

// short tells all differences, and returns them in short.
func short(t *testing.T, told Told, v View, steps []Step) (texts []string, after Told) {
	t.Helper()
	events, after := tell(t, told, v, Make(v, Settings{}, now), steps)
	for _, e := range events {
		_, object, _ := strings.Cut(e.Object, "/")
		texts = append(texts, e.Code[len("QUORUM_"):]+" "+object+": "+e.Message)
	}
	return texts, after
}

const (
	unsaid  = "cause unknown: the leader ended before it recorded the cause, or the change was made by hand or by a restore"
	healthy = "HEALTHY control-plane: all desired members of etcd answer; the control plane survives one more failure"
)

// TestTold: what was told of one picture, and what is told of the next one. Each is told by a leader that has nothing but the record.
func TestTold(t *testing.T) {
	for _, test := range []struct {
		name, was, is string
		steps         []Step
		want          []string
	}{
		{name: "nothing happened", was: "a:voter b:voter c:voter", is: "a:voter b:voter c:voter"},
		{
			name: "added, with the reason", was: "a:voter b:voter c:voter d:standby", is: "a:voter b:voter c:voter d:new",
			steps: []Step{{Verb: Promote, Server: "d", Reason: "no"}, {Verb: Add, Server: "d", Reason: "it is wanted"}},
			want:  []string{"MEMBER_ADDED d: it is wanted"},
		},
		{
			name: "added by a leader that ended", was: "a:voter b:voter c:voter d:standby", is: "a:voter b:voter c:voter d:new",
			want: []string{"MEMBER_ADDED d: " + unsaid},
		},
		{
			name: "promoted", was: "a:voter b:voter c:voter d:learner", is: "a:voter b:voter c:voter d:voter",
			steps: []Step{{Verb: Promote, Server: "d"}},
			want:  []string{"MEMBER_PROMOTED d: it has caught up"},
		},
		{
			name: "replaced", was: "a:voter b:voter c:voter d:learner", is: "a:voter b:voter c:voter d:voter",
			steps: []Step{{Verb: Promote, Server: "d", Replaces: "b"}},
			want:  []string{"MEMBER_REPLACED d: it takes the place of b"},
		},
		{
			name: "added and promoted, and nobody told", was: "a:voter b:voter c:voter d:standby", is: "a:voter b:voter c:voter d:voter",
			want: []string{"MEMBER_ADDED d: " + unsaid, "MEMBER_PROMOTED d: it has caught up"},
		},
		{
			name: "removed", was: "a:voter b:voter c:voter d:voter", is: "a:voter b:standby c:voter d:voter",
			steps: []Step{{Verb: Remove, Server: "b", Reason: "it is dead"}},
			want:  []string{"MEMBER_REMOVED b: it is dead"},
		},
		{
			name: "removed, and others added", was: "a:voter b:voter c:voter d:standby", is: "a:voter b:standby c:voter d:voter",
			want: []string{"MEMBER_REMOVED b: " + unsaid, "MEMBER_ADDED d: " + unsaid, "MEMBER_PROMOTED d: it has caught up"},
		},
		{
			name: "degraded", was: "a:voter b:voter c:voter", is: "a:voter b:voter c:cut",
			want: []string{"DEGRADED control-plane: 1 of 3 members of etcd do not answer; the control plane survives no further failure"},
		},
		{name: "degraded as before", was: "a:voter b:voter c:cut", is: "a:voter b:voter c:cut"},
		{name: "healthy again", was: "a:voter b:voter c:cut", is: "a:voter b:voter c:voter", want: []string{healthy}},
		{
			name: "degraded otherwise", was: "a:voter b:voter c:voter d:voter e:cut", is: "a:voter b:voter c:voter d:cut e:cut",
			want: []string{"DEGRADED control-plane: 2 of 5 members of etcd do not answer; the control plane survives no further failure"},
		},
		{
			name: "everything at once", was: "a:voter b:voter c:cut d:standby", is: "a:voter b:voter c:standby d:voter",
			want: []string{"MEMBER_REMOVED c: " + unsaid, "MEMBER_ADDED d: " + unsaid, "MEMBER_PROMOTED d: it has caught up", healthy},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			was, is := picture(t, test.was), picture(t, test.is)
			first, told := short(t, Told{}, was, nil)
			if len(first) != 1 {
				t.Errorf("the first events of all are %q", first)
			}
			got, told := short(t, told, is, test.steps)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("- want, + got\n%s", diff)
			}
			if again, _ := short(t, told, is, test.steps); again != nil {
				t.Errorf("the next leader tells again: %q", again)
			}
		})
	}
}

// TestTold_unconfirmed: a leader that looks for the first time does not know yet that a member hangs, which the leader before it told. It
// tells neither that all is well nor, when it knows, the same again.
func TestTold_unconfirmed(t *testing.T) {
	v := picture(t, "a:voter b:voter c:hung")
	first, told := short(t, Told{}, v, nil)
	if len(first) != 1 || !strings.HasPrefix(first[0], "DEGRADED") {
		t.Fatalf("it tells %q", first)
	}
	confirmed := v.Members[2].Etcd
	v.Members[2].Etcd.Seen = 1
	if plan := Make(v, Settings{}, now); plan.Degraded != "" {
		t.Fatalf("%q after one look", plan.Degraded)
	}
	got, told := short(t, told, v, nil)
	v.Members[2].Etcd = confirmed
	more, told := short(t, told, v, nil)
	if got = append(got, more...); got != nil {
		t.Errorf("another leader tells %q", got)
	}
	v.Members[2].Etcd.Good = true
	if got, _ := short(t, told, v, nil); !slices.Equal(got, []string{healthy}) {
		t.Errorf("then it tells %q", got)
	}
}

// TestTold_unnamed: a member that nobody knows the name of is told of once it is known, and then by that name, although the next
// leader does not know it.
func TestTold_unnamed(t *testing.T) {
	v := picture(t, "a:voter b:voter c:voter d:standby")
	_, told := short(t, Told{}, v, nil)
	v.Members = append(v.Members, Member{ID: 4, Name: "https://10.0.0.4:7072", Unnamed: true})
	got, told := short(t, told, v, nil)
	if got != nil {
		t.Errorf("without its name it tells %q", got)
	}
	v.Members[3].Name, v.Members[3].Unnamed = "d", false
	if got, told = short(t, told, v, nil); !slices.Equal(got, []string{"MEMBER_ADDED d: " + unsaid}) {
		t.Errorf("with its name it tells %q", got)
	}
	v.Members[3].Name, v.Members[3].Unnamed, v.Members[3].Voter = "https://10.0.0.4:7072", true, true
	v.Members[3].Answers, v.Members[3].Etcd = word(true, 0), word(true, 0)
	if got, _ = short(t, told, v, nil); !slices.Equal(got, []string{"MEMBER_PROMOTED d: it has caught up"}) {
		t.Errorf("then it tells %q", got)
	}
}

// TestTold_anew: a server that lost its member and has another one by now had two differences and more, whoever tells them.
func TestTold_anew(t *testing.T) {
	v := picture(t, "a:voter b:voter c:voter")
	_, told := short(t, Told{}, v, nil)
	v.Members[2].ID = 9
	want := []string{"MEMBER_REMOVED c: " + unsaid, "MEMBER_ADDED c: " + unsaid, "MEMBER_PROMOTED c: it has caught up"}
	if got, _ := short(t, told, v, nil); !slices.Equal(got, want) {
		t.Errorf("it tells %q, want %q", got, want)
	}
}

// The first event of all waits until it is known how the members are.
func TestTold_first(t *testing.T) {
	unconfirmed := picture(t, "a:voter b:voter c:voter")
	unconfirmed.Members[2].Etcd = Word{Since: now} // it was asked once, and did not answer
	if got, _ := short(t, Told{}, unconfirmed, nil); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got, _ := short(t, Told{}, picture(t, "a:voter b:voter c:voter"), nil); !slices.Equal(got, []string{healthy}) {
		t.Errorf("%q", got)
	}
	if got, _ := short(t, Told{}, picture(t, "a:voter b:voter c:dead"), nil); len(got) != 1 || !strings.HasPrefix(got[0], "DEGRADED control-plane: ") {
		t.Errorf("%q", got)
	}
}

// TestTold_firstIsLate: what was done before the first event could be written is told after it,
// with its cause.
func TestTold_firstIsLate(t *testing.T) {
	v := picture(t, "a:voter b:voter c:learner d:voter")
	steps := []Step{
		{Verb: Add, Server: "b", Reason: "it asked"},
		{Verb: Promote, Server: "b", Member: v.Members[1].ID},
		{Verb: Add, Server: "c", Reason: "it asked, too"},
		{Verb: Promote, Server: "d", Member: v.Members[3].ID},
	}
	got, told := short(t, Told{}, v, steps)
	want := []string{
		"MEMBER_ADDED b: it asked", "MEMBER_PROMOTED b: it has caught up",
		"MEMBER_ADDED c: it asked, too", "MEMBER_PROMOTED d: it has caught up",
	}
	if len(got) == 0 || !slices.Equal(got[1:], want) {
		t.Errorf("it tells %q, want how they are and then %q", got, want)
	}
	if got, _ = short(t, told, v, nil); got != nil {
		t.Errorf("then it tells %q once more", got)
	}
}

// TestTold_restored: that the control plane was restored is told once in each of its lives, before what follows from it, also where nothing was told before.
func TestTold_restored(t *testing.T) {
	before, v := Told{}, View{Generation: 7, Restored: "on a from its own data"}
	for _, test := range []struct {
		generation int64
		restored   string
		want       string
	}{
		{0, "", ""},
		{7, "on a from its own data", "the control plane was restored on a from its own data: later writes are lost"},
		{7, "", ""},
		{6, "by one of an earlier life", ""},
		{9, "", "the control plane was restored (generation 9): "},
	} {
		v.Generation, v.Restored = test.generation, test.restored
		events, after := tell(t, before, v, Plan{Degraded: "it is not well"}, nil)
		text := ""
		if len(events) > 0 && events[0].Code == CodeRestored {
			text = events[0].Message
		}
		if !strings.HasPrefix(text, test.want) || (text == "") != (test.want == "") {
			t.Errorf("generation %d: told %v, want %q first", test.generation, events, test.want)
		}
		before = after
	}
}
