// Package cephmatch compares disks with the filters of a DriveGroup as Ceph's own library does
// (ceph/deployment/drive_selection of Ceph 16.2.15), for groups that come from 'ceph orch'. It is pure.
// Its test asks that library.
package cephmatch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Any says whether one of the filters compares as Ceph does. Then Ceph's order of disks holds for all of
// them, too, which decides where a limit ends.
func Any(filters []api.DriveFilter) bool {
	return slices.ContainsFunc(filters, func(f api.DriveFilter) bool { return f.Match == api.DriveMatchCeph })
}

// Order compares disks as the inventory of ceph-volume orders them.
func Order(a, b *api.Device) int {
	return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.ID, b.ID))
}

// Against is all that speaks against a disk by what it is like.
func Against(f *api.DriveFilter, d *api.Device) (why []string) {
	part := func(what, have, want string) {
		if !strings.Contains(have, want) {
			why = append(why, fmt.Sprintf("its %s is %q, without %q", what, have, want))
		}
	}
	part("model", d.Model, f.Model)
	part("vendor", d.Vendor, f.Vendor)
	if f.Size != "" {
		if size, err := ParseSize(f.Size); err != nil {
			why = append(why, err.Error())
		} else if n := d.Size.Value(); !size.Holds(n) {
			why = append(why, fmt.Sprintf("its size is %s for Ceph, not %s", HumanSize(n), f.Size))
		}
	}
	// What is not known to spin does not, for ceph-volume.
	if spins := d.Media == api.MediaRotational; f.Rotational != nil && *f.Rotational != spins {
		why = append(why, map[bool]string{true: "it spins", false: "it does not spin"}[spins])
	}
	return why
}

// Validate refuses a filter that Ceph refuses. The schema of DriveGroup does the same.
func Validate(f *api.DriveFilter, data bool) error {
	like := f.Model != "" || f.Vendor != "" || f.Size != "" || f.Rotational != nil
	switch {
	case len(f.Paths) > 0 && like:
		return errors.New("with match Ceph, paths excludes other fields: remove model, vendor, size and rotational")
	case !f.All && !like && len(f.Paths) == 0:
		return errors.New("the filter selects nothing: add all, paths, model, vendor, size or rotational")
	case f.All && (like || len(f.Paths) > 0):
		return errors.New("with match Ceph, all excludes other fields: remove the other fields, or all")
	case f.All && !data:
		return errors.New("with match Ceph, only dataDevices may have all: select disks by model, vendor, size or " +
			"rotational")
	case f.Size != "":
		_, err := ParseSize(f.Size)
		return err
	}
	return nil
}
