package options

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type set = map[string]string

var groups = Groups{"virt": {"network.ping-timeout": "20", "features.shard": "on"}, "samba": {}}

func TestExpand(t *testing.T) {
	for name, tt := range map[string]struct {
		options, want set
		fails         bool
	}{
		"none":  {options: set{"a.b": "1"}, want: set{"a.b": "1"}},
		"group": {options: set{"group": "virt"}, want: groups["virt"]},
		"own wins": {set{"group": "virt", "features.shard": "off"}, set{
			"network.ping-timeout": "20",
			"features.shard":       "off",
		}, false},
		"own wins by short name": {set{"group": "virt", "shard": "off"}, set{
			"network.ping-timeout": "20",
			"shard":                "off",
		}, false},
		"unknown keeps the other": {set{"group": "nope", "a.b": "1"}, set{"a.b": "1"}, true},
	} {
		got, err := groups.Expand(tt.options)
		if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fails {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	if len(groups["virt"]) != 2 {
		t.Error("the group was changed")
	}
}

func TestFull(t *testing.T) {
	for name, tt := range map[string]struct {
		want, have set
		noted      []string
		full       set
	}{
		"not set": {set{"ping-timeout": "5"}, nil, nil, set{"ping-timeout": "5"}},
		"set": {
			set{"ping-timeout": "5"},
			set{"network.ping-timeout": "5"},
			nil,
			set{"network.ping-timeout": "5"},
		},
		"another value": {
			set{"ping-timeout": "5"},
			set{"network.ping-timeout": "7"},
			nil,
			set{"ping-timeout": "5"},
		},
		"changed by hand": {
			set{"ping-timeout": "5"},
			set{"network.ping-timeout": "7"},
			[]string{"network.ping-timeout=5"},
			set{"network.ping-timeout": "5"},
		},
		"reset by hand": {
			set{"ping-timeout": "5"},
			nil,
			[]string{"network.ping-timeout=5"},
			set{"network.ping-timeout": "5"},
		},
		"means two": {set{"event-threads": "4"}, set{
			"client.event-threads": "4",
			"server.event-threads": "4",
		}, nil, set{"event-threads": "4"}},
		"full": {
			set{"network.ping-timeout": "5"},
			set{"network.ping-timeout": "7"},
			nil,
			set{"network.ping-timeout": "5"},
		},
		"the rest has a dot": {
			set{"nfs.read-ahead": "on"},
			set{"performance.nfs.read-ahead": "on"},
			nil,
			set{"performance.nfs.read-ahead": "on"},
		},
	} {
		if diff := cmp.Diff(tt.full, Full(tt.want, tt.have, tt.noted)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestNoted(t *testing.T) {
	got := Noted([]string{"a.b=1", "group", "ping-timeout", "shard=on"}, set{
		"network.ping-timeout": "5",
		"features.shard":       "on",
	})
	if want := []string{"a.b=1", "group", "network.ping-timeout", "features.shard=on"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestLay(t *testing.T) {
	under := set{"network.ping-timeout": "5", "shard": "on", "a.b": "1"}
	Lay(under, set{"ping-timeout": "7", "features.shard": "off"})
	if diff := cmp.Diff(set{"ping-timeout": "7", "features.shard": "off", "a.b": "1"}, under); diff != "" {
		t.Error(diff)
	}
}
