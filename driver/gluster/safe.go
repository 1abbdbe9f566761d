package gluster

import (
	"fmt"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The rules of what a set of bricks can do without. They are strict: what they allow leaves all of a set's data where it can be
// read, and enough bricks for clients to write.

// needed is how many bricks of a set have to serve for clients to write: more than half of the copies, or as many fragments as
// make the data.
func needed(v *glusterd.Volume) int {
	if v.Disperse > 0 {
		return v.Disperse - v.Redundancy
	}
	return max(1, v.Replica)/2 + 1
}

// unsound says what of a started volume is not as it should be; nothing when all of it serves and all copies are alike.
func unsound(v *glusterd.Volume) string {
	if v.Unknown != "" {
		return "state incomplete: " + v.Unknown
	}
	pending := int64(0)
	for i := range v.Bricks {
		switch b := &v.Bricks[i]; {
		case b.State != glusterd.BrickOnline:
			return words.Few(notOnline(v.Bricks))
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

// without says why a set cannot do without one of its bricks: for good, while another one is filled in its place, or while its
// node is stopped. It returns nothing when it can, and passes where it may be able to later by itself. away are bricks that do not
// count, because their node is told to stop.
func without(v *glusterd.Volume, set []glusterd.Brick, leaves int, away func(*glusterd.Brick) bool) engine.Objection {
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
	if len(set)-1 < needed(v) {
		return engine.Refusal(api.ReasonNotOkToStop, "%d of the %d bricks of a set have to serve for clients to write", needed(v), len(set))
	}
	if set[leaves].State == glusterd.BrickOnline {
		return engine.Wait(api.ReasonDataNotClean, "%s", notClean(set))
	}
	return engine.Refusal(api.ReasonWouldLoseData, "%s", lastGood(set, leaves))
}

// notClean says which brick of a set others lack something of.
func notClean(set []glusterd.Brick) string {
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

// lastGood says why a brick that does not serve could have the last good copy of something. All that is left of its set accuse
// it of what it missed, and of nothing else: they list the same. One that lists more accuses another of them, which missed
// something that perhaps only the brick has that is down.
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
