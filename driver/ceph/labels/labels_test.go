package labels

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

type label = api.DeviceCeph

func TestNeeds(t *testing.T) {
	const ours, theirs, osd = "0000000a-0000-0000-0000-000000000001", "0000000a-0000-0000-0000-000000000002", "uuid-3"
	three := int32(3)
	for name, c := range map[string]struct {
		label   *label
		silent  bool
		needs   bool
		unknown bool
	}{
		"no label":                        {silent: true},
		"an OSD of ours":                  {label: &label{FSID: ours, OSDID: &three, OSDUUID: osd}, needs: true},
		"as Ceph writes it":               {label: &label{FSID: strings.ToUpper(ours), OSDUUID: "UUID-3"}, needs: true},
		"and Ceph is silent":              {label: &label{FSID: ours, OSDUUID: osd}, silent: true, needs: true},
		"an earlier one of its number":    {label: &label{FSID: ours, OSDID: &three, OSDUUID: "uuid-2"}},
		"one that is gone, Ceph silent":   {label: &label{FSID: ours, OSDUUID: "uuid-2"}, silent: true, unknown: true},
		"an OSD of ours, another fsid":    {label: &label{FSID: theirs, OSDUUID: osd}, silent: true, needs: true},
		"a database of ours":              {label: &label{OSDUUID: osd, Part: "db"}, needs: true},
		"a database of nobody":            {label: &label{OSDUUID: "uuid-2", Part: "db"}},
		"whose database, Ceph silent":     {label: &label{OSDUUID: "uuid-2", Part: "db"}, silent: true, unknown: true},
		"a label without an OSD":          {label: &label{FSID: ours}},
		"another one's, and it is silent": {label: &label{FSID: theirs, OSDUUID: "uuid-2"}, silent: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &Cluster{FSID: ours, Silent: c.silent, OSDs: map[string]string{osd: "osd.3", "": "mon.a"}}
			why, unknown := cluster.Needs(&api.Device{ID: "wwn-1", Ceph: c.label})
			if (why != "") != c.needs || unknown != c.unknown {
				t.Errorf("%q, unknown %t", why, unknown)
			}
		})
	}
}
