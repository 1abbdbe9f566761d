// Package fsspec reads the spec of a Filesystem: what cannot be, and how its pools and those that Ceph
// has go together. It is pure.
package fsspec

import (
	"reflect"
	"slices"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// IsExisting says whether the file system and its pools are as Ceph has them.
func IsExisting(f *api.Filesystem) bool { return f.Spec.Pools == api.PoolsExisting }

// IsWiped says whether the file system and its pools go with the Filesystem. Those that Holdfast did
// not make never do.
func IsWiped(f *api.Filesystem) bool {
	return f.Spec.DeletionPolicy == api.DeletionWipe && !IsExisting(f)
}

// Anew says what comes of a file system that is gone when a user accepts the loss. left says whether
// Ceph still has some of its pools.
func Anew(f *api.Filesystem, left bool) string {
	switch {
	case IsExisting(f):
		return "forgets it, and creates none"
	case left:
		return "creates a new, empty one, once its old pools have other names"
	}
	return "creates a new, empty one"
}

// Refusals say what cannot be, whatever Ceph has.
func Refusals(f *api.Filesystem) (all []engine.Objection) {
	refuse := func(format string, args ...any) {
		all = append(all, engine.Refusal(api.ReasonInvalidSpec, format, args...))
	}
	for _, g := range f.Spec.SubvolumeGroups {
		if g.Quota != nil && g.Quota.Sign() <= 0 {
			refuse("the quota of subvolume group %s must be above zero, such as 100Gi; for no quota, remove it", g.Name)
		}
		if g.Quota != nil && g.Quota.CmpInt64(g.Quota.Value()) != 0 {
			refuse("the quota of subvolume group %s must be whole bytes: m means thousandths; write Mi, such as 500Mi", g.Name)
		}
	}
	if !IsExisting(f) {
		return all
	}
	if !reflect.ValueOf(f.Spec.MetadataPool).IsZero() || len(f.Spec.DataPools) > 0 {
		refuse("spec.pools is Existing, so that Holdfast changes no pool: remove spec.metadataPool and spec.dataPools, or " +
			"set spec.pools to Managed")
	}
	if f.Spec.DeletionPolicy == api.DeletionWipe {
		refuse("spec.pools is Existing, so that Holdfast deletes no pool: set spec.deletionPolicy to Retain, or " +
			"spec.pools to Managed")
	}
	return all
}

// Await is what a Filesystem waits for that Ceph has no file system for.
func Await(f *api.Filesystem) engine.Objection {
	return engine.Wait(api.ReasonNotReady, "spec.pools is Existing, and Ceph has no file system %s: "+
		"create it with 'holdfast ceph fs volume create %s', or set spec.pools to Managed", f.Name, f.Name)
}

// Misfits say which data pools that the file system has in Ceph a Filesystem does not declare as they
// are. A pool whose name is unknown fits.
func Misfits(ids []int64, nameOf func(int64) string, declared []string) (all []engine.Objection) {
	for i, id := range ids {
		name := nameOf(id)
		at := slices.Index(declared, name)
		switch {
		case name == "":
		case at < 0:
			all = append(all, engine.Refusal(api.ReasonWouldLoseData, "spec.dataPools lacks pool %s, which the filesystem has "+
				"in Ceph: Holdfast removes no data pool, because it may hold files; list the pool, or rename the Filesystem", name))
		case i == 0 && at > 0:
			all = append(all, engine.Refusal(api.ReasonInvalidSpec,
				"pool %s is the filesystem's first data pool, which cannot change: list it first", name))
		}
	}
	return all
}

// Noted are the pools that the file system has in Ceph, for its status.
func Noted(metadata int64, data []int64, nameOf func(int64) string) (all []api.FilesystemPoolStatus) {
	for _, id := range append([]int64{metadata}, data...) {
		if name := nameOf(id); name != "" {
			all = append(all, api.FilesystemPoolStatus{Name: name, ID: id})
		}
	}
	return all
}

// GroupsMade are the subvolume groups of a file system that were made, each with its quota, by what
// was recorded. It is empty for a file system that has yet to be made.
func GroupsMade(resources []api.Resource, name string) map[string]int64 {
	made := map[string]int64{}
	for _, f := range engine.OfKind[*api.Filesystem](resources) {
		if f.Name != name {
			continue
		}
		for _, g := range f.Status.SubvolumeGroups {
			made[g.Name] = Quota(g)
		}
	}
	return made
}

// Quota is how many bytes a group may hold; zero for any number.
func Quota(g api.SubvolumeGroup) int64 {
	if g.Quota == nil {
		return 0
	}
	return g.Quota.Value()
}
