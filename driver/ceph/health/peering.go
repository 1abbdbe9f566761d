package health

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// peers is a detail of PG_AVAILABILITY of a placement group that has not served for
// mon_pg_stuck_threshold (60 s): "pg 2.1 is stuck peering for 96s, current state peering, last
// acting [3,0,2]". The first OSD that is named is the primary (PGMap::get_health_checks).
var peers = regexp.MustCompile(`is stuck peering for .*, last acting \[(\d+)((?:,\d+)*)\]`)

// Peering is the next step where placement groups stay in peering although no OSD is down; else
// empty. The primary waits for an answer of another OSD or of a mon; once it was marked down it
// reports itself up and asks again (Ceph docs, Troubleshooting PGs).
func Peering(c api.HealthCheck) string {
	groups, others := map[string]int{}, map[string][]string{}
	for _, line := range c.Detail {
		if m := peers.FindStringSubmatch(line); m != nil {
			groups[m[1]]++
			for _, id := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' }) {
				others[m[1]] = append(others[m[1]], "osd."+id)
			}
		}
	}
	if c.Code != "PG_AVAILABILITY" || len(groups) == 0 {
		return ""
	}
	byCount := func(a, b string) int { return cmp.Or(groups[b]-groups[a], strings.Compare(a, b)) }
	primary := slices.SortedFunc(maps.Keys(groups), byCount)[0]
	slices.Sort(others[primary])
	asked := words.Few(slices.Compact(others[primary]))
	return fmt.Sprintf("check the network from osd.%s to %s (also its MTU); "+
		"if it works, run 'holdfast ceph osd down %s': osd.%s reports itself up and peers again",
		primary, asked, primary, primary)
}
