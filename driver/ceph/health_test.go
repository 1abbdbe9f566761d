package ceph

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/engine"
)

// An answer of a real Ceph 16.2.15 to 'health detail', with one check muted.
func TestHealthAnswer(t *testing.T) {
	const text = `{"status":"HEALTH_WARN","checks":{
		"OSD_NEARFULL":{"severity":"HEALTH_WARN","summary":{"message":"2 nearfull osd(s)","count":2},"detail":[{"message":"osd.0 is near full"},{"message":"osd.2 is near full"}],"muted":false},
		"OSDMAP_FLAGS":{"severity":"HEALTH_WARN","summary":{"message":"noout flag(s) set","count":1},"detail":[],"muted":true},
		"BRAND_NEW":{"severity":"HEALTH_ERR","summary":{"message":"so it is","count":1},"detail":[],"muted":false}},
		"mutes":[{"code":"OSDMAP_FLAGS","sticky":false,"summary":"noout flag(s) set","count":1}]}`
	var h healthAnswer
	if err := json.Unmarshal([]byte(text), &h); err != nil {
		t.Fatal(err)
	}
	o := &Observation{}
	h.fill(o)
	want := []api.HealthCheck{
		{Code: "BRAND_NEW", Severity: "HEALTH_ERR", Message: "so it is", Next: health.NextStep("BRAND_NEW")},
		{Code: "OSD_NEARFULL", Severity: "HEALTH_WARN", Message: "2 nearfull osd(s)", Detail: []string{"osd.0 is near full", "osd.2 is near full"}, Next: health.NextStep("OSD_NEARFULL")},
	}
	if diff := cmp.Diff(want, o.Checks); diff != "" || !slices.Equal(o.Muted, []string{"OSDMAP_FLAGS"}) || o.Health != "HEALTH_WARN" {
		t.Errorf("health %s, muted %v (-want +got):\n%s", o.Health, o.Muted, diff)
	}
}

// What Ceph finds wrong is asked for in detail, and stands in the status with the next step; in a cluster that is well nothing more is asked.
func TestHealth_inStatus(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	before := f.ceph.Calls("health")
	f.round(t)
	if n := f.ceph.Calls("health"); n != before {
		t.Errorf("a cluster that is well was asked %d times what is wrong", n-before)
	}
	f.ceph.Warn("RECENT_CRASH", "1 daemons have recently crashed")
	s := f.round(t).Status
	if len(s.Checks) != 1 || s.Checks[0].Next != health.NextStep("RECENT_CRASH") || !slices.Equal(s.Checks[0].Detail, []string{"detail of RECENT_CRASH"}) {
		t.Errorf("%+v", s.Checks)
	}
	if !contains(s.Reasons, "HEALTH_WARN: RECENT_CRASH: 1 daemons have recently crashed") {
		t.Errorf("%q", s.Reasons)
	}
}

