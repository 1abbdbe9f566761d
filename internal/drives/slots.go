package drives

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/drives/cephmatch"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Part is what of an OSD can be kept in a part of a disk.
type Part string

// The parts.
const (
	Data Part = "data"
	DB   Part = "db"
	WAL  Part = "wal"
)

// Parts are all of them.
var Parts = []Part{Data, DB, WAL}

// Slot is where a part of the OSD on a device is kept, or nil where that is the whole device, or with its data.
func Slot(d *api.GroupDevice, part Part) *api.DeviceSlot {
	return map[Part]*api.DeviceSlot{Data: d.Data, DB: d.DB, WAL: d.WAL}[part]
}

const (
	// grain is what slots begin at and are measured in, and also what is left to the partition table at each end of a disk, in bytes.
	grain = 1 << 20
	// Below these sizes BlueStore has no use for a device of its own (Ceph docs, "BlueStore configuration reference: sizing").
	leastDB  = 1 << 30
	leastWAL = 128 << 20
)

// Usable is how much of a disk of this size can be given away in slots.
func Usable(size int64) int64 { return max(0, size/grain-2) * grain }

type hostPart struct {
	host string
	part Part
}

// wish is what a group wants of one part.
type wish struct {
	part            Part
	field, what     string
	filters         []api.DriveFilter
	size, least     int64
	slots           int
	sizeOf, slotsOf string
}

// wishes are the parts that a group wants on disks of their own.
func wishes(s *api.DriveGroupSpec) []wish {
	all := []wish{
		{part: DB, field: "dbDevices", what: "databases", filters: s.DBDevices, least: leastDB, slots: int(s.DBSlots), sizeOf: "dbSize", slotsOf: "dbSlots"},
		{part: WAL, field: "walDevices", what: "logs", filters: s.WALDevices, least: leastWAL, slots: int(s.WALSlots), sizeOf: "walSize", slotsOf: "walSlots"},
	}
	if s.DBSize != nil {
		all[0].size = (s.DBSize.Value() + grain - 1) / grain * grain
	}
	if s.WALSize != nil {
		all[1].size = (s.WALSize.Value() + grain - 1) / grain * grain
	}
	return slices.DeleteFunc(all, func(w wish) bool { return len(w.filters) == 0 })
}

// serves says for which part a group uses a disk, by what it has recorded.
func serves(devices []api.GroupDevice, at Place) Part {
	for i := range devices {
		for _, part := range Parts {
			if s := Slot(&devices[i], part); s != nil && devices[i].Host == at.Host && s.ID == at.ID {
				return part
			}
		}
	}
	return ""
}

// Divides says whether a disk is divided for devices, or is to be.
func Divides(devices []api.GroupDevice, at Place) bool { return serves(devices, at) != "" }

// shelf is a disk that is, or can be, divided into slots.
type shelf struct {
	id, serial string
	device     *api.Device // nil while it is not there
	size       int64       // of each slot; 0 before that is decided
	room       int64       // what is left of it
	served     int
	given      []*api.GroupDevice // those that it serves from now on
}

// lookForSlots finds the disks of a host that match for databases and logs.
func (o *Outcome) lookForSlots(h *api.Host, claimed func(Place) string) {
	for _, w := range inTurn(wishes(&o.Group.Spec)) {
		held := func(id string) bool { return serves(o.Devices, Place{h.Name, id}) != "" }
		for _, v := range Match(w.filters, o.leftFor(h, w), nil, held) {
			at := Place{h.Name, v.Device.ID}
			text := text(h.Name, v.Device)
			switch by := claimed(at); {
			case v.Matches && excluded(o.Group, at, v.Device):
				o.Others = append(o.Others, text+": "+listed(o.Group, v.Device)+" lists it")
			case v.Matches && by != "":
				o.Others = append(o.Others, fmt.Sprintf("%s: %s uses it", text, by))
			case v.Matches:
				o.claim(at, v.Device, w)
			case v.Near && !Holds(o.Group, at) && o.matches[at] == nil:
				x := hostPart{h.Name, w.part}
				o.nearSlot[x] = append(o.nearSlot[x], text+": "+v.Why)
			}
		}
	}
}

// inTurn has logs choose before databases, where they choose as Ceph does.
func inTurn(all []wish) []wish {
	if len(all) == 2 && cephmatch.Any(all[1].filters) {
		slices.Reverse(all)
	}
	return all
}

