// Package situations is the table of situations in which a person asks Holdfast what is wrong: what was done, what is
// asked, and the cause and the next step that the answer has. Tests stage them on the real storage systems or as
// scenarios; the page docs/reference/situations.md is made from it.
package situations

import (
	"fmt"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Situation is one row of the table.
type Situation struct {
	// Name is unique, such as "osd-out".
	Name string
	// About is its kind: "daemon", "host", "server", "pool", "placement group".
	About string
	// Cause says in a sentence what happened, such as "A user marked an OSD out with 'ceph osd out'."
	Cause string
	// Ask is the command of a person, with an example's name: "holdfast why osd.2".
	Ask string
	// Reason is the one of the answer ('holdfast why -o json').
	Reason api.Reason
	// Next is what the next step contains: the command that mends it, with the example's name as in Ask.
	Next string
	// Staged is the test that stages it on the real system, such as "e2e TestIdleDaemons"; empty where only
	// Scenario has it.
	Staged string
	// Scenario is the test that shows it as a scenario without the real system, such as "cli/why TestExplain_out".
	Scenario string
}

// All are all situations, in the order of the page.
func All() []Situation { return slices.Concat(daemons, storage, gluster, hosts) }

// Get is the situation of a name. It panics where there is none, which is a mistake of the test that asks.
func Get(name string) Situation {
	for _, s := range All() {
		if s.Name == name {
			return s
		}
	}
	panic(fmt.Sprintf("no situation %q in the table", name))
}
