// Package memory is what the leader records of Ceph's daemons for its next plans. A leader keeps
// nothing in mind, and leaders change. The entries are annotations of the Daemons (package
// leadermemory): they are written at once with the spec, and a change of them alone has no agent
// prepare anything anew.
//
// Earlier versions of Holdfast kept the same entries, in the same words, as parameters in the Daemon's
// spec. Such a parameter is read as long as there is no annotation of its name. To remove it would
// change the spec and so its generation: it goes when the spec changes for another reason (Settle).
package memory

import (
	"maps"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// Name is what an entry is called.
type Name string

// The entries.
const (
	// MonNewest is the name of a mon that was given last, even if that mon has left: none is given twice.
	MonNewest Name = "monNewest"
	// MonAvoid are the hosts where a mon kept failing of late, each with the time until which none is
	// made there.
	MonAvoid Name = "monAvoid"
	// Drain is recorded while an OSD or a mon leaves for good: Begun, and of an OSD that is empty Empty.
	Drain Name = "drain"
	// CrushWeight is the weight in CRUSH that an OSD had before it left, and WasOut is recorded if it was
	// out already. The OSD gets both back if it stays after all.
	CrushWeight Name = "crushWeight"
	WasOut      Name = "wasOut"
	// Flaps are the times that an OSD went down and came back of late, and HeldSince is since when it is
	// held back for that.
	Flaps     Name = "flaps"
	HeldSince Name = "heldSince"
	// Replaced is recorded while spec.replace names the device of an OSD, whose number Ceph is to keep.
	Replaced Name = "replaced"
	// LostSince is since when no StorageNode means the host of the daemon any more.
	LostSince Name = "lostSince"
	// AwaySince is since when a mon is out of the quorum on a host whose agent is disconnected.
	AwaySince Name = "awaySince"
)

// The values of Drain. Replace is of an OSD that failed and whose number another one gets: its agent
// has to know that, too, so Replace is a parameter of the spec, now as before.
const (
	Begun   = "true"
	Empty   = "empty"
	Replace = "replace"
)

var names = []Name{MonNewest, MonAvoid, Drain, CrushWeight, WasOut, Flaps, HeldSince, Replaced, LostSince, AwaySince}

// Of is an entry of the memory of a daemon; empty for none.
func Of(d *api.Daemon, name Name) string {
	if value, known := leadermemory.Get(d, string(name)); known {
		return value
	}
	return d.Spec.Parameters[string(name)]
}

// Set records an entry of a daemon that is wanted; none where the value is empty.
func Set(d *api.Daemon, name Name, value string) {
	if value == "" {
		leadermemory.Drop(d, string(name))
		return
	}
	leadermemory.Set(d, string(name), value)
}

// SetDrain records how far an OSD is on its way out. One that is replaced says so in its spec, and so
// does one that is empty and whose number Ceph keeps.
func SetDrain(d *api.Daemon, leaves, empty, replaced bool) {
	switch {
	case leaves && empty:
		Set(d, Drain, Empty)
		if Of(d, Replaced) != "" {
			d.Spec.Parameters[string(Drain)] = Replace
		}
	case replaced:
		d.Spec.Parameters[string(Drain)] = Replace
	case leaves:
		Set(d, Drain, Begun)
	}
}

// TakeMeta gives a daemon that was made anew the metadata of the one that is there. Its memory is its
// own.
func TakeMeta(next, have *api.Daemon) {
	was := *next
	next.ObjectMeta = *have.ObjectMeta.DeepCopy()
	leadermemory.Take(next, &was)
}

// Settle has a daemon that is wanted keep the entries in the spec of the one that is there, if its
// spec is otherwise the same: it is not written for them. What holds now is in the annotations, also
// that an entry is gone. have is nil for a daemon that is new.
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
		return // the entries in it go with this change
	}
	want.Spec = kept
	for name, value := range old {
		switch now, known := leadermemory.Get(want, name); {
		case !known:
			leadermemory.Set(want, name, "")
		case now == value:
			leadermemory.Drop(want, name)
		}
	}
}

// Move takes the entries out of the spec of a daemon whose spec is changed.
func Move(d *api.Daemon) {
	for name, value := range inSpec(d) {
		if _, known := leadermemory.Get(d, name); !known {
			leadermemory.Set(d, name, value)
		}
		delete(d.Spec.Parameters, name)
	}
	for _, name := range names {
		if value, known := leadermemory.Get(d, string(name)); known && value == "" {
			leadermemory.Drop(d, string(name))
		}
	}
}

// inSpec are the entries that an earlier version made in the spec.
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
