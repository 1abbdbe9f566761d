package plans

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The verbs of changes.
const (
	VerbApply   = "Apply"
	VerbDelete  = "Delete"
	VerbCreate  = "Create"
	VerbChange  = "Change"
	VerbRemove  = "Remove"
	VerbCommand = "Command"
)

// Change is one thing that will happen.
type Change struct {
	// Cluster is the cluster that it happens in, as NAMESPACE/NAME; empty for what happens to the objects themselves.
	Cluster string
	Step    int
	Verb    string
	// Object is what changes, such as daemon/ceph-osd-3.
	Object string
	// Label is what the storage system's people call it: osd.3.
	Label   string
	Host    string
	Devices []Device
	// State is how far a daemon is brought.
	State api.WantedState
	// Fields are what changes of an object.
	Fields []FieldChange
	Reason string
	Risk   api.Risk
}

// Device is a device, known by what stays the same.
type Device struct{ ID, Model, Serial, Size string }

// DeviceOf takes from an inventory what people know a device by.
func DeviceOf(d *api.Device) Device {
	size := ""
	if !d.Size.IsZero() {
		size = sizeText(d.Size.Value())
	}
	return Device{ID: d.ID, Model: strings.TrimSpace(d.Model), Serial: d.Serial, Size: size}
}

// sizeText is a size with three digits at most.
func sizeText(bytes int64) string {
	size, unit := float64(bytes), ""
	for _, unit = range []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"} {
		if size < 1000 || unit == "PiB" {
			break
		}
		size /= 1024
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", size), ".0") + " " + unit
}

// text is such as "SAMSUNG MZ7LH3T8 S4F2NX0M 3.5 TiB".
func (d Device) text() string {
	return strings.Join(strings.Fields(d.Model+" "+d.Serial+" "+d.Size), " ")
}

func (d Device) String() string {
	if text := d.text(); text != "" {
		return d.ID + " (" + text + ")"
	}
	return d.ID
}

// FromProjection lists what will happen to a cluster, in that order. A step of which there is nothing to tell, as when a key that counts no more is
// forgotten, has no number.
func FromProjection(p *engine.Projection) []Change {
	var all []Change
	number := 1
	for _, step := range p.Steps {
		if changes := fromStep(number, step); len(changes) > 0 {
			all = append(all, changes...)
			number++
		}
	}
	return all
}

func fromStep(number int, step engine.ProjectedStep) []Change {
	v, p := step.View, step.Plan
	cluster := v.Cluster.Namespace + "/" + v.Cluster.Name
	devices := inventory(v)
	daemon := func(d *api.Daemon) Change {
		c := Change{
			Cluster: cluster, Step: number, Object: "daemon/" + d.Name, Label: Label(d), Host: d.Spec.Host, State: d.Spec.State,
		}
		for _, x := range d.Spec.Devices {
			c.Devices = append(c.Devices, devices(d.Spec.Host, x))
		}
		return c
	}
	var all []Change
	for i := range p.Daemons {
		change := &p.Daemons[i]
		c := daemon(&change.Daemon)
		c.Verb, c.Reason, c.Risk = VerbChange, change.Reason, change.Risk
		if change.New {
			c.Verb = VerbCreate
		}
		all = append(all, c)
	}
	for _, r := range p.Remove {
		if i := slices.IndexFunc(v.Daemons, func(d api.Daemon) bool { return d.Name == r.Name }); i >= 0 {
			c := daemon(&v.Daemons[i])
			c.Verb, c.Reason, c.Risk = VerbRemove, r.Reason, r.Risk
			all = append(all, c)
		}
	}
	for _, x := range p.Commands {
		all = append(all, Change{
			Cluster: cluster, Step: number, Verb: VerbCommand, Object: x.Verb, Label: x.Object, Reason: x.Reason, Risk: x.Risk,
		})
	}
	return all
}

// inventory finds devices by host and identity. Of one that is a part of another it tells that.
func inventory(v *engine.View) func(host string, want api.DaemonDevice) Device {
	hosts := make(map[string]*api.Host, len(v.Hosts))
	for i := range v.Hosts {
		hosts[v.Hosts[i].Name] = &v.Hosts[i]
	}
	find := func(host, id string) Device {
		if h := hosts[host]; h != nil {
			if i := slices.IndexFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id }); i >= 0 {
				return DeviceOf(&h.Status.Devices[i])
			}
		}
		return Device{ID: id}
	}
	return func(host string, want api.DaemonDevice) Device {
		if want.Of == "" {
			return find(host, want.ID)
		}
		return Device{ID: want.ID, Size: fmt.Sprintf("%s: %s of %s", want.Name, sizeText(want.Bytes), find(host, want.Of))}
	}
}

