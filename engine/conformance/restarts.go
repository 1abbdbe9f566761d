package conformance

import (
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A cluster that is well can do without any one of its daemons for a moment. While the storage system does not answer nobody can say that of all
// of them.
func judgesRestarts(b *bench) {
	b.online("undisturbed")
	unjudged := 0
	for _, name := range slices.Sorted(maps.Keys(b.Daemons)) {
		v := b.view()
		v.Restart = name
		if against := againstRestart(b.plan(v)); len(against) == 0 {
			unjudged++
		}
		if against := againstRestart(b.plan(b.observe(v))); len(against) > 0 {
			b.Errorf("in a cluster that is well daemon %s cannot be started again: %q", name, against)
		}
	}
	if unjudged == len(b.Daemons) {
		b.Errorf("with no answer nothing is against the restart of any daemon")
	}
}

// againstRestart is what a plan has against the restart that its view asks for.
func againstRestart(p *engine.Plan) (against []string) {
	for _, d := range p.Decisions {
		if strings.HasPrefix(d.Object, engine.RestartObject("")) && d.Verdict != api.VerdictDo && d.Verdict != api.VerdictSkip {
			against = append(against, d.Message)
		}
	}
	return against
}