// leftFor is a host with the disks that are left for a part: Ceph gives each disk to the first that selects it.
func (o *Outcome) leftFor(h *api.Host, w wish) *api.Host {
	if !cephmatch.Any(w.filters) {
		return h
	}
	left := *h
	left.Status.Devices = slices.DeleteFunc(slices.Clone(h.Status.Devices), func(d api.Device) bool {
		at := Place{h.Name, d.ID}
		part := cmp.Or(serves(o.Devices, at), o.shelves[at])
		return o.matches[at] != nil || Holds(o.Group, at) || part != "" && part != w.part
	})
	return &left
}

// claim notes that a disk matches for a part. One that matches for something else as well is for neither.
func (o *Outcome) claim(at Place, d *api.Device, w wish) {
	other := ""
	if o.matches[at] != nil {
		other = "dataDevices"
	} else if o.shelves[at] != "" {
		other = "dbDevices"
	}
	if other == "" {
		o.shelves[at], o.matchesSlot[at] = w.part, d
		return
	}
	o.shared[at] = true
	o.Problems = append(o.Problems, fmt.Sprintf("%s is matched by %s and by %s, so neither uses it: narrow one of "+
		"them (such as by size, model or 'rotational'), or list the disk in spec.exclude", text(at.Host, d), other, w.field))
}

// giveSlots gives each OSD that is new its places for database and log. Where a host has none for them its new disks are not taken.
func (o *Outcome) giveSlots(hosts []api.Host, env *Env) {
	all := wishes(&o.Group.Spec)
	for i := range hosts {
		h := &hosts[i]
		var fresh []*api.GroupDevice
		for i := range o.Devices {
			if d := &o.Devices[i]; d.Host == h.Name && o.fresh[Place{d.Host, d.ID}] {
				fresh = append(fresh, d)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		if why := o.giveAll(h, all, fresh, env); why != "" {
			o.Problems = append(o.Problems, why)
			o.withdraw(h.Name)
		}
	}
}

func (o *Outcome) giveAll(h *api.Host, all []wish, fresh []*api.GroupDevice, env *Env) string {
	var serves []string
	for _, w := range all {
		texts, why := o.giveOn(h, w, fresh, env)
		if why != "" {
			return why
		}
		serves = append(serves, texts...)
	}
	o.Serves = append(o.Serves, serves...)
	return ""
}

// withdraw takes back what is new on a host. It is looked at again in the next run.
func (o *Outcome) withdraw(host string) {
	o.Devices = slices.DeleteFunc(o.Devices, func(d api.GroupDevice) bool { return d.Host == host && o.fresh[Place{d.Host, d.ID}] })
	if !slices.Contains(o.Unseen, host) {
		o.Unseen = append(o.Unseen, host)
		slices.Sort(o.Unseen)
	}
}

// giveOn gives the new OSDs of a host their places for one part, each on the disk that serves the fewest, and says which those are, or why
// it cannot.
func (o *Outcome) giveOn(h *api.Host, w wish, fresh []*api.GroupDevice, env *Env) (serves []string, why string) {
	shelves := o.shelvesOn(h, w, env)
	if len(shelves) == 0 {
		return nil, o.noShelf(h, w)
	}
	for _, d := range fresh {
		s := fewest(shelves, w)
		if s == nil {
			return nil, noRoom(h, w, shelves, len(fresh))
		}
		s.served, s.room, s.given = s.served+1, s.room-s.size, append(s.given, d)
	}
	total := 0
	for _, s := range shelves {
		total += s.served
	}
	for _, s := range shelves {
		if len(s.given) == 0 {
			continue
		}
		if s.size == 0 {
			share := max(s.served, (total+len(shelves)-1)/len(shelves), w.slots)
			s.size = s.room / int64(share) / grain * grain
		}
		if s.size < w.least {
			return nil, fmt.Sprintf("%s is too small for the %s of %s: each would have %s, but needs %s; select larger or "+
				"more disks in %s, fewer in dataDevices, or remove %s",
				text(h.Name, s.device), w.what, words.Plural(s.served, "OSD"), SizeText(s.size), SizeText(w.least), w.field, w.field)
		}
		for _, d := range s.given {
			setSlot(d, w.part, s)
		}
		serves = append(serves, servesText(h.Name, w, s))
	}
	return serves, ""
}

func setSlot(d *api.GroupDevice, part Part, s *shelf) {
	slot := &api.DeviceSlot{ID: s.id, Serial: s.serial, Size: *resource.NewQuantity(s.size, resource.BinarySI)}
	if part == DB {
		d.DB = slot
		return
	}
	d.WAL = slot
}

func servesText(host string, w wish, s *shelf) string {
	names := make([]string, len(s.given))
	for i, d := range s.given {
		names[i] = cmp.Or(d.Serial, d.ID)
		if d.Data != nil {
			names[i] = cmp.Or(d.Serial, d.Data.ID)
		}
	}
	return fmt.Sprintf("%s holds the %s of the OSDs on %s, %s each", text(host, s.device), w.what, words.Few(slices.Compact(names)), SizeText(s.size))
}

// fewest is the disk with room that serves the fewest, or nil.
func fewest(shelves []*shelf, w wish) *shelf {
	var best *shelf
	for _, s := range shelves {
		full := w.slots > 0 && s.served >= w.slots || s.size > 0 && s.room < s.size || s.device == nil
		if !full && (best == nil || s.served < best.served) {
			best = s
		}
	}
	return best
}

// shelvesOn are the disks of a host for a part, sorted by their ids: those that serve already, and those that match.
func (o *Outcome) shelvesOn(h *api.Host, w wish, env *Env) []*shelf {
	byID := map[string]*shelf{}
	for i := range o.Devices {
		d := &o.Devices[i]
		slot := Slot(d, w.part)
		if d.Host != h.Name || slot == nil {
			continue
		}
		s := byID[slot.ID]
		if s == nil {
			s = &shelf{id: slot.ID, serial: slot.Serial, size: cmp.Or(w.size, slot.Size.Value())}
			s.device = inventoried(h, slot.ID)
			byID[slot.ID] = s
		}
		s.served++
		s.room -= slot.Size.Value()
	}
	for at, part := range o.shelves {
		if d := o.matchesSlot[at]; at.Host == h.Name && part == w.part && !o.shared[at] && byID[at.ID] == nil {
			byID[at.ID] = &shelf{id: at.ID, serial: d.Serial, device: d, size: w.size}
		}
	}
	shelves := slices.SortedFunc(maps.Values(byID), func(a, b *shelf) int { return cmp.Compare(a.id, b.id) })
	for _, s := range shelves {
		if s.device != nil {
			s.room += Usable(s.device.Size.Value()) - o.kept(h, s.id, env)
		}
	}
	return shelves
}

func inventoried(h *api.Host, id string) *api.Device {
	i := slices.IndexFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id })
	if i < 0 {
		return nil
	}
	return &h.Status.Devices[i]
}

