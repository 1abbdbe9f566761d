package conformance

import (
	"maps"
	"slices"
)

// A cluster that is well can do without any one of its daemons for a moment. While the storage system does not answer nobody can say that of all
// of them.
func judgesRestarts(b *bench) {
	b.online("undisturbed")
	unjudged := 0
	for _, name := range slices.Sorted(maps.Keys(b.Daemons)) {
		v := b.view()
		v.Restart = name
		if against := b.plan(v).AgainstRestart(name); len(against) == 0 {
			unjudged++
		}
		if against := b.plan(b.observe(v)).AgainstRestart(name); len(against) > 0 {
			b.Errorf("in a cluster that is well daemon %s cannot be started again: %+v", name, against)
		}
	}
	if unjudged == len(b.Daemons) {
		b.Errorf("with no answer nothing is against the restart of any daemon")
	}
}
