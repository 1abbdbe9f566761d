// Package drift compares what a GlusterFS pool has with what Holdfast made there: who used
// 'gluster' by hand is told what was found, before anything is put back. It is pure.
package drift

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// longest is how long a value may be to be written down as it is.
const longest = 256

// note is an option that was seen set, for a status.
func note(name, value string) string {
	if len(value) > longest {
		value = sum(value)
	}
	return name + "=" + value
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:8])
}

// ofUsers begins the options that mean nothing to GlusterFS. It refuses to reset one of them
// (10.3): they stay.
const ofUsers = "user."

// Options says which options are to be set and reset, by those that were noted in a status, and what is noted next.
// byHand says what was found of those that had the wanted value, and have another one now.
func Options(noted []string, want, have map[string]string) (
	set, reset map[string]string, byHand string, notes []string,
) {
	set, reset = map[string]string{}, map[string]string{}
	var found []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		value, ok := have[name]
		had := slices.Contains(noted, note(name, want[name]))
		switch {
		case ok && value == want[name]:
			notes = append(notes, note(name, value))
			continue
		case had && ok:
			found = append(found, fmt.Sprintf("%s was set to %s", name, value))
		case had:
			found = append(found, name+" was reset")
		}
		set[name] = want[name]
		notes = append(notes, map[bool]string{true: note(name, want[name]), false: name}[had])
	}
	for _, old := range noted {
		name, _, _ := strings.Cut(old, "=")
		if strings.HasPrefix(name, ofUsers) {
			continue // noted anew where it is wanted
		}
		if _, wanted := want[name]; !wanted && have[name] != "" {
			reset[name], notes = "", append(notes, old)
		}
	}
	slices.Sort(notes)
	if len(found) > 0 {
		byHand = words.Few(found) + " outside Holdfast: set back as declared"
	}
	return set, reset, byHand, notes
}

// How a brick belongs to its volume, as Membership of a VolumeBrick says.
const (
	Member = "Member"
	// Added: somebody added it outside Holdfast. It is a Member once the spec of the Volume was changed.
	Added = "Added"
	// Removed says that somebody removed it outside Holdfast, and that no user has accepted that
	// yet. Holdfast leaves it alone, as one that is Left: what is in it may be nowhere else.
	Removed = "Removed"
	// Left says that a user has accepted it.
	Left = "Left"
)

// Brick is a brick that a volume of the pool has now.
type Brick struct {
	// Node and Path are where it is; Names are all that a status may call its node.
	Path  string
	Names []string
	// Own says that it has a path that Holdfast gives to bricks of the volume.
	Own bool
}

func (b *Brick) is(was *api.VolumeBrick) bool {
	return was.Path == b.Path && slices.Contains(b.Names, was.Node)
}

// Bricks says of each brick whether it is a member, or was added outside Holdfast, and which bricks
// were removed, by what was recorded the last time. accepted says that the spec was changed since:
// somebody looked at what was added.
func Bricks(recorded []api.VolumeBrick, now []Brick, accepted bool) (are []string, removed []api.VolumeBrick) {
	members, planned := 0, 0
	replaced := 0 // by Holdfast, which may not have seen that yet
	for i := range now {
		if now[i].Own && !slices.ContainsFunc(recorded, func(was api.VolumeBrick) bool { return now[i].is(&was) }) {
			replaced++
		}
	}
	for i := range recorded {
		was := &recorded[i]
		if was.Membership == "" {
			planned++
			continue
		} else if was.Membership == Left {
			continue
		}
		members++
		if !slices.ContainsFunc(now, func(b Brick) bool { return b.is(was) }) {
			gone := *was
			gone.Membership, gone.Online = Removed, false
			gone.Message = "it was removed from the volume outside Holdfast"
			removed = append(removed, gone)
		}
	}
	if len(removed) <= replaced {
		removed = nil
	}
	for i := range now {
		b := &now[i]
		at := slices.IndexFunc(recorded, func(was api.VolumeBrick) bool { return b.is(&was) })
		switch {
		case at >= 0 && recorded[at].Membership == Added && !accepted:
			are = append(are, Added)
		case at < 0 && members > 0 && planned == 0 && !b.Own:
			are = append(are, Added)
		default:
			are = append(are, Member)
		}
	}
	return are, removed
}

// ID is the identity of a loss of bricks, for which a user gives a word.
func ID(removed []api.VolumeBrick) string {
	if len(removed) == 0 {
		return ""
	}
	var all []string
	for _, b := range removed {
		all = append(all, b.Node+":"+b.Path)
	}
	slices.Sort(all)
	return "bricks-" + sum(strings.Join(all, "\n"))
}

// Names are bricks for people.
func Names(bricks []api.VolumeBrick) string {
	var names []string
	for _, b := range bricks {
		names = append(names, b.Node+":"+b.Path)
	}
	return words.Few(names)
}

// RemovedText says that bricks are gone, and what a user can do.
func RemovedText(volume string, removed []api.VolumeBrick) (why, next string) {
	why = fmt.Sprintf("removed from volume %s outside Holdfast: %s", volume, Names(removed))
	next = fmt.Sprintf("copy what you need from there, or put them back with 'gluster volume add-brick'; Holdfast "+
		"changes no bricks of the volume until then, or until 'holdfast recreate volume %s --lost %s' accepts it",
		volume, ID(removed))
	return why, next
}

// Own says whether a path is one that Holdfast gives to bricks of a volume in a store.
func Own(volume, store, path string) bool {
	name, found := strings.CutPrefix(path, store+"/"+volume+".")
	return store != "" && found && name != "" && strings.Trim(name, "0123456789") == ""
}

// allowAll is who may mount a volume without a word on it: everybody.
const allowAll = "*"

// Narrows says whether a wanted list of those who may mount a volume, where there is one, takes that
// from somebody who may now.
func Narrows(have, want string) bool {
	if want == "" || want == allowAll {
		return false
	}
	may := strings.Split(want, ",")
	return slices.ContainsFunc(strings.Split(cmp.Or(have, allowAll), ","), func(who string) bool {
		return !slices.Contains(may, strings.TrimSpace(who))
	})
}
