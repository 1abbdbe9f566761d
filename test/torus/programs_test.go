package torus

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPrograms_refuses: a checkout never takes the place of the published module, and is looked for
// where the command was given.
func TestPrograms_refuses(t *testing.T) {
	script, err := filepath.Abs("../../hack/torus-programs")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "own/cmd/torusd"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"own"}, "give DIR and NAME"},
		{[]string{"own", "v0.1.2"}, "NAME v0.1.2 is that of the published module"},
		{[]string{"own", "../v0.1.2"}, "NAME '../v0.1.2' must"},
		{[]string{"other", "mine"}, filepath.Join(dir, "other") + " has no cmd/torusd"},
	} {
		c := exec.CommandContext(t.Context(), script, x.args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) || ended.ExitCode() != 2 || !strings.Contains(string(out), x.want) {
			t.Errorf("%v: %v: %s", x.args, err, out)
		}
	}
}
