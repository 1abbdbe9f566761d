package drives

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Place is a disk of a host.
type Place struct{ Host, ID string }

// Outcome is what a group comes to.
type Outcome struct {
	Group *api.DriveGroup
	// Devices are the disks that it has when this is carried out, sorted, and Candidates those that match and that nobody said a word of.
	Devices, Candidates []api.GroupDevice
	// Unseen are hosts whose disks are not known yet.
	Unseen []string
	// Selection stands for what the group selects by.
	Selection string
	// Unmatched says which entries of spec.exclude and spec.replace mean no disk.
	Unmatched []string
	// Problems say why it, or a part of it, cannot be carried out, Waits what is not there yet, and Others why disks are left alone. Serves
	// says which disk holds the databases or the logs of which new OSDs.
	Problems, Waits, Others, Serves []string

	matches     map[Place]*api.Device       // not taken before, or not all of it
	gaps        map[Place][]api.GroupDevice // what is missing of these
	divided     map[Place]*api.DeviceSlot   // a part of each disk that is divided already
	shelves     map[Place]Part              // what else matches, for databases or logs
	matchesSlot map[Place]*api.Device       // these as they are
	shared      map[Place]bool              // what another group or another filter of this one matches, too
	fresh       map[Place]bool              // those of Devices that are taken now
	spared      bool                        // spec.exclude names a disk that is there
	hosts       int
	near        []string
	nearSlot    map[hostPart][]string
}

// Env is what a decision depends on beside the groups and the hosts.
type Env struct {
	// Claimed says who else has a claim to a disk; empty when nobody has.
	Claimed func(Place) string
	// Partition is the identity of the partition that holds a part of the OSD on a device.
	Partition func(Place, Part) string
	// Share is the identity of one of the partitions that a disk is divided into for several OSDs.
	Share func(disk Place, number int) string
	// Leaving says whether a partition is that of an OSD that leaves and takes it along.
	Leaving func(Place) bool
}

// Decide says what groups come to on these hosts.
func Decide(groups []*api.DriveGroup, hosts []api.Host, env *Env) []*Outcome {
	all := make([]*Outcome, len(groups))
	for i, g := range groups {
		all[i] = newOutcome(g)
		all[i].look(hosts, env, func(at Place) string { return cmp.Or(heldBy(groups, g, at), env.Claimed(at)) })
	}
	for i, o := range all {
		o.refuseShared(all[:i], all[i+1:])
	}
	for _, o := range all {
		o.choose(env)
		o.encrypt(hosts)
		o.giveSlots(hosts, env)
		o.tellDivided(hosts)
		slices.SortFunc(o.Devices, func(a, b api.GroupDevice) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
	}
	return all
}

func newOutcome(g *api.DriveGroup) *Outcome {
	return &Outcome{
		Group: g, Selection: selection(&g.Spec), matches: map[Place]*api.Device{}, gaps: map[Place][]api.GroupDevice{}, divided: map[Place]*api.DeviceSlot{}, shelves: map[Place]Part{}, matchesSlot: map[Place]*api.Device{},
		shared: map[Place]bool{}, fresh: map[Place]bool{}, nearSlot: map[hostPart][]string{},
	}
}

// heldBy is another group that has a disk.
func heldBy(groups []*api.DriveGroup, own *api.DriveGroup, at Place) string {
	for _, g := range groups {
		if g != own && (Holds(g, at) || serves(g.Status.Devices, at) != "") {
			return "DriveGroup " + g.Name
		}
	}
	return ""
}

// Holds says whether a group has taken a disk and is not told to give it up.
func Holds(g *api.DriveGroup, at Place) bool {
	return slices.ContainsFunc(g.Status.Devices, func(d api.GroupDevice) bool { return d.Host == at.Host && d.ID == at.ID }) && !excluded(g, at, nil)
}

// look goes through the disks of the hosts that the group selects.
func (o *Outcome) look(hosts []api.Host, env *Env, claimed func(Place) string) {
	g := o.Group
	for _, d := range g.Status.Devices {
		if at := (Place{d.Host, d.ID}); !excluded(g, at, nil) {
			o.Devices = append(o.Devices, d)
			if d.Data != nil {
				o.divided[Place{d.Host, d.Data.ID}] = d.Data
			}
		}
	}
	missing := slices.Clone(g.Spec.Placement.Hosts)
	for i := range hosts {
		h := &hosts[i]
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == h.Name })
		if !g.Spec.Placement.Selects(h) {
			continue
		}
		o.hosts++
		if holds(g) {
			continue
		}
		if h.Status.BootID == "" && len(h.Status.Devices) == 0 {
			o.Unseen = append(o.Unseen, h.Name)
			o.Waits = append(o.Waits, fmt.Sprintf("host %s has not reported its devices yet", h.Name))
			continue
		}
		o.lookAt(h, claimed)
		o.lookForGaps(h, env)
		o.lookForSlots(h, claimed)
	}
	if holds(g) {
		// What was not looked at then is looked at when the group takes disks again.
		o.Selection, o.Unseen = g.Status.Selection, slices.Clone(g.Status.Unseen)
		o.Unmatched = unmatched(g, hosts)
		return
	}
	for _, name := range missing {
		o.Unseen = append(o.Unseen, name)
		o.Waits = append(o.Waits, fmt.Sprintf("host %s does not exist: check that it has joined", name))
	}
	slices.Sort(o.Unseen)
	if len(o.Unseen) == 0 {
		o.Unmatched = unmatched(g, hosts)
	}
}

