// Package hostaction is what the leader and the agents share of the actions on the hardware of a
// host: how an Action names a device, and what can be refused of one by the inventory alone. It is
// pure.
package hostaction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/devicename"
)

// The kinds. Their Actions lie in the namespace holdfast-system, with spec.host set. The target of
// Rescan is "host/NAME", that of the others "device/DEVICE".
const (
	Rescan = "host.rescan"
	Wipe   = "device.wipe"
	Light  = "device.light"
)

// The parameters.
const (
	// ParamDevice names the device by its id, WWN, serial number or path. Without it the target
	// does.
	ParamDevice = "device"
	// ParamConfirm is the id of the device that is wiped.
	ParamConfirm = "confirm"
	// ParamLight is Ident or Fault, and ParamState On or Off.
	ParamLight = "light"
	ParamState = "state"
)

// The values of parameters.
const (
	Ident = "ident"
	Fault = "fault"
	On    = "on"
	Off   = "off"
)

const (
	targetHost   = "host/"
	targetDevice = "device/"
	// unstable starts the ID of a device without a lasting identity (api.Device).
	unstable = "unstable-"
)

// Knows says whether an Action is of one of these kinds.
func Knows(a *api.Action) bool { return a.Spec.Kind == Rescan || OnDevice(a) }

// OnDevice says whether an Action is one on a device.
func OnDevice(a *api.Action) bool { return a.Spec.Kind == Wipe || a.Spec.Kind == Light }

// refusal is an error that says why something cannot be done, and nothing else.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return action.ErrRefused }

// Refuse makes an error that wraps action.ErrRefused.
func Refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// Check refuses an Action of these kinds that does not say what it has to say. The error wraps
// action.ErrRefused.
func Check(a *api.Action) error {
	host, p := a.Spec.Host, a.Spec.Parameters
	switch {
	case a.Namespace != api.SystemNamespace:
		return Refuse("an action of kind %s must be in namespace %s, not %s",
			a.Spec.Kind, api.SystemNamespace, a.Namespace)
	case host == "":
		return Refuse("spec.host must name the host")
	case a.Spec.Kind == Rescan && a.Spec.Target != targetHost+host:
		return Refuse("spec.target must be %s%s, not %q", targetHost, host, a.Spec.Target)
	case a.Spec.Kind == Rescan:
		return nil
	case !strings.HasPrefix(a.Spec.Target, targetDevice) || a.Spec.Target == targetDevice:
		return Refuse("spec.target must be %sDEVICE, not %q", targetDevice, a.Spec.Target)
	case a.Spec.Kind == Wipe && p[ParamConfirm] == "":
		return Refuse("the parameter %q must be the id of the device to wipe: see 'holdfast host show %s'",
			ParamConfirm, host)
	case a.Spec.Kind == Wipe:
		return nil
	case p[ParamLight] != Ident && p[ParamLight] != Fault:
		return Refuse("the parameter %q is %q, but must be %s or %s", ParamLight, p[ParamLight], Ident, Fault)
	case p[ParamState] != On && p[ParamState] != Off:
		return Refuse("the parameter %q is %q, but must be %s or %s", ParamState, p[ParamState], On, Off)
	}
	return nil
}

// Device is the device that an Action means, of the inventory of its host. Its target and its
// parameter have to mean the same one, and its confirmation, too. The error wraps
// action.ErrRefused.
func Device(a *api.Action, inventory []api.Device) (*api.Device, error) {
	d, err := named(a, inventory, strings.TrimPrefix(a.Spec.Target, targetDevice))
	if err != nil {
		return nil, err
	}
	if name := string(a.Spec.Parameters[ParamDevice]); name != "" {
		other, err := named(a, inventory, name)
		if err != nil {
			return nil, err
		}
		if other != d {
			return nil, Refuse("spec.target means device %s, and the parameter %q device %s",
				d.ID, ParamDevice, other.ID)
		}
	}
	if sure := string(a.Spec.Parameters[ParamConfirm]); a.Spec.Kind == Wipe && sure != d.ID {
		return nil, Refuse("the parameter %q is %q, but the device (%s) is %s", ParamConfirm, sure, d.Path, d.ID)
	}
	return d, nil
}

// Confirmed is the device whose wiping an Action confirms, by its id. The error wraps
// action.ErrRefused.
func Confirmed(a *api.Action, inventory []api.Device) (*api.Device, error) {
	sure := string(a.Spec.Parameters[ParamConfirm])
	if i := slices.IndexFunc(inventory, func(d api.Device) bool { return d.ID == sure }); i >= 0 {
		return &inventory[i], nil
	}
	return nil, Refuse("host %s has no device %s now", a.Spec.Host, sure)
}

func named(a *api.Action, inventory []api.Device, name string) (*api.Device, error) {
	switch found := devicename.Match(inventory, name); len(found) {
	case 0:
		return nil, Refuse("no device of host %s matches %s: see 'holdfast host show %s'",
			a.Spec.Host, name, a.Spec.Host)
	case 1:
		return found[0], nil
	default:
		return nil, Refuse("%s matches %d devices of host %s (%s): name one of them",
			name, len(found), a.Spec.Host, devicename.IDs(found))
	}
}

// Wipeable refuses to wipe a device that is not a whole disk, or that has no lasting identity.
// A loop device counts as a disk, and stands for the file that it is made of.
func Wipeable(d *api.Device) error {
	switch {
	case strings.HasPrefix(d.ID, unstable):
		return Refuse("device %s has no persistent id (WWN or serial number), or shares it with another one: "+
			"after a reboot it could be confused with that; wipe it on its host", d.Path)
	case d.Parent != "" || d.Kind != api.DeviceDisk && d.Kind != api.DeviceLoop:
		return Refuse("device %s (%s) is not a whole disk, but of kind %s", d.ID, d.Path, d.Kind)
	}
	return nil
}

// Disk is a disk of an inventory, with its partitions.
func Disk(d *api.Device, inventory []api.Device) []*api.Device {
	all := []*api.Device{d}
	for i := range inventory {
		if inventory[i].Parent == d.ID {
			all = append(all, &inventory[i])
		}
	}
	return all
}

// ClaimedBy refuses to wipe a disk that a Daemon uses, or a part of which it uses. Its Daemon
// claims a disk before anything is made there, and until its agent has given it back.
func ClaimedBy(daemons []*api.Daemon, disk []*api.Device) error {
	for _, d := range daemons {
		for _, x := range d.Spec.Devices {
			uses := func(part *api.Device) bool { return x.ID == part.ID || x.Of == part.ID }
			if slices.ContainsFunc(disk, uses) {
				return Refuse("device %s is in use by daemon %s of cluster %s/%s: remove the daemon first",
					disk[0].ID, d.Name, d.Namespace, d.Spec.Cluster)
			}
		}
	}
	return nil
}
