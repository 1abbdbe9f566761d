package drift

import (
	"maps"
	"slices"
)

// KeyState says what is wrong with the key of an entity.
type KeyState string

// What is wrong with keys.
const (
	KeyMissing KeyState = "Missing"
	KeyOther   KeyState = "Other"
	KeyCaps    KeyState = "Caps"
)

// keyTexts say what was found, and what becomes of it.
var keyTexts = map[KeyState]string{
	KeyMissing: "its key was removed from Ceph's auth database, so that it cannot start; put back from its Secret",
	KeyOther:   "its key was changed in Ceph's auth database, so that it cannot start; put back as its Secret has it",
	KeyCaps:    "its capabilities were changed in Ceph's auth database; put back as its Secret has them",
}

// AdminKey says what becomes of the key of client.admin. The mons take the key that is their own for that.
const AdminKey = "Ceph answers and refuses the key of client.admin, which was changed or removed there; put back " +
	"from its Secret, by the key of the mons"

// Auth is an entity of Ceph's auth database, as 'auth get' answers.
type Auth struct {
	Key  string            `json:"key"`
	Caps map[string]string `json:"caps"`
}

// State compares the entity with the key and the capabilities that Holdfast keeps.
func (a *Auth) State(key string, caps map[string]string) (state KeyState, differs bool) {
	switch {
	case a.Key != key:
		return KeyOther, true
	case len(caps) > 0 && !maps.Equal(a.Caps, caps):
		return KeyCaps, true
	}
	return "", false
}

func keys(d *Declared, f *Found) (all []Difference) {
	for _, entity := range slices.Sorted(maps.Keys(f.Keys)) {
		if d.Keeps(entity) {
			all = append(all, Difference{Kind: Key, Object: entity, Remedy: PutBack, Text: keyTexts[f.Keys[entity]]})
		}
	}
	return all
}
