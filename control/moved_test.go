package control

import "testing"

// A server that is started with another address is known by its former one until the members of etcd know the new one.
func TestSettings_knownBy(t *testing.T) {
	for name, tt := range map[string]struct {
		stored  settings
		address string
		want    string
	}{
		"as before":              {settings{Address: "10.0.0.1"}, "10.0.0.1", ""},
		"another one":            {settings{Address: "10.0.0.1"}, "10.0.0.2", "10.0.0.1"},
		"cut off before":         {settings{Address: "10.0.0.2", Was: "10.0.0.1"}, "10.0.0.2", "10.0.0.1"},
		"a third one":            {settings{Address: "10.0.0.2", Was: "10.0.0.1"}, "10.0.0.3", "10.0.0.1"},
		"back again":             {settings{Address: "10.0.0.2", Was: "10.0.0.1"}, "10.0.0.1", ""},
		"a standby is no member": {settings{Address: "10.0.0.1", Seat: seatNone}, "10.0.0.2", ""},
		"a new server":           {settings{}, "10.0.0.1", ""},
	} {
		s := &settings{Address: tt.address}
		if got := s.knownBy(&tt.stored); got != tt.want {
			t.Errorf("%s: known by %q, want %q", name, got, tt.want)
		}
	}
}
