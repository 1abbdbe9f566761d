package engine

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/devicename"
	"github.com/holdfast-storage/holdfast/internal/exclusions"
)

// unstablePrefix starts the ID of a device that has no lasting identity (see api.Device.ID).
const unstablePrefix = "unstable-"

// resolveDevices finds out what each entry of spec.devices means on the node's host.
func (r *ResolvedNode) resolveDevices(claims claimIndex, cluster types.NamespacedName) {
	r.Out = exclusions.Of(r.Node, r.Host)
	r.Devices = recordedDevices(r.Node, r.Out)
	inventory := r.Host.Status.Devices
	// An agent always reports its boot together with its inventory. Without it an empty list means "not known yet".
	if r.Host.Status.BootID == "" && len(inventory) == 0 {
		if len(r.Devices) > 0 {
			r.Waits = append(r.Waits, fmt.Sprintf("host %s has not reported its devices yet", r.Host.Name))
		}
		return
	}
	for i := range r.Devices {
		lookUp(&r.Devices[i], r.Host)
	}
	r.refuseTwins()
	r.refuseClaimed(claims, cluster)
}

// recordedDevices returns the entries of spec.devices with the identities that were recorded for
// them, without those that spec.exclude or spec.replace takes out.
func recordedDevices(node *api.StorageNode, out exclusions.Set) []ResolvedDevice {
	devices := make([]ResolvedDevice, 0, len(node.Spec.Devices))
	for _, name := range node.Spec.Devices {
		if !out.Leaves(name) {
			devices = append(devices, ResolvedDevice{Name: name, ID: recordedID(node, name)})
		}
	}
	return devices
}

func recordedID(node *api.StorageNode, name string) string {
	for _, d := range node.Status.Devices {
		if d.Name == name {
			return d.ID
		}
	}
	return ""
}

// lookUp finds the device of an entry. An entry that has an identity already is looked up by nothing else.
func lookUp(d *ResolvedDevice, host *api.Host) {
	if d.ID != "" {
		if d.Device = deviceByID(host.Status.Devices, d.ID); d.Device == nil {
			d.Problem = fmt.Sprintf("device %s (%s) is missing on host %s: was it removed, or did it fail?",
				d.Name, d.ID, host.Name)
		}
		return
	}
	found := devicename.Match(host.Status.Devices, d.Name)
	switch {
	case len(found) == 0:
		d.Problem = fmt.Sprintf("device %s: no device of host %s matches; list its devices with 'holdfast get host %s -o "+
			"yaml'", d.Name, host.Name, host.Name)
	case len(found) > 1:
		d.Problem = fmt.Sprintf("device %s matches %d devices of host %s (%s): name one of them",
			d.Name, len(found), host.Name, devicename.IDs(found))
	case strings.HasPrefix(found[0].ID, unstablePrefix):
		d.Device = found[0]
		d.Problem = fmt.Sprintf("device %s (%s on host %s) has no persistent id (WWN, serial number or partition id): "+
			"after a reboot it could be confused with another device", d.Name, found[0].Path, host.Name)
	default:
		d.ID, d.Device = found[0].ID, found[0]
	}
}

func deviceByID(devices []api.Device, id string) *api.Device {
	for i := range devices {
		if devices[i].ID == id {
			return &devices[i]
		}
	}
	return nil
}

// refuseTwins notes a problem for each entry that means the device of another entry. The entry that
// was recorded keeps the device; among equals, the first.
func (r *ResolvedNode) refuseTwins() {
	holder := map[string]int{}
	for i, d := range r.Devices {
		if d.ID == "" {
			continue
		}
		h, taken := holder[d.ID]
		switch {
		case !taken:
			holder[d.ID] = i
		case recordedID(r.Node, r.Devices[h].Name) == "" && recordedID(r.Node, d.Name) != "":
			holder[d.ID] = i
			r.Devices[h].Problem = twinText(r.Devices[h], d)
		default:
			r.Devices[i].Problem = twinText(d, r.Devices[h])
		}
	}
}

func twinText(d, other ResolvedDevice) string {
	return fmt.Sprintf("device %s is the same device as %s (%s): name it once", d.Name, other.Name, d.ID)
}

// refuseClaimed notes a problem for each device that something else claims with better right.
func (r *ResolvedNode) refuseClaimed(claims claimIndex, cluster types.NamespacedName) {
	for i := range r.Devices {
		d := &r.Devices[i]
		if d.ID == "" || d.Problem != "" {
			continue
		}
		own := Claim{
			Host: r.Host.Name, DeviceID: d.ID, Node: key(r.Node.Namespace, r.Node.Name),
			Recorded: recordedID(r.Node, d.Name) != "", Since: r.Node.CreationTimestamp.Time,
		}
		disk := ""
		if d.Device != nil {
			disk = d.Device.Parent
		}
		if c := claims.stronger(own, disk, cluster); c != nil {
			d.Problem = fmt.Sprintf("device %s (%s) is claimed by %s: a device can serve one node only", d.Name, d.ID, c.owner())
		}
	}
}
