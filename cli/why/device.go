package why

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// withDevice adds to the answer for a daemon that does not run what its host says of its devices: that one is there
// by two paths, that one is not there, or why one cannot be used.
func withDevice(w *World, a Answer, d *api.Daemon) Answer {
	i := slices.IndexFunc(w.Hosts, func(h api.Host) bool { return h.Name == d.Spec.Host })
	if i < 0 || silent(&w.Hosts[i]) != nil || len(w.Hosts[i].Status.Devices) == 0 || d.DeletionTimestamp != nil {
		return a
	}
	runs := d.Status.State == api.DaemonRunning && asWanted(d)
	for _, x := range d.Spec.Devices {
		if x.Of != "" || slices.ContainsFunc(w.Hosts[i].Status.Devices, func(h api.Device) bool { return h.ID == x.ID }) {
			continue
		}
		if trouble, is := missing(&w.Hosts[i], x.ID, runs); is {
			return answered(join(a.Text, trouble.Text), trouble.Next).because(trouble.Reason)
		}
	}
	return a
}

// missing says why a host does not have a device by its identity.
func missing(h *api.Host, id string, runs bool) (Answer, bool) {
	var paths []string
	for i := range h.Status.Devices {
		if isPath(&h.Status.Devices[i], id) {
			paths = append(paths, h.Status.Devices[i].Path)
		}
	}
	switch {
	case len(paths) > 1:
		both := strings.Join(paths, " and ")
		return answered(
			fmt.Sprintf("Host %s has disk %s twice, as %s: they are two paths to one disk, or one is a copy of the other.",
				h.Name, id, both),
			fmt.Sprintf("disconnect one of the two (%s) from host %s, so that the disk is there once; the agent then takes it "+
				"again by itself.", both, h.Name)).because(api.ReasonSecondPath), true
	case runs:
		return Answer{}, false // a device that was just given another name
	}
	return answered(fmt.Sprintf("Host %s does not have its disk %s.", h.Name, id),
		fmt.Sprintf("plug the disk in again; if it is gone for good, remove it from its StorageNode. 'holdfast get host %s "+
			"-o yaml' lists the devices.", h.Name)).because(api.ReasonDeviceUnavailable), true
}

// isPath says whether a device without an identity of its own, as others have the same, is a path to a disk.
func isPath(d *api.Device, id string) bool {
	serial := "serial-" + strings.Join(strings.Fields(d.Model), "_") + "-" + strings.Join(strings.Fields(d.Serial), "_")
	return strings.HasPrefix(d.ID, "unstable-") && (d.WWN != "" && id == "wwn-"+d.WWN || d.Serial != "" && id == serial)
}
