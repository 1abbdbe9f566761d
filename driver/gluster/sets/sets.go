// Package sets says what a set of bricks can do without, and what is not well of one. It is pure.
package sets

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// maxSplit bounds the entries that are named; a bound of the API's schema.
const maxSplit = 32

// The rules of what a set of bricks can do without. They are strict: what they allow leaves all of
// a set's data where it can be read, and enough bricks for clients to write.

// Needed is how many bricks of a set have to serve for clients to write: more than half of the
// copies, or as many fragments as make the data.
func Needed(v *glusterd.Volume) int {
	if v.Disperse > 0 {
		return v.Disperse - v.Redundancy
	}
	return max(1, v.Replica)/2 + 1
}

// Unsound says what of a started volume is not as it should be; nothing when all of it serves and
// all copies are alike.
func Unsound(v *glusterd.Volume) string {
	if v.Unknown != "" {
		return "state incomplete: " + v.Unknown
	}
	pending := int64(0)
	for i := range v.Bricks {
		switch b := &v.Bricks[i]; {
		case b.State != glusterd.BrickOnline:
			return words.Few(NotOnline(v.Bricks))
		case v.SetSize() == 1:
		case b.Heal == nil:
			return fmt.Sprintf("brick %s does not answer, although its process runs: it may be full, or hang", b.Name())
		default:
			pending = max(pending, b.Heal.Pending+b.Heal.SplitBrain)
		}
	}
	if pending > 0 {
		return fmt.Sprintf("healing: %d entries differ between copies", pending)
	}
	return ""
}

// Without says why a set cannot do without one of its bricks: for good, while another one is filled
// in its place, or while its node is stopped. It returns nothing when it can, and passes where it
// may be able to later by itself. away are bricks that do not count, because their node is told to
// stop.
func Without(v *glusterd.Volume, set []glusterd.Brick, leaves int, away func(*glusterd.Brick) bool) engine.Objection {
	if v.Unknown != "" {
		return engine.Wait(api.ReasonNotAnswering, "not all of its state is known: %s", v.Unknown)
	}
	if len(set) == 1 {
		return engine.Refusal(api.ReasonWouldLoseData, "brick %s has the only copy of its files", set[leaves].Name())
	}
	for i := range set {
		if b := &set[i]; i != leaves && (b.State != glusterd.BrickOnline || away(b)) {
			return engine.Refusal(api.ReasonNotOkToStop, "brick %s of the same set does not serve", b.Name())
		}
	}
	if len(set)-1 < Needed(v) {
		return engine.Refusal(api.ReasonNotOkToStop, "%d of the %d bricks of a set have to serve for clients to write",
			Needed(v), len(set))
	}
	if set[leaves].State == glusterd.BrickOnline {
		return engine.Wait(api.ReasonDataNotClean, "%s", NotClean(set))
	}
	return engine.Refusal(api.ReasonWouldLoseData, "%s", lastGood(set, leaves))
}

// NotClean says which brick of a set others lack something of.
func NotClean(set []glusterd.Brick) string {
	for i := range set {
		switch b := &set[i]; {
		case b.Heal == nil:
			return fmt.Sprintf("it is not known whether all copies have what brick %s has", b.Name())
		case b.Heal.SplitBrain > 0:
			return fmt.Sprintf("brick %s has files in split-brain, which have to be decided first", b.Name())
		case b.Heal.Pending > 0:
			return fmt.Sprintf("%d entries of brick %s differ between copies: a heal is in progress", b.Heal.Pending, b.Name())
		}
	}
	return ""
}

// lastGood says why a brick that does not serve could have the last good copy of something. All
// that is left of its set accuse it of what it missed, and of nothing else: they list the same. One
// that lists more accuses another of them, which missed something that perhaps only the brick has
// that is down.
func lastGood(set []glusterd.Brick, down int) string {
	listed := int64(-1)
	for i := range set {
		b := &set[i]
		switch {
		case i == down:
		case b.Heal == nil:
			return fmt.Sprintf("brick %s is down, and it is not known what brick %s has", set[down].Name(), b.Name())
		case b.Heal.SplitBrain > 0:
			return fmt.Sprintf("brick %s has files in split-brain, which have to be decided first", b.Name())
		case listed >= 0 && listed != b.Heal.Pending:
			return fmt.Sprintf("brick %s is down and may have the last good copy of some files: bring it back", set[down].Name())
		default:
			listed = b.Heal.Pending
		}
	}
	return ""
}

// SplitFiles are the entries in split-brain. A brick may know only the gfid of one that another
// brick knows by its path: gfids are told where paths do not make up all of them.
func SplitFiles(v *glusterd.Volume) (files []string) {
	for _, set := range v.Sets() {
		var paths, gfids []string
		most := 0
		for _, b := range set {
			if b.Heal == nil {
				continue
			}
			most = max(most, int(b.Heal.SplitBrain))
			for _, f := range b.Heal.Files {
				if strings.HasPrefix(f, "<") {
					gfids = append(gfids, f)
				} else {
					paths = append(paths, f)
				}
			}
		}
		slices.Sort(paths)
		if paths = slices.Compact(paths); len(paths) < most {
			slices.Sort(gfids)
			paths = append(paths, slices.Compact(gfids)...)
		}
		files = append(files, paths...)
	}
	return files[:min(len(files), maxSplit)]
}

// Online counts the bricks of a set that serve.
func Online(set []glusterd.Brick) (n int) {
	for i := range set {
		if set[i].State == glusterd.BrickOnline {
			n++
		}
	}
	return n
}

// NotOnline names those that do not.
func NotOnline(set []glusterd.Brick) (names []string) {
	states := map[glusterd.BrickState]string{
		glusterd.BrickOffline: " is down", glusterd.BrickUnknown: " is unknown",
	}
	for i := range set {
		if set[i].State != glusterd.BrickOnline {
			names = append(names, set[i].Name()+states[set[i].State])
		}
	}
	return names
}

// Older compares releases such as 10.3 and 9.6.
func Older(a, b string) bool {
	var x, y [2]int
	// What is no number stays 0; then the texts are the same for this purpose.
	_, _ = fmt.Sscanf(a, "%d.%d", &x[0], &x[1])
	_, _ = fmt.Sscanf(b, "%d.%d", &y[0], &y[1])
	return slices.Compare(x[:], y[:]) < 0
}
