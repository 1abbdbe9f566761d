package torus

import (
	"path/filepath"
	"strings"
	"testing"
)

// Where a program is missing, the message says what is wrong with the directory that was given for
// it.
func TestFind_saysWhatIsWrongWithTheDirectory(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	unseen, empty := filepath.Join(t.TempDir(), "unseen"), t.TempDir()
	for dir, want := range map[string]string{
		"":     "torusd is not installed on this host: " + torusHint,
		unseen: "does not see the directory " + unseen + " of TORUS_BIN",
		empty:  "the directory " + empty + " of TORUS_BIN has no such program",
	} {
		t.Setenv(BinVariable, dir)
		if path, err := find("torusd", torusHint); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("TORUS_BIN=%s: %s, %v: want %q", dir, path, err, want)
		}
	}
}
