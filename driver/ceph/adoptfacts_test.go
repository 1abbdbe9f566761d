package ceph

import (
	"context"
	"slices"
	"testing"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// statusOnly is a cluster that answers 'ceph status'.
type statusOnly struct {
	rados.Client
	text string
}

func (c statusOnly) Mon(context.Context, any, []byte) ([]byte, error) { return []byte(c.text), nil }

// TestAdoptAsker_others has a mgr list an OSD as a service, as it does for a moment after the OSD
// started: the list of what is not adopted, and with it the code that confirms an adoption, stays
// the same.
func TestAdoptAsker_others(t *testing.T) {
	const status = `{"fsid": "f", "health": {"status": "HEALTH_OK"},
		"fsmap": {"by_rank": [{"name": "a"}], "up:standby": 1},
		"servicemap": {"services": {
			"osd": {"daemons": {"4": {}}},
			"rgw": {"daemons": {"summary": "", "4129": {}}}}}}`
	x := &adoptAsker{ctx: t.Context(), client: statusOnly{text: status}, facts: &AdoptFacts{}}
	if err := x.status(); err != nil {
		t.Fatal(err)
	}
	if want := []string{"mds.a", "1 standby mds", "rgw.4129"}; !slices.Equal(x.facts.Others, want) {
		t.Errorf("got %q, want %q", x.facts.Others, want)
	}
}
