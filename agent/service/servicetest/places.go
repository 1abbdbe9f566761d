package servicetest

import (
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/internal/failpoint"
)

// effects are what a service agent does that lasts. What it does by package os alone lies where nobody looks before it is whole: what is not so has to go by
// package atomicfile, or no agent is ever killed there.
var effects = []string{
	"atomicfile.Write", "atomicfile.Remove", "atomicfile.RemoveAll", "atomicfile.Rename", "atomicfile.Symlink", "atomicfile.MkdirAll", "atomicfile.Guarded",
	"tool.Run", "tool.RunWith", "tool.Output", "tool.Do", "tool.Ask", "os.Remove", "os.RemoveAll", "os.Rename", "cmd.Run", "cmd.Output",
}

// Places lists the places in the code of a package at which an agent may be killed: its effects, and the calls that lead to one. more are effects that other
// packages have.
func Places(t *testing.T, dir string, more ...string) *failpoint.Points {
	t.Helper()
	p, err := failpoint.List(dir, append(more, effects...)...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Swept fails the test for each place at which no agent was killed, but for those in files, or by calls ("file.go call"), that elsewhere has with the reason.
func Swept(t *testing.T, code *failpoint.Points, elsewhere map[string]string) {
	t.Helper()
	missing, all := code.Missing()
	used := map[string]bool{}
	for _, place := range missing {
		file, rest, _ := strings.Cut(place, ":")
		_, callee, _ := strings.Cut(rest, " ")
		call := file + " " + strings.Trim(callee, "()")
		switch {
		case elsewhere[file] != "":
			used[file] = true
		case elsewhere[call] != "":
			used[call] = true
		default:
			t.Errorf("no agent was killed at %s", place)
		}
	}
	for what, why := range elsewhere {
		if used[what] {
			t.Logf("not swept here: %s: %s", what, why)
		} else {
			t.Errorf("%s is said not to be swept, and is", what)
		}
	}
	t.Logf("%d places in the code, at %d of which nobody was killed", all, len(missing))
}
