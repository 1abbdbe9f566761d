package options

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func TestResets(t *testing.T) {
	for name, tt := range map[string]struct {
		have, want set
		wrong      error
		kept       bool
	}{
		"plain":                {set{"a.b": "1"}, set{"a.b": ""}, nil, false},
		"something is wrong":   {set{"auth.allow": "10.0.0.1", shard: "on"}, set{}, errors.New("no group"), false},
		"sharding":             {set{"a.b": "1", shard: "on"}, set{"a.b": ""}, nil, true},
		"sharding, other yes":  {set{shard: "Enable"}, set{}, nil, true},
		"sharding that is off": {set{shard: "OFF"}, set{shard: ""}, nil, false},
	} {
		reset := set{}
		for option := range tt.have {
			reset[option] = ""
		}
		got, kept := Resets(reset, tt.have, tt.wrong)
		if diff := cmp.Diff(tt.want, got); diff != "" || (kept != "") != tt.kept {
			t.Errorf("%s: kept %q\n%s", name, kept, diff)
		}
	}
}

// TestWanted_unknownGroup: what stands before a group that is not known changes nothing; what
// stands beside it does.
func TestWanted_unknownGroup(t *testing.T) {
	have := set{"features.shard": "on", "network.ping-timeout": "20", "x.y": "1"}
	layers := []api.VolumeOptions{
		{"shard": "off", "network.ping-timeout": "42", "c.d": "1"},
		{"group": "vrit", "e.f": "1"},
	}
	got, err := Wanted(have, nil, groups, layers...)
	want := set{"features.shard": "on", "network.ping-timeout": "20", "c.d": "1", "e.f": "1"}
	if diff := cmp.Diff(want, got); diff != "" || err == nil {
		t.Errorf("%v\n%s", err, diff)
	}
	layers[1]["group"] = "samba"
	if got, err := Wanted(have, nil, groups, layers...); err != nil || got["shard"] != "off" {
		t.Errorf("%v, %v", got, err)
	}
}
