package cli

import (
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/cli/exit"
)

func TestApply_otherAPIVersion(t *testing.T) {
	t.Parallel()
	p := newHome(t, "versions")
	for _, version := range []string{"holdfast.io/v7", "nowhere.example/v1"} {
		text := strings.Replace(p.manifest("ceph: {mon: {count: 3}}"), "holdfast.io/v1alpha1", version, 1)
		p.must(t, exitRefused, text, []string{"plan", "-f", "-"}, "the server does not know apiVersion "+version+": use holdfast.io/v1alpha1")
	}
}

// TestPlan_unchanged: a plan of what is there already has no changes, and one that was carried out says where to see how far it is.
func TestPlan_unchanged(t *testing.T) {
	t.Parallel()
	p := newHome(t, "calm")
	const pool = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: a}\nspec: {cluster: none}\n"
	p.must(t, exitOK, pool, []string{"apply", "-f", "-"})
	out := p.must(t, exitOK, pool, []string{"plan", "-f", "-", "-o", "json"}, `"manifest"`)
	if strings.Contains(out, `"count"`) {
		t.Errorf("nothing would change:\n%s", out)
	}
	name := p.planned(t, pool)
	p.must(t, exitOK, "", []string{"apply", "--plan", name})
	p.must(t, exitRefused, "", []string{"apply", "--plan", name, "--wait"}, "was already carried out", "holdfast status --watch")
}

// TestGet_events: core Events are what the ClusterEvents tell.
func TestGet_events(t *testing.T) {
	t.Parallel()
	p := newHome(t, "told")
	p.must(t, exitOK, "", []string{"get", "events"}, "No resources found in told namespace")
	const event = "apiVersion: holdfast.io/v1alpha1\nkind: ClusterEvent\nmetadata: {name: c-0000000001}\n" +
		"cluster: c\nsequence: 1\ncode: AGENT_DOWN\nobject: host/h1\n" +
		"message: the agent is silent\ntime: '2026-01-02T03:04:05.000000Z'\n"
	p.must(t, exitOK, event, []string{"apply", "-f", "-"})
	p.must(t, exitOK, "", []string{"get", "events"}, "LAST SEEN", "Warning   AgentDown   Host/h1   the agent is silent")
}

// TestPlan_exitCode: a script sees whether there are changes, and gets the name of the plan.
func TestPlan_exitCode(t *testing.T) {
	t.Parallel()
	p := newHome(t, "scripted")
	const pool = "apiVersion: holdfast.io/v1alpha1\nkind: Pool\nmetadata: {name: a}\nspec: {cluster: none}\n"
	out := p.must(t, exit.Changes, pool, []string{"plan", "-f", "-", "--exit-code", "--dry-run"}, "pool/")
	if strings.Contains(out, "holdfast: ") {
		t.Errorf("changes are no fault:\n%s", out)
	}
	p.must(t, exitUsage, pool, []string{"plan", "-f", "-", "-o", "name", "--dry-run"}, "leave out one of the two")
	lines := strings.Fields(p.must(t, exit.Changes, pool, []string{"plan", "-f", "-", "--exit-code", "-o", "name"}))
	name := lines[len(lines)-1] // a slow leader is waited for in a line before, on standard error
	p.must(t, exitOK, "", []string{"apply", "--plan", name})
	p.must(t, exitOK, pool, []string{"plan", "-f", "-", "--exit-code"})
	p.must(t, exit.Changes, "", []string{"plan", "--delete", "pool/a", "--exit-code", "-o", "json"}, `"Delete"`)
}
