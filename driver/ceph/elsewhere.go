package ceph

import (
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Elsewhere says whether the disk of an OSD is in another host than its daemon, by what the label
// on it says: there it is left as it is, and the OSD follows it when it is named.
func (d *Driver) Elsewhere(daemon *api.Daemon, hosts []api.Host) bool {
	uuid, found := daemon.Spec.Parameters[ParamOSDUUID], false
	if uuid == "" || len(daemon.Spec.Devices) != 1 {
		return false
	}
	for _, h := range hosts {
		own := h.Name == daemon.Spec.Host
		if own && (!h.AgentHeard() || h.Status.BootID == "") {
			return false
		}
		for _, x := range h.Status.Devices {
			has := x.Ceph != nil && x.Ceph.Part == "" && strings.EqualFold(x.Ceph.OSDUUID, uuid)
			if own && (has || x.ID == daemon.Spec.Devices[0].ID) {
				return false
			}
			found = found || has
		}
	}
	return found
}
