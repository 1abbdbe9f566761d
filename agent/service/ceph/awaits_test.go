package ceph

import (
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// What a process waits for is what it says of itself. The answers are shortened ones of Ceph 16.
func TestAwaits(t *testing.T) {
	for _, test := range []struct {
		name             string
		agent            service.Waiter
		question, answer string
		want             string
	}{
		{"an OSD that boots", OSD{}, "status", `{"whoami": 3, "state": "booting"}`, `it to be active: it says that it is "booting"`},
		{"an OSD that is up", OSD{}, "status", `{"whoami": 3, "state": "active"}`, ""},
		{"a mon that looks for others", Mon{}, "mon_status", `{"name": "a", "state": "probing"}`, `it to be leader: it says that it is "probing"`},
		{"a mon in the quorum", Mon{}, "mon_status", `{"name": "a", "state": "peon"}`, ""},
		{"an MDS that takes over", MDS{}, "status", `{"whoami": 0, "state": "up:replay"}`, `it to be up:active: it says that it is "up:replay"`},
		{"an MDS that stands by", MDS{}, "status", `{"whoami": -1, "state": "up:standby"}`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := answeringTo(t, test.question, test.answer)
			if got, err := test.agent.Awaits(t.Context(), l); err != nil || got != test.want {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	var l *service.Local
	for answer, want := range map[string]string{
		"ERROR: (22) Invalid argument\nunknown command prefix status": "it to answer: it is starting", // as an OSD says while it starts
		"ERROR: (11) try again\n":                                     `it to answer: it is starting, and says "ERROR: (11) try again"`,
	} {
		l = answeringTo(t, "status", answer)
		if got, err := (OSD{}).Awaits(t.Context(), l); err != nil || got != want {
			t.Errorf("of an answer that is none: %q, %v; want %q", got, err, want)
		}
	}
	l.Run = t.TempDir()
	if got, err := (OSD{}).Awaits(t.Context(), l); err != nil || !strings.Contains(got, "it has only just started") {
		t.Errorf("%q, %v", got, err)
	}
}
