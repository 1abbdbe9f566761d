package health

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestPeering: the primary of most of the placement groups that stay in peering is named.
func TestPeering(t *testing.T) {
	const osd3 = "check the network from osd.3 to osd.0, osd.2 (also its MTU); " +
		"if it works, run 'holdfast ceph osd down 3': osd.3 reports itself up and peers again"
	for _, x := range []struct {
		detail []string
		next   string
	}{
		{[]string{
			"pg 2.7 is stuck peering for 61s, current state peering, last acting [0,2]",
			"pg 2.1 is stuck peering for 96s, current state peering, last acting [3,0,2]",
			"pg 2.d is stuck peering for 2h, current state remapped+peering, last acting [3,2,0]",
		}, osd3},
		{[]string{"pg 2.1 is peering, acting [3,0,2]"}, ""}, // it began less than a minute ago
		{[]string{"pg 2.1 is stuck inactive for 96s, current state incomplete, last acting [3,0,2]"}, ""},
		{nil, ""},
	} {
		if next := Peering(api.HealthCheck{Code: "PG_AVAILABILITY", Detail: x.detail}); next != x.next {
			t.Errorf("%q: %q", x.detail, next)
		}
	}
}
