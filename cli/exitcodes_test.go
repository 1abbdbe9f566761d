package cli

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/control/access"
)

// TestExitCodes_noSuchCluster: a cluster that there is not is refused by all that takes its name.
func TestExitCodes_noSuchCluster(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "default", "holdfast:admin")
	for _, args := range []string{"status nope", "orchestrate nope", "why nope", "get storagecluster nope", "ceph shell --cluster nope", "ceph recover-mons nope"} {
		p.must(t, exitRefused, "", strings.Fields(args), "nope")
	}
}

// TestExitCodes_noCluster: to ask for the status where nothing was declared yet is no fault, and what needs a cluster is refused.
func TestExitCodes_noCluster(t *testing.T) {
	t.Parallel()
	p := newPerson(t, "empty", "holdfast:admin")
	const says = "namespace empty has no storage cluster: create one with 'holdfast apply -f FILE'"
	p.must(t, exitOK, "", []string{"status", "-n", "empty"}, says)
	p.must(t, exitRefused, "", []string{"ceph", "shell", "-n", "empty"}, says)
}

// TestExitCodes_backupForbidden: who may take no backup is told so in a sentence.
func TestExitCodes_backupForbidden(t *testing.T) {
	t.Parallel()
	viewer := newMember(t, "default", "holdfast:looker", access.GroupViewers)
	out := viewer.must(t, exitRefused, "", []string{"backup", filepath.Join(t.TempDir(), "b")}, "forbidden")
	if strings.Contains(out, "{") {
		t.Errorf("raw JSON: %s", out)
	}
}
