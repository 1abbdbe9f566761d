// Package memory is what the leader notes of Ceph's daemons for its next plans. A leader keeps
// nothing in mind, and leaders change. The notes are annotations of the Daemons (api.MemoryPrefix):
// they are written at once with the spec, and a change of them alone has no agent prepare anything
// anew.
//
// Earlier versions of Holdfast kept the same notes, in the same words, as parameters in the
// Daemon's spec. Such a parameter is read as long as there is no annotation of its name. To remove
// it would change the spec and so its generation: it goes when the spec changes for another reason
// (Settle).
package memory

import (
	"maps"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Name is what a note is called.
type Name string

// The notes.
const (
	// MonNewest is the name of a mon that was given last, even if that mon has left: none is given
	// twice.
	MonNewest Name = "monNewest"
	// MonAvoid are the hosts where a mon kept failing of late, each with the time until which none
	// is made there.
	MonAvoid Name = "monAvoid"
	// Drain is noted while an OSD or a mon leaves for good: Begun, and of an OSD that is empty
	// Empty.
	Drain Name = "drain"
	// CrushWeight is the weight in CRUSH that an OSD had before it was told to leave, and WasOut is
	// noted if it was out already. The OSD gets both back if it stays after all.
	CrushWeight Name = "crushWeight"
	WasOut      Name = "wasOut"
	// Flaps are the times that an OSD went down and came back of late, and HeldSince is since when
	// it is held back for that.
	Flaps     Name = "flaps"
	HeldSince Name = "heldSince"
	// LostSince is since when no StorageNode means the host of the daemon any more.
	LostSince Name = "lostSince"
)

// The values of Drain. Replace is of an OSD that failed and whose number another one gets: its
// agent has to know that, too, so it stands in the parameters of the spec, now as before.
const (
	Begun   = "true"
	Empty   = "empty"
	Replace = "replace"
)

var names = []Name{MonNewest, MonAvoid, Drain, CrushWeight, WasOut, Flaps, HeldSince, LostSince}

// Of is what is noted of a daemon under a name; empty for nothing.
func Of(d *api.Daemon, name Name) string {
	if value, known := d.Memory(string(name)); known {
		return value
	}
	return d.Spec.Parameters[string(name)]
}

// Note notes a value in a daemon that is wanted; nothing where the value is empty.
func Note(d *api.Daemon, name Name, value string) {
	if value == "" {
		d.Forget(string(name))
		return
	}
	d.Remember(string(name), value)
}

// Settle has a daemon that is wanted keep the notes in the spec of the one that is there, if its
// spec is otherwise the same: it is not written for them. What is noted now stands in the
// annotations, also that nothing is noted any more. have is nil for a daemon that is new.
func Settle(want, have *api.Daemon) {
	if have == nil {
		return
	}
	old := inSpec(have)
	if len(old) == 0 {
		return
	}
	kept := want.Spec
	kept.Parameters = maps.Clone(old)
	maps.Copy(kept.Parameters, want.Spec.Parameters)
	if !kept.Equal(&have.Spec) {
		return // the notes in it go with this change
	}
	want.Spec = kept
	for name, value := range old {
		switch now, known := want.Memory(name); {
		case !known:
			want.Remember(name, "")
		case now == value:
			want.Forget(name)
		}
	}
}

// Move takes the notes out of the spec of a daemon whose spec is changed.
func Move(d *api.Daemon) {
	for name, value := range inSpec(d) {
		if _, known := d.Memory(name); !known {
			d.Remember(name, value)
		}
		delete(d.Spec.Parameters, name)
	}
	for _, name := range names {
		if value, known := d.Memory(string(name)); known && value == "" {
			d.Forget(string(name))
		}
	}
}

// inSpec are the notes that an earlier version made in the spec.
func inSpec(d *api.Daemon) map[string]string {
	var old map[string]string
	for _, name := range names {
		value, is := d.Spec.Parameters[string(name)]
		if !is || name == Drain && value == Replace {
			continue
		}
		if old == nil {
			old = map[string]string{}
		}
		old[string(name)] = value
	}
	return old
}