// kept is how much of a disk is taken by partitions that are none of the group's slots and do not go by themselves.
func (o *Outcome) kept(h *api.Host, id string, env *Env) (size int64) {
	own := map[string]bool{}
	for _, d := range o.Devices {
		for _, part := range Parts {
			own[env.Partition(Place{d.Host, d.ID}, part)] = true
		}
	}
	for i := range h.Status.Devices {
		if p := &h.Status.Devices[i]; p.Parent == id && !own[p.ID] && !env.Leaving(Place{h.Name, p.ID}) {
			size += p.Size.Value()
		}
	}
	return size
}

func (o *Outcome) noShelf(h *api.Host, w wish) string {
	if near := o.nearSlot[hostPart{h.Name, w.part}]; len(near) > 0 {
		return fmt.Sprintf("no disk of host %s is used, because it has none for the %s of its OSDs: %s selects no disk; "+
			"closest: %s", h.Name, w.what, w.field, words.Few(near))
	}
	return fmt.Sprintf("no disk of host %s is used, because it has none for the %s of its OSDs: %s selects no empty "+
		"disk; widen the filters, add a disk, remove the host from the placement, or remove %s",
		h.Name, w.what, w.field, w.field)
}

// noRoom says why a host's disks do not hold the parts of all its new OSDs.
func noRoom(h *api.Host, w wish, shelves []*shelf, fresh int) string {
	have := make([]string, len(shelves))
	for i, s := range shelves {
		have[i] = fmt.Sprintf("%s serves %s and has %s left", s.id, words.Plural(s.served-len(s.given), "OSD"), SizeText(max(0, s.room+int64(len(s.given))*s.size)))
		if s.device == nil {
			have[i] = s.id + " is missing"
		}
	}
	return fmt.Sprintf("no disk for %s of host %s is used, because there is no space for the %s (disk %s); select larger "+
		"or more disks in %s, make %s smaller or %s larger, free the space of removed OSDs there, or select fewer disks",
		words.Plural(fresh, "new OSD"), h.Name, w.what, words.Few(have), w.field, w.sizeOf, w.slotsOf)
}
