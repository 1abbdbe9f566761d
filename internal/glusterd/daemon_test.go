package glusterd

import (
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
