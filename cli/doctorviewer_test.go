package cli

import (
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/control/access"
)

// TestDoctor_viewer: who may read all but Secrets is told of all but the tokens.
func TestDoctor_viewer(t *testing.T) {
	t.Parallel()
	viewer := newMember(t, "default", "holdfast:looker", access.GroupViewers)
	_, out := viewer.do("", "doctor", "--data-dir", t.TempDir())
	for _, text := range []string{"OK    api ", "SKIP  tokens        you may not read the tokens", " agents ", " quorum "} {
		if !strings.Contains(out, text) {
			t.Errorf("it does not say %q:\n%s", text, out)
		}
	}
	if strings.Contains(out, "cannot be reached") || strings.Contains(out, "this needs the API") {
		t.Errorf("the API answers:\n%s", out)
	}
}
