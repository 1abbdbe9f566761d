package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/cli/doctor"
)

// TestDoctor_alone: on a machine without a server and a way to one, it says so, checks what it can, and fails.
func TestDoctor_alone(t *testing.T) {
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOLDFAST_KUBECONFIG", "")
	var out, problems bytes.Buffer
	dir := t.TempDir()
	if code := run(t.Context(), []string{"doctor", "--data-dir", dir}, streams{out: &out, err: &problems}); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for _, want := range []string{"FAIL  api           the API cannot be reached", "→ look whether the servers run", "SKIP  quorum", "OK    disk"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	out.Reset()
	run(t.Context(), []string{"doctor", "--data-dir", dir, "-o", "json"}, streams{out: &out, err: &problems})
	var findings []doctor.Finding
	if err := json.Unmarshal(out.Bytes(), &findings); err != nil || len(findings) < 10 || findings[0].Level != doctor.Fail {
		t.Errorf("got %v, %v", findings, err)
	}
	if code := run(t.Context(), []string{"doctor", "-o", "yaml"}, streams{out: &out, err: &problems}); code != exitUsage {
		t.Errorf("exit code %d for an unknown output", code)
	}
}
