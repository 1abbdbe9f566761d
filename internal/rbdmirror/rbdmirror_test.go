package rbdmirror

import (
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	want := Token{FSID: "f", ClientID: "rbd-mirror-peer", Key: "secret", MonHost: "[v2:10.0.0.1:3300]"}
	if got, err := Decode(" " + want.Encode() + "\n"); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	half := want
	half.MonHost = ""
	for _, text := range []string{"", "secret", "e30=", half.Encode()} {
		if _, err := Decode(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestPool_fetches(t *testing.T) {
	for direction, want := range map[string]bool{"rx-only": true, "rx-tx": true, "tx-only": false, "": false} {
		if got := (Pool{Peers: []Peer{{Direction: "tx-only"}, {Direction: direction}}}).Fetches(); got != want {
			t.Errorf("%q: %v", direction, got)
		}
	}
}

// TestInterval writes intervals as the manager tells them: else they would be set again for ever.
func TestInterval(t *testing.T) {
	for interval, want := range map[string]string{
		"30m": "30m", "60m": "1h", "90m": "90m", "24h": "1d", "36h": "36h", "2880m": "2d", "7d": "7d",
	} {
		if got := Interval(interval); got != want {
			t.Errorf("%s: %s, want %s", interval, got, want)
		}
	}
}
