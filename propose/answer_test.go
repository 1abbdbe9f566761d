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
	const daemons, room = 20000, 1<<20 + 1<<19 // etcd's bound of a request
	p := &Proposal{Basis: plans.Basis{}, Report: plans.Report{Clusters: []string{"default/c"}}}
	for i := range daemons {
		name := fmt.Sprintf("daemon/c-osd-%d", i)
		p.Report.Changes = append(p.Report.Changes, plans.Change{
			Cluster: "default/c", Step: 1, Verb: plans.VerbRemove, Object: name, Host: fmt.Sprintf("host-%d", i/10),
			Reason: strings.Repeat("because ", 10), Risk: api.RiskData,
		})
		p.Basis[name] = plans.Facts{UID: "1", Fields: map[string]string{"spec": strings.Repeat("x", 100)}}
	}
	a := p.Answer()
	if n := size(a); n > maxAnswer || n+MaxManifest > room {
		t.Errorf("the answer has %d bytes", n)
	}
	if a.Count != daemons || a.DestroysCount != daemons || a.Risk != api.RiskData || len(a.Destroys) == 0 || len(a.Changes) == 0 {
		t.Errorf("of %d changes it tells of %d, of which %d destroy data", daemons, a.Count, a.DestroysCount)
	}
	if !strings.Contains(a.Report, "and more than is shown here") && len(a.Report) > maxReport/4 {
		t.Errorf("the report has %d bytes and no mark", len(a.Report))
	}
	digest := a.Digest
	p.Report.Changes[daemons-1].Host = "elsewhere"
	if b := p.Answer(); b.Digest == digest {
		t.Error("another last change has the same digest")
	}
}

// TestAnswer_notes: each note has its reason, so that nobody has to read its words.
func TestAnswer_notes(t *testing.T) {
	p := &Proposal{
		Basis: plans.Basis{}, Refused: []string{"r"}, Foreseen: []string{"f"}, Early: []string{"e"}, Hostless: []string{"h"},
		Astray: []string{"a"}, Silent: map[string]string{"storagecluster/default/c": "s"},
	}
	got := map[api.PlanNoteReason]string{}
	for _, n := range p.Answer().Notes {
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
