package drives

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// leastData is the least that an OSD of a divided disk gets, in bytes, as with ceph-volume.
const leastData = 5e9

// partsOf are the devices that a disk comes to: itself, or the parts that it is divided into, but
// for those that are to leave. One that is divided already stays so.
func (o *Outcome) partsOf(at Place, d *api.Device, env *Env) ([]api.GroupDevice, error) {
	var size int64
	count := int64(max(1, o.Group.Spec.OSDsPerDevice))
	switch was := o.divided[at]; {
	case was != nil:
		count, size = int64(was.Parts), was.Size.Value()
	case count == 1:
		return []api.GroupDevice{{Host: at.Host, ID: at.ID, Serial: d.Serial}}, nil
	case !whole(d):
		return nil, fmt.Errorf("%s is a partition, but osdsPerDevice divides only disks: name its disk, or remove "+
			"osdsPerDevice", text(at.Host, d))
	default:
		if size = Usable(d.Size.Value()) / count / grain * grain; size < leastData {
			return nil, fmt.Errorf("%s is too small for %d OSDs: each would have %s, but needs %s; lower osdsPerDevice, "+
				"narrow the filters (such as by size), or list the disk in spec.exclude",
				text(at.Host, d), count, SizeText(size), SizeText(leastData))
		}
	}
	var parts []api.GroupDevice
	for i := range count {
		id := env.Share(at, int(i))
		if slices.Contains(leave(o.Group), id) {
			continue
		}
		slot := &api.DeviceSlot{ID: at.ID, Serial: d.Serial, Size: *resource.NewQuantity(size, resource.BinarySI), Parts: int32(count)}
		parts = append(parts, api.GroupDevice{Host: at.Host, ID: id, Serial: d.Serial, Data: slot})
	}
	return parts, nil
}

// lookForGaps finds the disks of a host that lack a part: the OSD on it left. One whose part is
// there with something on it, or belongs to an OSD that is leaving, lacks nothing yet.
func (o *Outcome) lookForGaps(h *api.Host, env *Env) {
	for i := range h.Status.Devices {
		d := &h.Status.Devices[i]
		at := Place{h.Name, d.ID}
		if o.divided[at] == nil {
			continue
		}
		parts, _ := o.partsOf(at, d, env) // a disk that is divided can be
		parts = slices.DeleteFunc(parts, func(x api.GroupDevice) bool {
			there := inventoried(h, x.ID)
			return Holds(o.Group, Place{h.Name, x.ID}) || env.Claimed(Place{h.Name, x.ID}) != "" || there != nil && there.Taken() != ""
		})
		if len(parts) > 0 {
			o.gaps[at], o.matches[at] = parts, d
		}
	}
}

// tally is what a group has on a disk.
type tally struct {
	osds  int
	fresh bool
	part  *api.DeviceSlot // one of them; nil where it is whole
}

// tallies are those of all its disks.
func (o *Outcome) tallies() map[Place]tally {
	all := map[Place]tally{}
	for _, x := range o.Devices {
		at := diskOf(&x)
		t := all[at]
		all[at] = tally{t.osds + 1, t.fresh || o.fresh[Place{x.Host, x.ID}], x.Data}
	}
	return all
}

// diskOf is the disk that a device is or is a part of.
func diskOf(x *api.GroupDevice) Place {
	if x.Data == nil {
		return Place{x.Host, x.ID}
	}
	return Place{x.Host, x.Data.ID}
}

// tellDivided says which disks are divided for how many OSDs, and which stay as they are although
// the group would divide them otherwise now.
func (o *Outcome) tellDivided(hosts []api.Host) {
	var kept []string
	all := o.tallies()
	for i := range hosts {
		h := &hosts[i]
		for j := range h.Status.Devices {
			d := &h.Status.Devices[j]
			t := all[Place{h.Name, d.ID}]
			switch {
			case t.fresh && t.part != nil:
				o.Serves = append(o.Serves, fmt.Sprintf("%s is divided for %s, %s each", text(h.Name, d), words.Plural(t.osds, "OSD"), SizeText(t.part.Size.Value())))
			case !t.fresh && t.osds > 0 && partsIn(t.part) != max(1, o.Group.Spec.OSDsPerDevice):
				kept = append(kept, text(h.Name, d))
			}
		}
	}
	if len(kept) > 0 {
		o.Others = append(o.Others, "osdsPerDevice applies only to new disks: "+words.Few(kept))
	}
}

// partsIn is how many parts a disk was divided into, by one of them; 1 where it is whole.
func partsIn(part *api.DeviceSlot) int32 {
	if part == nil {
		return 1
	}
	return part.Parts
}

// Disks counts the disks that devices are, or are parts of.
func Disks(devices []api.GroupDevice) int {
	disks := map[Place]bool{}
	for i := range devices {
		disks[diskOf(&devices[i])] = true
	}
	return len(disks)
}