// Label is what the storage system's own people call a daemon: mon.a, osd.0.
func Label(d *api.Daemon) string {
	_, kind, found := strings.Cut(d.Spec.Type, "-")
	if !found {
		kind = d.Spec.Type
	}
	return kind + "." + d.Spec.ID
}

// Risk is the highest risk of the changes.
func Risk(changes []Change) api.Risk {
	risk := api.RiskNone
	for _, c := range changes {
		risk = engine.HigherRisk(risk, c.Risk)
	}
	return risk
}

// stored is the change as a Plan keeps it.
func (c Change) stored() api.PlanChange {
	return api.PlanChange{
		Step: int32(c.Step), Verb: c.Verb, Object: words.Cut(c.Object, 256), Host: c.Host,
		Message: words.Cut(c.message(), 1024), Risk: cmp.Or(c.Risk, api.RiskNone),
	}
}

// message says in words what the other fields of a PlanChange do not.
func (c Change) message() string {
	var parts []string
	if c.Label != "" {
		parts = append(parts, c.Label)
	}
	if c.State != "" {
		parts = append(parts, "wanted "+string(c.State))
	}
	for _, d := range c.Devices {
		parts = append(parts, "on device "+d.String())
	}
	for _, f := range c.Fields {
		parts = append(parts, f.String())
	}
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	return strings.Join(parts, ", ")
}

// maxChanges is how many bytes of changes a Plan keeps at most.
const maxChanges = 256 << 10

// Store puts the changes into a proposal: their digest, and as many of them as there is room for.
func Store(changes []Change, to *api.PlanProposal) {
	var lines []string
	for _, c := range changes {
		lines = append(lines, c.Cluster+" "+line(c.stored())+" "+c.message())
		if c.Verb != VerbApply || c.Reason != unchanged { // one that stays as it is is told of, and is no change
			to.Count++
		}
	}
	to.Changes = Stored(changes, maxChanges)
	to.Digest, to.Risk = digest(lines), Risk(changes)
}

// Stored are the changes as a Plan keeps them: as many as come to so many bytes.
func Stored(changes []Change, most int) (all []api.PlanChange) {
	size := 0
	for _, c := range changes {
		s := c.stored()
		if size += len(line(s)) + 64; size > most {
			break
		}
		all = append(all, s)
	}
	return all
}

func line(c api.PlanChange) string {
	text := fmt.Sprintf("%s %s", strings.ToLower(c.Verb), c.Object)
	if c.Host != "" {
		text += " on " + c.Host
	}
	if c.Message != "" {
		text += " (" + c.Message + ")"
	}
	return text
}

// UnnamedData says, in sentences, which data is destroyed now that a Plan does not tell of. How far a daemon was brought meanwhile makes no other data
// of it; a command says in its words what it is about.
func UnnamedData(was, now *api.PlanProposal) []string {
	data := func(c api.PlanChange) string {
		if c.Verb == VerbCommand {
			return line(c)
		}
		return c.Verb + " " + c.Object + " on " + c.Host
	}
	named := map[string]bool{}
	for _, c := range was.Changes {
		named[data(c)] = named[data(c)] || c.Risk == api.RiskData
	}
	var all []string
	if more := now.DestroysCount; int(more) > len(now.Destroys) && more > was.DestroysCount {
		all = append(all, fmt.Sprintf("%d changes would destroy data now, and %d in the plan", more, was.DestroysCount))
	}
	for _, c := range now.Destroys {
		if c.Risk == api.RiskData && !named[data(c)] {
			all = append(all, "this would destroy data now, but not in the plan: "+line(c))
		}
	}
	return all
}

// Differs says, in sentences, what would happen now instead of what a Plan tells; nothing where it is the same.
func Differs(was, now *api.PlanProposal) []string {
	if was.Digest == now.Digest {
		return nil
	}
	const most = 10
	before, after := map[string]bool{}, map[string]bool{}
	for _, c := range was.Changes {
		before[line(c)] = true
	}
	var all []string
	for _, c := range now.Changes {
		after[line(c)] = true
		if !before[line(c)] {
			all = append(all, "this would happen now, but is not in the plan: "+line(c))
		}
	}
	for _, c := range was.Changes {
		if !after[line(c)] {
			all = append(all, "this is in the plan, but would not happen now: "+line(c))
		}
	}
	if len(all) == 0 {
		return []string{"the same things would happen in another order or number"}
	}
	if n := len(all); n > most {
		all = append(all[:most], fmt.Sprintf("and %d more", n-most))
	}
	return all
}
