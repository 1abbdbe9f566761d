package glusterd

import (
	"strconv"
	"strings"
	"testing"
)

func TestVolfile_family(t *testing.T) {
	for address, want := range map[string]bool{"10.0.0.1": false, "fd00::1": true} {
		text := Volfile(address)
		if got := strings.Contains(text, "address-family inet6"); got != want {
			t.Errorf("%s: inet6 is %v, want %v", address, got, want)
		}
		if !strings.Contains(text, "    option transport.socket.bind-address "+address+"\n") || !strings.HasSuffix(text, "\nend-volume\n") {
			t.Errorf("%s:\n%s", address, text)
		}
	}
}

// A node that is cut off is given up by its kernel's silence, and not before several tries: one lost packet must not do.
func TestVolfile_givenUp(t *testing.T) {
	values := map[string]int{}
	for line := range strings.Lines(Volfile("10.0.0.1")) {
		if f := strings.Fields(line); len(f) == 3 {
			values[f[1]], _ = strconv.Atoi(f[2])
		}
	}
	silence := values["transport.tcp-user-timeout"]
	tries := (silence-values["transport.socket.keepalive-time"]-1)/values["transport.socket.keepalive-interval"] + 1
	if silence != 10 || tries < 4 || values["ping-timeout"] != 0 {
		t.Errorf("given up after %d s and %d tries, ping-timeout %d", silence, tries, values["ping-timeout"])
	}
}
