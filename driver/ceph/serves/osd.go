package serves

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/crushmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
)

func (f *Facts) osd(d *api.Daemon) *api.DaemonService {
	id, err := strconv.Atoi(d.Spec.ID)
	o, known := f.OSDs[id]
	switch {
	case err != nil || !known:
		return nil // it is registered first
	case !o.Up && f.fresh(d):
		return nil
	case !o.Up:
		return f.down(d, id, o)
	case o.Leaves:
		return nil
	case !o.In:
		return f.marked(id, o)
	case !o.Placed:
		return nil // it is put back
	case o.Place.Weight == 0:
		return out(api.ReasonZeroWeight, fmt.Sprintf("give it the weight of its size in TiB with 'holdfast ceph osd crush "+
			"reweight osd.%d %s'", id, orWord(o.Weight, "TIB")),
			"its process runs, and CRUSH has it with weight 0, so that Ceph gives it no data")
	case f.Takes != nil && !slices.ContainsFunc(f.Takes, func(t crushmap.Take) bool { return t.Reaches(o.Place) }):
		return unused(id, o.Place)
	}
	return full(id, o)
}

// flag is the flag that is set for an OSD, and the command that takes it away; empty where it is not set.
func (f *Facts) flag(name string, id int, o OSD) (where, unset string) {
	switch {
	case slices.Contains(f.Flags, name):
		return "flag " + name + " is set for the whole cluster", "osd unset " + name
	case slices.Contains(o.State, name):
		return "flag " + name + " is set for it", fmt.Sprintf("osd rm-%s %d", name, id)
	}
	for _, g := range health.Groups(f.Checks) {
		if slices.Contains(g.Flags, name) && o.isIn(g.Name) {
			return "flag " + name + " is set for " + g.Name, "osd unset-group " + name + " " + g.Name
		}
	}
	return "", ""
}

// isIn says whether CRUSH has the OSD in a bucket or a device class.
func (o *OSD) isIn(name string) bool {
	return o.Place.Class == name || slices.Contains(slices.Collect(maps.Values(o.Place.Buckets)), name)
}

func (f *Facts) down(d *api.Daemon, id int, o OSD) *api.DaemonService {
	if where, unset := f.flag("noup", id, o); where != "" {
		return out(api.ReasonFlagSet, "remove the flag with 'holdfast ceph "+unset+"'",
			"its process runs, and Ceph does not mark it up: %s", where)
	}
	return out(api.ReasonDaemonHangs, restart(d)+"; if Ceph marks it down again, look for a firewall that keeps "+
		"other hosts from the TCP ports 6800 to 7568 of host "+d.Spec.Host,
		"its process runs, and Ceph marks it down: other OSDs get no answer from it")
}

func (f *Facts) marked(id int, o OSD) *api.DaemonService {
	in := fmt.Sprintf("'holdfast ceph osd in %d'", id)
	if where, unset := f.flag("noin", id, o); where != "" {
		return out(api.ReasonFlagSet, "remove the flag with 'holdfast ceph "+unset+"', and take the OSD in with "+in,
			"its process runs, and Ceph has it out: %s", where)
	}
	return out(api.ReasonMarkedOut, "take it in again with "+in+"; to remove it for good, see 'holdfast device --help'",
		"its process runs, and it is marked out ('ceph osd out', or weight 0 by 'ceph osd reweight'), so that Ceph gives "+
			"it no data")
}

func unused(id int, at crushmap.Place) *api.DaemonService {
	return out(api.ReasonNotUsed, fmt.Sprintf("declare a Pool with deviceClass %s, or give the OSD another class with "+
		"'holdfast ceph osd crush rm-device-class osd.%d' and 'holdfast ceph osd crush set-device-class CLASS osd.%d'",
		orWord(at.Class, "CLASS"), id, id),
		"its process runs, and no pool stores data on it: no CRUSH rule of a pool takes OSDs of class %q below root %q",
		at.Class, at.Buckets["root"])
}

func full(id int, o OSD) *api.DaemonService {
	const room = "add a device to a StorageNode, or delete data; 'holdfast ceph osd df' says how full each OSD is"
	has := func(state string) bool { return slices.Contains(o.State, state) }
	switch {
	case has("full"):
		return out(api.ReasonFull,
			room+". To be able to delete, raise the limit with 'holdfast ceph osd set-full-ratio 0.97'",
			"it is full, so that Ceph refuses writes to each pool that stores data on it")
	case has("backfillfull"):
		return limited(api.ReasonBackfillFull, room, "it is so full that Ceph moves no more data to it")
	case has("nearfull"):
		return limited(api.ReasonNearFull, room, "it is nearly full")
	}
	return nil
}

func orWord(text, word string) string {
	if text == "" {
		return word
	}
	return text
}