func (o *Outcome) lookAt(h *api.Host, claimed func(Place) string) {
	g := o.Group
	held := func(id string) bool { return Holds(g, Place{h.Name, id}) || o.divided[Place{h.Name, id}] != nil }
	leave := func(d *api.Device, why string) {
		o.Others = append(o.Others, fmt.Sprintf("%s: %s", text(h.Name, d), why))
	}
	for _, v := range Match(g.Spec.DataDevices, h, g.Spec.Take, held) {
		at := Place{h.Name, v.Device.ID}
		asked := Named(v.Device, g.Spec.Take)
		switch by := claimed(at); {
		case excluded(g, at, v.Device):
			o.spared = true
			leave(v.Device, listed(g, v.Device)+" lists it")
		case serves(o.Devices, at) != "":
			// It is not left alone.
		case by != "":
			leave(v.Device, by+" uses it")
		case v.Matches, asked && v.Device.Taken() == "":
			o.matches[at] = v.Device
			if v.Note != "" {
				leave(v.Device, v.Note)
			}
		case asked:
			o.Problems = append(o.Problems, fmt.Sprintf("cannot use %s of spec.take: %s", text(h.Name, v.Device), v.Why))
		default:
			leave(v.Device, v.Why)
			if v.Near {
				o.near = append(o.near, fmt.Sprintf("%s: %s", text(h.Name, v.Device), v.Why))
			}
		}
	}
}

// refuseShared takes out what another group matches, too.
func (o *Outcome) refuseShared(others ...[]*Outcome) {
	for _, other := range slices.Concat(others...) {
		for _, at := range o.places() {
			if d := cmp.Or(other.matches[at], other.matchesSlot[at]); d != nil {
				o.shared[at] = true
				o.Problems = append(o.Problems, fmt.Sprintf("%s is matched by DriveGroup %s, too, so neither uses it: narrow "+
					"the filters or the placement of one, or list the disk in its spec.exclude", text(at.Host, d), other.Group.Name))
			}
		}
	}
}

// places are the disks that match for anything, in order.
func (o *Outcome) places() []Place {
	all := maps.Clone(o.matches)
	maps.Copy(all, o.matchesSlot)
	return slices.SortedFunc(maps.Keys(all), func(a, b Place) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.ID, b.ID)) })
}

// choose parts what matches into what is taken and what waits for a word.
func (o *Outcome) choose(env *Env) {
	for _, at := range o.places() {
		d := o.matches[at]
		switch {
		case d == nil || o.shared[at]:
		case o.gaps[at] != nil:
			for _, x := range o.gaps[at] {
				o.chooseOne(at, d, []api.GroupDevice{x}, x.ID)
			}
		default:
			switch parts, err := o.partsOf(at, d, env); {
			case err == nil:
				o.chooseOne(at, d, parts, at.ID)
			case o.takes(at, d, at.ID):
				o.Problems = append(o.Problems, err.Error())
			default:
				o.Others = append(o.Others, err.Error())
			}
		}
	}
	if len(o.Devices)+len(o.matches)+len(o.Unseen) > 0 || o.spared {
		return
	}
	switch {
	case o.hosts > 0 && holds(o.Group):
	case o.hosts == 0:
		o.Problems = append(o.Problems, "its placement selects no host: see names and labels with 'holdfast host list'")
	case len(o.near) > 0:
		o.Problems = append(o.Problems, "it selects no disk; closest: "+words.Few(o.near))
	default:
		o.Problems = append(o.Problems, fmt.Sprintf("it selects no disk of %s", words.Plural(o.hosts, "host")))
	}
}

// holds says whether a group keeps what it has, and takes nothing else.
func holds(g *api.DriveGroup) bool { return g.Spec.NewDevices == api.NewDevicesHold }

// takes says whether what matches is taken, and not only told of: it is there since the group was carried out, or is named, by its own name or that
// of its disk.
func (o *Outcome) takes(at Place, d *api.Device, id string) bool {
	g := o.Group
	return g.Status.Selection != o.Selection || g.Spec.NewDevices == api.NewDevicesTake || slices.Contains(g.Status.Unseen, at.Host) || Named(d, g.Spec.Take) ||
		slices.Contains(g.Spec.Take, id)
}

// chooseOne takes the parts of a disk, all or none, or has them wait for a word.
func (o *Outcome) chooseOne(at Place, d *api.Device, parts []api.GroupDevice, id string) {
	if o.takes(at, d, id) {
		for _, x := range parts {
			o.Devices, o.fresh[Place{x.Host, x.ID}] = append(o.Devices, x), true
		}
		return
	}
	what := text(at.Host, d)
	if id != at.ID {
		what = "partition " + id + " of " + what
	}
	o.Candidates = append(o.Candidates, api.GroupDevice{Host: at.Host, ID: id, Serial: d.Serial})
	o.Others = append(o.Others, what+": it matches, but was added or emptied later: to use it, list it in spec.take")
}

// text names a disk by its host, id and what stands on it.
func text(host string, d *api.Device) string {
	facts := strings.Join(strings.Fields(d.Model+" "+d.Serial+" "+SizeText(d.Size.Value())), " ")
	return fmt.Sprintf("disk %s (%s) of host %s", d.ID, facts, host)
}

// selection is a digest of what a group selects by.
func selection(s *api.DriveGroupSpec) string {
	data, err := json.Marshal([]any{s.Placement, s.DataDevices})
	if err != nil {
		panic(err) // our own types can be encoded
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
