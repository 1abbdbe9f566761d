package ceph

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A disk with the label of an OSD is needed while Ceph or Holdfast has that OSD, and only they can say that it is not.
func TestNeeds(t *testing.T) {
	view, o := adoptedView()
	view.Secrets = append(view.Secrets, engine.SecretInfo{
		Name: secretName(view.Cluster.Name, entityMon), Annotations: map[string]string{AnnotationFSID: adoptedFSID},
	})
	daemon := api.Daemon{Spec: api.DaemonSpec{Parameters: map[string]string{ParamOSDUUID: "uuid-of-a-new-one"}}}
	daemon.Name = "ceph-osd-9"
	view.Daemons = append(view.Daemons, daemon)
	for name, tt := range map[string]struct {
		uuid   string
		system *Observation
		needs  bool
		asks   bool
	}{
		"in Ceph's map":           {uuid: o.OSDs[2].UUID, system: o, needs: true},
		"not in Ceph's map":       {uuid: "uuid-of-an-old-one", system: o},
		"of a daemon":             {uuid: "UUID-of-a-new-one", system: o, needs: true},
		"of a daemon, not asked":  {uuid: "uuid-of-a-new-one", needs: true},
		"an old one, not asked":   {uuid: "uuid-of-an-old-one", asks: true},
		"Ceph does not answer":    {uuid: "uuid-of-an-old-one", system: &Observation{Error: "no answer"}, asks: true},
		"another Ceph's answer":   {uuid: "uuid-of-an-old-one", system: &Observation{Reachable: true, FSID: "f"}, asks: true},
		"no label, Ceph is mute":  {},
		"no label, Ceph says all": {system: o},
	} {
		t.Run(name, func(t *testing.T) {
			if view.System = nil; tt.system != nil {
				view.System = tt.system
			}
			d := &api.Device{ID: "wwn-1"}
			if tt.uuid != "" {
				d.Ceph = &api.DeviceCeph{FSID: adoptedFSID, OSDUUID: tt.uuid}
			}
			why, unknown := (&Driver{}).Needs(view, d)
			if (why != "") != tt.needs || unknown != tt.asks {
				t.Errorf("%q, unknown %t", why, unknown)
			}
		})
	}
}
