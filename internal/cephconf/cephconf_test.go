package cephconf

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	got := Parse(`; a comment
debug_ms = 0
[global]
	mon host = 10.0.0.1, \
10.0.0.2   # both
mon-initial-members = a
Auth_Client_Required = "cephx"
url = http://h/#x
[osd.3]
osd memory target=1G
nonsense
[client.admin]
	key = AQ==
	caps mon = "allow *"
`)
	want := map[string]map[string]string{
		"global": {
			"debug_ms": "0", "mon_host": "10.0.0.1,  10.0.0.2", "mon_initial_members": "a", "auth_client_required": "cephx", "url": "http://h/#x",
		},
		"osd.3":        {"osd_memory_target": "1G"},
		"client.admin": {"key": "AQ==", "caps_mon": "allow *"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
