package ceph

import (
	"maps"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// failures are the reasons of commands that failed for another one than that they did, by what is said
// of them then. Neither Ceph nor an agent has more than words for it, and nothing else reads them.
var failures = []struct {
	words  string
	reason api.Reason
}{
	{"capability parse failed", api.ReasonInvalidSpec}, // the mons, of 'auth caps'
	{"was not made here", api.ReasonConflict},          // the agent of a gateway, of a user
}

// failure says why a command failed.
func failure(f engine.CommandFailure) engine.Objection {
	for _, x := range failures {
		if strings.Contains(f.Message, x.words) {
			return engine.Wait(x.reason, "%s", f.Message)
		}
	}
	return engine.Wait(api.ReasonCommandFailed, "%s", f.Message)
}

// failureOf says why the last command of a line failed; none where none did.
func (p *planner) failureOf(line string) (none engine.Objection) {
	for _, f := range p.view.Failures {
		if f.Command.Line == line {
			return failure(f)
		}
	}
	return none
}

// clientFailure says why the last command of a Client failed. What Ceph said of capabilities that were
// mended since is no word on it.
func (p *planner) clientFailure(c *api.Client) (none engine.Objection) {
	for _, f := range p.view.Failures {
		mended := f.Command.Verb == verbAuthCaps && !maps.Equal(f.Command.Params, clientCaps(c))
		if f.Command.Line == engine.ResourceObject(c) && !mended {
			return failure(f)
		}
	}
	return none
}
