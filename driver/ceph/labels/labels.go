// Package labels says what the labels of OSDs on devices mean for a cluster, as the hosts report
// them. It is pure.
package labels

import (
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Elsewhere says whether the disk of an OSD is in another host than its daemon, by the uuid of the
// OSD on it.
func Elsewhere(daemon *api.Daemon, uuid string, hosts []api.Host) bool {
	found := false
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

// Cluster is what is known of a cluster and its OSDs.
type Cluster struct {
	FSID string
	// Silent is set where Ceph has OSDs and does not say which.
	Silent bool
	// OSDs names the OSDs that Ceph or Holdfast has, by their uuids in lower case.
	OSDs map[string]string
}

// Needs says why the cluster needs what is on a device; empty where it does not. unknown is set
// where only Ceph can say that, and does not. The label of a database or a log has no fsid: it may
// be any cluster's.
func (c *Cluster) Needs(device *api.Device) (why string, unknown bool) {
	l := device.Ceph
	if l == nil || l.OSDUUID == "" {
		return "", false
	}
	part := "data"
	if l.Part != "" {
		part = l.Part
	}
	if osd := c.OSDs[strings.ToLower(l.OSDUUID)]; osd != "" {
		why = fmt.Sprintf("by its label it holds the %s of %s (uuid %s), which is in the cluster", part, osd, l.OSDUUID)
		return why, false
	}
	return "", c.Silent && (l.FSID == "" || strings.EqualFold(l.FSID, c.FSID))
}
