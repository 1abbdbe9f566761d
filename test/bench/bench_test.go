package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/test/bench/pair"
)

func TestLookUp(t *testing.T) {
	const text = "fsid = outside\n[global]\n\tfsid = 1-2 \nmon_host = [v2:10.0.0.1:3300,v1:10.0.0.1:6789],[v2:10.0.0.2:3300]\n[mon]\nmon_data=/d\n"
	for _, tt := range []struct{ section, option, want string }{
		{"global", "fsid", "1-2"},
		{"global", "mon_host", "[v2:10.0.0.1:3300,v1:10.0.0.1:6789],[v2:10.0.0.2:3300]"},
		{"mon", "mon_data", "/d"},
		{"global", "mon_data", ""},
		{"osd", "fsid", ""},
	} {
		if got := lookUp(text, tt.section, tt.option); got != tt.want {
			t.Errorf("%s of %s is %q, want %q", tt.option, tt.section, got, tt.want)
		}
	}
}

// healthy is what Ceph says of a cluster that is ready, with what matters here.
const healthy = `{"health": {"status": "HEALTH_OK"}, "quorum_names": ["a", "b", "c"],
	"osdmap": {"epoch": 9, "num_osds": 3, "num_up_osds": 3, "num_in_osds": 3},
	"pgmap": {"pgs_by_state": [{"state_name": "active+clean", "count": 7}, {"state_name": "active+clean+scrubbing", "count": 1}],
		"num_pgs": 8, "bytes_total": 1000},
	"mgrmap": {"available": true, "num_standbys": 1}}`

func TestReady(t *testing.T) {
	for _, tt := range []struct {
		name     string
		old, new string
		want     bool
	}{
		{"healthy", "", "", true},
		{"a mon is missing", `, "c"]`, "]", false},
		{"an OSD is down", `"num_up_osds": 3`, `"num_up_osds": 2`, false},
		{"an OSD is out", `"num_in_osds": 3`, `"num_in_osds": 2`, false},
		{"no active mgr", `"available": true`, `"available": false`, false},
		{"no standby", `"num_standbys": 1`, `"num_standbys": 0`, false},
		{"not reported yet", `"bytes_total": 1000`, `"bytes_total": 0`, false},
		{"a PG is not clean", `"active+clean+scrubbing"`, `"active+undersized"`, false},
		{"a PG that the pools shall have is missing", `"num_pgs": 8`, `"num_pgs": 7`, false},
		{"a warning", "HEALTH_OK", "HEALTH_WARN", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &status{wanted: 8}
			if err := json.Unmarshal([]byte(strings.Replace(healthy, tt.old, tt.new, 1)), s); err != nil {
				t.Fatal(err)
			}
			if got := s.ready(); got != tt.want {
				t.Errorf("ready: %v, want %v: %+v", got, tt.want, s)
			}
		})
	}
}

func TestDaemon(t *testing.T) {
	for _, tt := range []struct {
		args string
		want bool
	}{
		{"/usr/bin/ceph-mon -f -i a -c /x/ceph.conf", true},
		{"ceph-osd -c /x/ceph.conf -i 0", true},
		{"ceph-osd -i 0 --mkfs --osd-uuid u", false},
		{"sh -c gate holdfast /usr/bin/ceph-mon -f -i a", false},
		{"ceph-authtool --gen-print-key", false},
	} {
		if got := (process{args: strings.Fields(tt.args)}).daemon(); got != tt.want {
			t.Errorf("%q: %v, want %v", tt.args, got, tt.want)
		}
	}
}

// TestPrint checks that pairs are compared with each other, and that what only one side has is shown as well.
func TestPrint(t *testing.T) {
	r := &result{Load: "0 0 0", Rounds: []round{
		{Side: pair.Script, Seconds: 4, Milestones: map[string]float64{quorate: 1, done: 4}},
		{Side: pair.Holdfast, Seconds: 5, Milestones: map[string]float64{quorate: 1.5}, CPU: map[string]float64{"holdfast apply": 0.25}},
		{Side: pair.Holdfast, Seconds: 12, Milestones: map[string]float64{quorate: 2.5}},
		{Side: pair.Script, Seconds: 8, Milestones: map[string]float64{quorate: 1, done: 8}},
	}}
	r.conclude()
	if diff := cmp.Diff([]float64{1.25, 1.5}, r.Ratios); diff != "" {
		t.Errorf("ratios: %s", diff)
	}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	words := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"round script holdfast ratio 1 4.00 5.00 1.25 2 8.00 12.00 1.50 median 6.00 8.50 1.38 least 4.00 5.00 1.25",
		"all mons in quorum 1.00 2.00 +1.00", "command ended 6.00", "holdfast apply 0.25",
	} {
		if !strings.Contains(words, want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}