// The next step of a check names who it is about, and the way out of maintenance where that is the reason.
func TestTellChecks(t *testing.T) {
	checks := []api.HealthCheck{
		{Code: "MON_DOWN", Next: health.NextStep("MON_DOWN"), Detail: []string{"mon.a (rank 0) addr [v2:10.0.0.1:3300/0] is down (out of quorum)"}},
		{Code: "OSD_DOWN", Next: health.NextStep("OSD_DOWN"), Detail: []string{"osd.0 (root=default,host=h1) is down"}},
		{Code: "OSD_HOST_DOWN", Next: health.NextStep("OSD_HOST_DOWN"), Detail: []string{"host h1 (root=default) (1 osds) is down"}},
		{Code: "POOL_NO_REDUNDANCY", Next: health.NextStep("POOL_NO_REDUNDANCY"), Detail: []string{"pool 'images' has no replicas configured"}},
		{Code: "SLOW_OPS", Next: health.NextStep("SLOW_OPS"), Message: "3 slow ops, oldest one blocked for 31 sec, osd.2 has slow ops"},
		{Code: "PG_AVAILABILITY", Next: health.NextStep("PG_AVAILABILITY"), Detail: []string{"pg 2.1 is stuck peering for 96s, current state peering, last acting [1,0]"}},
	}
	const kept = "host h1 is in maintenance: to return it to service, run 'holdfast host maintenance exit h1'"
	for name, tt := range map[string]struct {
		change func(*fakeWorld, *Observation)
		want   [3]string
	}{
		"maintenance": {func(f *fakeWorld, _ *Observation) { f.mode(1, api.HostMaintenance) }, [3]string{kept, kept, kept}},
		"a failure":   {func(*fakeWorld, *Observation) {}, [3]string{"'holdfast why mon.a'; when its host is gone for good: 'holdfast host remove h1 --gone'", "'holdfast why osd.0'", "all OSDs of a host"}},
		"maintenance, and a failure": {func(f *fakeWorld, o *Observation) {
			f.mode(1, api.HostMaintenance)
			o.OSDs[1] = OSD{In: true}
		}, [3]string{kept, "'holdfast why osd.0'", "all OSDs of a host"}},
		"no OSD is down": {func(f *fakeWorld, o *Observation) {
			f.mode(1, api.HostMaintenance)
			o.OSDs[0] = OSD{In: true, Up: true}
		}, [3]string{kept, "'holdfast why osd.0'", "all OSDs of a host"}},
	} {
		f := withFake(threeHosts())
		f.settle(t)
		o := &Observation{Reachable: true, Checks: checks, Quorum: []string{"b", "c"}, OSDs: map[int]OSD{0: {In: true}, 1: {In: true, Up: true}}}
		tt.change(f, o)
		v := f.view()
		v.System = o
		p := newPlanner(v, f.now)
		p.members = []member{{ID: "a", Host: "h1", Address: ""}, {ID: "b", Host: "h2", Address: ""}, {ID: "c", Host: "h3", Address: ""}}
		p.plan = &engine.Plan{}
		got := p.tellChecks()
		peering := "bring back the OSDs that are down"
		if o.OSDs[0].Up {
			peering = "check the network from osd.1 to osd.0"
		}
		for i, want := range append(tt.want[:], "raise spec.replicated.size of the Pool, or 'holdfast ceph osd pool set images size 3'", "'holdfast ceph health detail' names it; see what they wait for: 'holdfast ceph tell osd.2 dump_ops_in_flight'", peering) {
			if !strings.HasPrefix(got[i].Next, want) {
				t.Errorf("%s: %s: %q, and not %q", name, got[i].Code, got[i].Next, want)
			}
		}
	}
	if checks[0].Next != health.NextStep("MON_DOWN") {
		t.Error("the observation was changed")
	}
}

// A flag that a person set is not explained by maintenance.
func TestTellChecks_flags(t *testing.T) {
	unset := func(flags, name string) string {
		return "when the reason is over, run '" + health.UnsetGroup(flags, name) + "'"
	}
	const kept = "host h1 is in maintenance: to return it to service, run 'holdfast host maintenance exit h1'"
	for detail, want := range map[string]string{
		"osd.0 has flags noout":                                  kept,
		"osd.0 has flags noin,noout":                             unset("noin,noout", "osd.0"),
		"osd.0 has flags noout\nosd.1 has flags noout":           health.NextStep("OSD_FLAGS"),
		"osd.0 has flags noout\nhost h2 has flags noout":         unset("noout", "h2"),
		"osd.0 has flags noout\ndevice class hdd has flags noup": unset("noup", "hdd"),
	} {
		f := withFake(threeHosts())
		f.settle(t)
		f.mode(1, api.HostMaintenance)
		v := f.view()
		v.System = &Observation{Reachable: true, Checks: []api.HealthCheck{{Code: "OSD_FLAGS", Next: health.NextStep("OSD_FLAGS"), Detail: strings.Split(detail, "\n")}}}
		p := newPlanner(v, f.now)
		p.plan = &engine.Plan{}
		if got := p.tellChecks()[0].Next; got != want {
			t.Errorf("%q: %q, and not %q", detail, got, want)
		}
	}
}
