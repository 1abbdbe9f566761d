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
	"blank.Wipe", "blank.Clear", "gate.Make", "gate.Undo", "gate.Done", "gate.Forget", "gate.Wipe",
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

// Swept fails the test for each place at which no agent was killed, but for those that elsewhere has with the reason: calls in a function
// ("file.go function callee"), all such calls in a file ("file.go callee"), or a file. It needs the full tier.
func Swept(t *testing.T, code *failpoint.Points, elsewhere map[string]string) {
	t.Helper()
	if testing.Short() {
		return // the sweeps tried some of the places
	}
	missing, all := code.Missing()
	used := map[string]bool{}
	for _, place := range missing {
		what := reasoned(code, place, elsewhere)
		if used[what] = true; what == "" {
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
	t.Logf("%d places in the code, at %d of which no agent was killed", all, len(missing))
}

// reasoned is the narrowest of the names that elsewhere has for a place.
func reasoned(code *failpoint.Points, place string, elsewhere map[string]string) string {
	at, callee, _ := strings.Cut(place, " ")
	file, _, _ := strings.Cut(at, ":")
	callee = strings.Trim(callee, "()")
	for _, what := range []string{file + " " + code.In(at) + " " + callee, file + " " + callee, file} {
		if elsewhere[what] != "" {
			return what
		}
	}
	return ""
}
