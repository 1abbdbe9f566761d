package ceph

import (
	"fmt"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/labels"
	"github.com/holdfast-storage/holdfast/engine"
)

// Elsewhere implements engine.Wiper: the OSD follows its disk when that is named.
func (d *Driver) Elsewhere(daemon *api.Daemon, hosts []api.Host) bool {
	return labels.Elsewhere(daemon, daemon.Spec.Parameters[ParamOSDUUID], hosts)
}

// Needs implements engine.Labeler.
func (d *Driver) Needs(view *engine.View, device *api.Device) (why string, unknown bool) {
	c := labels.Cluster{FSID: clusterFSID(view), Silent: d.Unanswered(view) != "", OSDs: map[string]string{}}
	for i := range view.Daemons {
		c.OSDs[strings.ToLower(view.Daemons[i].Spec.Parameters[ParamOSDUUID])] = view.Daemons[i].Name
	}
	if o, _ := view.System.(*Observation); o != nil {
		for id, osd := range o.OSDs {
			c.OSDs[strings.ToLower(osd.UUID)] = fmt.Sprintf("osd.%d", id)
		}
	}
	return c.Needs(device)
}
