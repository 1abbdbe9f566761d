// Package drives matches DriveGroups with the disks of hosts: which disk a filter selects, how disks
// with databases and logs are divided, and why a disk is left alone. It is pure. The driver for Ceph
// plans with it, and the command line explains with it.
package drives

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives/cephmatch"
)

// Verdict is what a group says of one disk.
type Verdict struct {
	Device *api.Device
	// Matches is set when the disk can be taken.
	Matches bool
	// Why says, in a clause, why not.
	Why string
	// Near is set when one thing alone speaks against it.
	Near bool
	// Note says where Holdfast's own comparison would come to something else than Ceph's.
	Note string
}

// Match judges the disks of a host, those first that are named in take, sorted by their ids. Of those that the group holds already nothing is said; they
// count for limits.
func Match(filters []api.DriveFilter, h *api.Host, take []string, held func(id string) bool) []Verdict {
	used := make([]int32, len(filters))
	var rest []*api.Device
	for i := range h.Status.Devices {
		d := &h.Status.Devices[i]
		if !held(d.ID) {
			rest = append(rest, d)
			continue
		}
		if d.Parent != "" && held(d.Parent) {
			continue // the limit counts the disk that it is a part of
		}
		if f := slices.IndexFunc(filters, func(f api.DriveFilter) bool { return len(against(&f, d)) == 0 }); f >= 0 {
			used[f]++
		}
	}
	// What is named is taken whatever the limit is. Judged after others it would count when the group holds it, and not when it is taken: another disk would match
	// now and not later, and be refused to another group meanwhile.
	rank := func(d *api.Device) int {
		if Named(d, take) {
			return 0
		}
		return 1
	}
	order := func(a, b *api.Device) int { return cmp.Compare(a.ID, b.ID) }
	if cephmatch.Any(filters) {
		order = cephmatch.Order
	}
	slices.SortFunc(rest, func(a, b *api.Device) int { return cmp.Or(rank(a)-rank(b), order(a, b)) })
	var all []Verdict
	for _, d := range rest {
		if v, said := judge(filters, used, d); said {
			all = append(all, v)
		}
	}
	return all
}

// judge says what becomes of a disk by the first filter that has room for it, else why by the one that it is nearest to.
func judge(filters []api.DriveFilter, used []int32, d *api.Device) (Verdict, bool) {
	if !whole(d) && !slices.ContainsFunc(filters, func(f api.DriveFilter) bool { return Named(d, f.Paths) }) {
		return Verdict{}, false
	}
	best, full := []string(nil), ""
	for i := range filters {
		f := &filters[i]
		why := against(f, d)
		switch {
		case len(why) > 0:
			if best == nil || len(why) < len(best) {
				best = why
			}
		case d.Taken() != "":
			return Verdict{Device: d, Near: true, Why: d.Taken()}, true
		case f.Limit > 0 && used[i] >= f.Limit && (f.Match != api.DriveMatchCeph || len(f.Paths) == 0): // else Ceph takes all
			full = fmt.Sprintf("the limit of %d on a host is reached", f.Limit)
		default:
			used[i]++
			return Verdict{Device: d, Matches: true, Note: note(f, d, true)}, true
		}
	}
	if full != "" {
		return Verdict{Device: d, Near: true, Why: full}, true
	}
	v := Verdict{Device: d, Near: len(best) == 1, Why: strings.Join(best, ", ")}
	for i := range filters {
		if text := note(&filters[i], d, false); text != "" && d.Taken() == "" {
			v.Why += "; " + text
			break
		}
	}
	return v, true
}

// whole says whether a device is a disk, which filters by property are for.
func whole(d *api.Device) bool {
	return d.Parent == "" && (d.Kind == "" || d.Kind == api.DeviceDisk || d.Kind == api.DeviceLoop || d.Kind == api.DeviceRaid)
}

// against is all that speaks against a disk by one filter.
func against(f *api.DriveFilter, d *api.Device) (why []string) {
	if len(f.Paths) > 0 && !Named(d, f.Paths) {
		why = append(why, "none of its paths is in the filter")
	}
	if f.Match == api.DriveMatchCeph {
		return append(why, cephmatch.Against(f, d)...)
	}
	part := func(what, have, want string) {
		if want != "" && !strings.Contains(strings.ToLower(have), strings.ToLower(want)) {
			why = append(why, fmt.Sprintf("its %s is %q, not %q", what, have, want))
		}
	}
	part("model", d.Model, f.Model)
	part("vendor", d.Vendor, f.Vendor)
	if f.Size != "" {
		if low, high, err := Size(f.Size); err != nil {
			why = append(why, err.Error())
		} else if n := d.Size.Value(); n < low || n > high {
			why = append(why, fmt.Sprintf("its size is %s, not %s", SizeText(n), f.Size))
		}
	}
	if f.Rotational != nil && (d.Media == "" || *f.Rotational != (d.Media == api.MediaRotational)) {
		why = append(why, spins(d.Media))
	}
	return why
}

// note says that Holdfast's own comparison would decide otherwise than Ceph's, which a filter asks for.
func note(f *api.DriveFilter, d *api.Device, matches bool) string {
	if f.Match != api.DriveMatchCeph {
		return ""
	}
	own := *f
	own.Match, own.Size = "", cephmatch.Plain(f.Size)
	switch why := against(&own, d); {
	case matches && len(why) > 0:
		return "it matches as Ceph compares, but not as Holdfast does: " + strings.Join(why, ", ")
	case !matches && len(why) == 0:
		return "as Holdfast compares it would match"
	}
	return ""
}

func spins(m api.MediaKind) string {
	switch m {
	case api.MediaRotational:
		return "it spins"
	case api.MediaSolidState:
		return "it does not spin"
	}
	return "it is unknown whether it spins"
}

// Named says whether one of the entries is a name of a device: its id, path, a link of it, its WWN or serial number.
func Named(d *api.Device, entries []string) bool {
	return slices.ContainsFunc(entries, func(e string) bool {
		return e == d.ID || e == d.Path || d.Serial != "" && e == d.Serial || d.WWN != "" && strings.TrimPrefix(e, "0x") == strings.TrimPrefix(d.WWN, "0x") ||
			slices.ContainsFunc(d.Links, func(l string) bool { return e == l || "/dev/disk/"+e == l })
	})
}

// Size reads a range of sizes in bytes, both ends included.
func Size(text string) (low, high int64, err error) {
	from, to, ranged := strings.Cut(text, ":")
	read := func(s string, without int64) int64 {
		if s == "" {
			return without
		}
		q, e := resource.ParseQuantity(s)
		if e != nil {
			err = fmt.Errorf("size %q is invalid: write it as 1T:2T", text)
			return without
		}
		return q.Value()
	}
	low = read(from, 0)
	if !ranged {
		return low - low/100, low + low/100, err
	}
	if high = read(to, 1<<62); err == nil && high < low {
		err = fmt.Errorf("size %q has an end below its start", text)
	}
	return low, high, err
}

// SizeText is a size as it stands on a disk, such as "4 TB".
func SizeText(n int64) string {
	unit, size := "B", float64(n)
	for _, next := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if size < 1000 {
			break
		}
		unit, size = next, size/1000
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", size), ".0") + " " + unit
}
