package agent

import (
	"encoding/json"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/facts"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// What a host is does not differ from what the server has kept of it: it is not written again and again.
func TestSameStatus_facts(t *testing.T) {
	told := &api.HostStatus{Facts: facts.Reader{}.Read(nil)}
	data, err := json.Marshal(told)
	if err != nil {
		t.Fatal(err)
	}
	kept := &api.HostStatus{}
	if err := json.Unmarshal(data, kept); err != nil {
		t.Fatal(err)
	}
	if is := (&api.HostStatus{Facts: facts.Reader{}.Read(kept.Facts)}); !sameStatus(kept, is) {
		t.Errorf("the server has %s, and the host is %+v", data, is.Facts)
	}
	if before := (&api.HostStatus{}); sameStatus(before, told) {
		t.Error("facts are not reported")
	}
}
