package propose

import (
	"fmt"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/propose/plans"
)

// TestAnswer_large: the answer about a fleet of any size has room in a Plan, beside the largest manifest, and still tells
// of everything by its digest and its numbers.
func TestAnswer_large(t *testing.T) {
	const daemons = 20000
	p := &Proposal{Basis: plans.Basis{}, Report: plans.Report{Clusters: []string{"default/c"}}}
	for i := range daemons {
		name := fmt.Sprintf("daemon/c-osd-%d", i)
		p.Report.Changes = append(p.Report.Changes, plans.Change{
			Cluster: "default/c", Step: 1, Verb: plans.VerbRemove, Object: name, Host: fmt.Sprintf("host-%d", i/10),
			Reason: strings.Repeat("because ", 10), Risk: api.RiskData,
		})
		p.Basis[name] = plans.Facts{UID: "1", Fields: map[string]string{"spec": strings.Repeat("x", 100)}}
	}
	a := p.Answer(Room)
	for _, room := range []int{Room, Room / 2, Room - MaxManifest - MaxManifest/10} {
		a = p.Answer(room)
		if n := size(a); n > room {
			t.Errorf("the answer has %d bytes, and has room for %d", n, room)
		}
		if a.Count != daemons || a.DestroysCount != daemons || a.Risk != api.RiskData || len(a.Destroys) == 0 || len(a.Changes) == 0 {
			t.Errorf("of %d changes it tells of %d, of which %d destroy data", daemons, a.Count, a.DestroysCount)
		}
		nobody := func(string) plans.Witness { return plans.Witness{} }
		if moved := plans.BasisOf(p.Answer(Room)).Moved(a, nobody); len(moved) > 0 {
			t.Errorf("nothing moved, and with another room %q", moved)
		}
	}
	digest := a.Digest
	p.Report.Changes[daemons-1].Host = "elsewhere"
	if b := p.Answer(Room); b.Digest == digest {
		t.Error("another last change has the same digest")
	}
}

// TestCut: a long report ends at a line, says that it is cut, and keeps its last line, which sums it up.
func TestCut(t *testing.T) {
	text := strings.Repeat("  a line\n", 100) + "100 objects\n"
	if got := cut(text, len(text)); got != text {
		t.Errorf("it is cut without need:\n%s", got)
	}
	if got, want := cut(text, 25), "  a line\n  a line\n  … and more\n100 objects\n"; got != want {
		t.Errorf("got\n%s", got)
	}
}

// TestAnswer_notes: each note has its reason, so that nobody has to read its words.
func TestAnswer_notes(t *testing.T) {
	p := &Proposal{
		Basis: plans.Basis{}, Refused: []string{"r"}, Foreseen: []string{"f"}, Early: []string{"e"}, Hostless: []string{"h"},
		Astray: []string{"a"}, Silent: map[string]string{"storagecluster/default/c": "s"},
	}
	got := map[api.PlanNoteReason]string{}
	for _, n := range p.Answer(Room).Notes {
		got[n.Reason] = n.Object + " " + n.Message
	}
	want := map[api.PlanNoteReason]string{
		api.NoteRefused: " r", api.NoteActionRefused: " f", api.NoteHostAwaited: " e", api.NoteNoHost: " h", api.NoteNoCluster: " a",
		api.NoteNoAnswer: "storagecluster/default/c s",
	}
	for reason, text := range want {
		if got[reason] != text || len(got) != len(want) {
			t.Errorf("%s: %q, want %q", reason, got[reason], text)
		}
	}
}
