package installed

import (
	"slices"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestWithout(t *testing.T) {
	host := func(packages ...string) *api.Host {
		h := &api.Host{}
		h.Status.Packages = map[string]api.Release{}
		for _, p := range packages {
			h.Status.Packages[p] = "16.2.15"
		}
		return h
	}
	hosts := map[string]*api.Host{
		"has": host("ceph", "ceph-osd", "ceph-mds"), "lacks": host("ceph", "ceph-osd"),
		"unreported": host(), "system": host("ceph"),
	}
	got := Without(hosts, []string{"has", "lacks", "unreported", "system", "gone"}, "ceph-mds")
	if !slices.Equal(got, []string{"lacks"}) {
		t.Errorf("%v", got)
	}
	r := Refusal(got, "ceph-mds")
	if r.Verdict != api.VerdictRefuse || r.Reason != api.ReasonUnsupported ||
		!strings.Contains(r.Message, "'apt-get install ceph-mds'") {
		t.Errorf("%+v", r)
	}
}
