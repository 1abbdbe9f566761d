// Package drift compares what a GlusterFS pool has with what Holdfast made there: who used 'gluster' by hand is told what was found, before
// anything is put back. It is pure.
package drift

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Sum tells options that were all set from others.
func Sum(options map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		fmt.Fprintf(h, "%s=%s\n", name, options[name])
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// Options says what was found of options that are to be set again.
func Options(set, have map[string]string) string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if value, ok := have[name]; ok {
			found = append(found, fmt.Sprintf("%s was set to %s", name, value))
		} else {
			found = append(found, name+" was reset")
		}
	}
	return words.Few(found) + " outside Holdfast: set back as declared"
}

// Brick is a brick that a volume of the pool has now.
type Brick struct {
	// Node and Path are where it is; Names are all that a status may call its node.
	Path  string
	Names []string
	// Own says that it has a path that Holdfast gives to bricks of the volume.
	Own bool
}

func (b *Brick) is(was *api.VolumeBrick) bool { return was.Path == b.Path && slices.Contains(b.Names, was.Node) }

// Bricks says of each brick whether it is a member, or was added outside Holdfast, and which bricks were removed, by what was recorded
// the last time. accepted says that the spec was changed since: somebody looked at what was added.
func Bricks(recorded []api.VolumeBrick, now []Brick, accepted bool) (are []api.BrickMembership, removed []api.VolumeBrick) {
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
		}
		members++
		if !slices.ContainsFunc(now, func(b Brick) bool { return b.is(was) }) {
			gone := *was
			gone.Membership, gone.Online, gone.Message = api.BrickRemoved, false, "it was removed from the volume outside Holdfast"
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
		case at >= 0 && recorded[at].Membership == api.BrickAdded && !accepted:
			are = append(are, api.BrickAdded)
		case at < 0 && members > 0 && planned == 0 && !b.Own:
			are = append(are, api.BrickAdded)
		default:
			are = append(are, api.BrickMember)
		}
	}
	return are, removed
}

// ID is the identity of a loss of bricks, for which a user gives a word.
func ID(removed []api.VolumeBrick) string {
	if len(removed) == 0 {
		return ""
	}
	all := map[string]string{}
	for _, b := range removed {
		all[b.Node+":"+b.Path] = ""
	}
	return "bricks-" + Sum(all)
}

// Names are bricks for people.
func Names(bricks []api.VolumeBrick) string {
	var names []string
	for _, b := range bricks {
		names = append(names, b.Node+":"+b.Path)
	}
	return words.Few(names)
}

// Removed says that bricks are gone, and what a user can do.
func Removed(volume string, removed []api.VolumeBrick) (why, next string) {
	why = fmt.Sprintf("removed from volume %s outside Holdfast: %s", volume, Names(removed))
	next = fmt.Sprintf("copy what you need from there, or put them back with 'gluster volume add-brick'; Holdfast changes no bricks of the "+
		"volume until then, or until 'holdfast recreate volume %s --lost %s' accepts it", volume, ID(removed))
	return why, next
}

// Own says whether a path is one that Holdfast gives to bricks of a volume in a store.
func Own(volume, store, path string) bool {
	name, found := strings.CutPrefix(path, store+"/"+volume+".")
	return store != "" && found && name != "" && strings.Trim(name, "0123456789") == ""
}
