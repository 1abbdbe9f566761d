package health

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestWithNames_all: what Ceph's details name stands in the command, in place of words such as
// FLAG, WHO and POOL.
func TestWithNames_all(t *testing.T) {
	for _, x := range []struct{ code, detail, next string }{
		{"OSD_FLAGS", "host h2 has flags noup", "'holdfast ceph osd unset-group noup h2'"},
		{"OSD_FLAGS", "osd.3 has flags noin,noout", "'holdfast ceph osd unset-group noin,noout osd.3'"},
		{"OSD_FLAGS", "device class 'hdd' has flags noout", "'holdfast ceph osd unset-group noout hdd'"},
		{"POOL_SCRUB_FLAGS", "Pool img has noscrub flag", "'holdfast ceph osd pool set img noscrub 0'"},
		{"POOL_SCRUB_FLAGS", "Pool img has nodeep-scrub flag", "'holdfast ceph osd pool set img nodeep-scrub 0'"},
		{"MDS_DAMAGE", "fs home mds.0 is damaged", "'holdfast why filesystem/home'"},
		{"MDS_DAMAGE", "mds.a(mds.0): Metadata damage detected", "holdfast ceph tell mds.a damage ls"},
	} {
		c := api.HealthCheck{Code: x.code, Detail: []string{x.detail}, Next: "'holdfast ceph tell mds.NAME damage ls'"}
		if next := WithNames(c); !strings.Contains(next, x.next) {
			t.Errorf("%s: %s", x.detail, next)
		}
	}
	maintained := api.HealthCheck{Code: "OSD_FLAGS", Detail: []string{"osd.3 has flags noout"}, Next: "as it was"}
	if next := WithNames(maintained); next != "as it was" {
		t.Errorf("flags of maintenance: %s", next)
	}
	if next := WithNames(api.HealthCheck{Code: "OSD_FLAGS", Next: "as it was"}); next != "as it was" {
		t.Errorf("without details: %s", next)
	}
}
