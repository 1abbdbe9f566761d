// Package leadermemory has the leader's memory of Daemons: what the leader records for its next plans, and
// the agent of the host does not need. Its entries are annotations. A change of them changes no
// generation, so that no agent prepares a daemon anew for it. The leader is their only writer. It
// writes them together with the spec, in one request.
package leadermemory

import (
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Prefix begins the names of the annotations.
const Prefix = "memory.holdfast.io/"

// Get is an entry of the memory of a daemon. known is false where there is none of this name.
func Get(d *api.Daemon, name string) (value string, known bool) {
	value, known = d.Annotations[Prefix+name]
	return value, known
}

// Set records an entry.
func Set(d *api.Daemon, name, value string) {
	annotate(d, func(all map[string]string) { all[Prefix+name] = value })
}

// Drop removes an entry.
func Drop(d *api.Daemon, name string) {
	if _, known := Get(d, name); known {
		annotate(d, func(all map[string]string) { delete(all, Prefix+name) })
	}
}

// Take replaces the memory of a daemon by that of another version of it. Other annotations stay.
func Take(d, from *api.Daemon) {
	if Same(d, from) {
		return
	}
	annotate(d, func(all map[string]string) {
		maps.DeleteFunc(all, func(key, _ string) bool { return strings.HasPrefix(key, Prefix) })
		for key, value := range from.Annotations {
			if strings.HasPrefix(key, Prefix) {
				all[key] = value
			}
		}
	})
}

// Write gives a daemon the spec and the memory of another version of it, as a Store does. It says
// whether the spec changed, and with it the generation, and whether anything did.
func Write(d, want *api.Daemon) (generation, changed bool) {
	generation = !d.Spec.Equal(&want.Spec)
	changed = generation || !Same(d, want)
	if generation {
		d.Spec = *want.Spec.DeepCopy()
	}
	Take(d, want)
	return generation, changed
}

// Same says whether the memory of two versions of a daemon is the same.
func Same(a, b *api.Daemon) bool { return len(Changed(a, b)) == 0 }

// Changed are the names of the entries that two versions of a daemon do not have alike, sorted.
func Changed(a, b *api.Daemon) []string {
	var changed []string
	for _, key := range ChangedKeys(a.Annotations, b.Annotations) {
		if name, is := strings.CutPrefix(key, Prefix); is {
			changed = append(changed, name)
		}
	}
	return changed
}

// ChangedKeys are the keys that two maps do not have alike, sorted.
func ChangedKeys(a, b map[string]string) []string {
	if maps.Equal(a, b) {
		return nil
	}
	changed := map[string]bool{}
	for k, v := range a {
		if w, ok := b[k]; !ok || v != w {
			changed[k] = true
		}
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			changed[k] = true
		}
	}
	return slices.Sorted(maps.Keys(changed))
}

// annotate changes a copy of the annotations: the daemon may be a copy that shares them with others.
func annotate(d *api.Daemon, change func(map[string]string)) {
	all := maps.Clone(d.Annotations)
	if all == nil {
		all = map[string]string{}
	}
	if change(all); len(all) == 0 {
		all = nil
	}
	d.Annotations = all
}
