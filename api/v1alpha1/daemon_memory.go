package v1alpha1

import (
	"maps"
	"slices"
	"strings"
)

// MemoryPrefix begins the names of the annotations that are the leader's memory of a Daemon: what
// the leader noted for its next plans, and what the agent of the host does not need. A change of
// them changes no generation, so that no agent prepares a daemon anew for it. The leader is their
// only writer. It writes them together with the spec, in one request.
const MemoryPrefix = "memory.holdfast.io/"

// Memory is what the leader noted of the daemon under a name. known is false where it noted
// nothing.
func (d *Daemon) Memory(name string) (value string, known bool) {
	value, known = d.Annotations[MemoryPrefix+name]
	return value, known
}

// Remember notes a value under a name.
func (d *Daemon) Remember(name, value string) {
	d.annotate(func(all map[string]string) { all[MemoryPrefix+name] = value })
}

// Forget removes what is noted under a name.
func (d *Daemon) Forget(name string) {
	if _, known := d.Memory(name); known {
		d.annotate(func(all map[string]string) { delete(all, MemoryPrefix+name) })
	}
}

// SameMemory says whether the leader's memory of two versions of a daemon is the same.
func (d *Daemon) SameMemory(o *Daemon) bool { return len(ChangedMemory(d, o)) == 0 }

// TakeMemory replaces the memory of the daemon by that of another version of it. Other annotations
// stay.
func (d *Daemon) TakeMemory(from *Daemon) {
	if d.SameMemory(from) {
		return
	}
	d.annotate(func(all map[string]string) {
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, MemoryPrefix) })
		for key, value := range from.Annotations {
			if strings.HasPrefix(key, MemoryPrefix) {
				all[key] = value
			}
		}
	})
}

// ChangedMemory are the names under which two versions of a daemon do not have the same noted,
// sorted.
func ChangedMemory(a, b *Daemon) []string {
	var changed []string
	each := func(of, other *Daemon, differs func(value, there string, known bool) bool) {
		for key, value := range of.Annotations {
			if name, is := strings.CutPrefix(key, MemoryPrefix); is {
				if there, known := other.Memory(name); differs(value, there, known) {
					changed = append(changed, name)
				}
			}
		}
	}
	each(a, b, func(value, there string, known bool) bool { return !known || there != value })
	each(b, a, func(_, _ string, known bool) bool { return !known })
	slices.Sort(changed)
	return changed
}

// annotate changes a copy of the annotations: the daemon may be a copy that shares them with
// others.
func (d *Daemon) annotate(change func(map[string]string)) {
	all := maps.Clone(d.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	if change(all); len(all) == 0 {
		all = nil
	}
	d.Annotations = all
}
