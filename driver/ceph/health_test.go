package ceph

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func TestHealthPage_isFresh(t *testing.T) {
	have, err := os.ReadFile("../../docs/reference/ceph-health.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(HealthPage(), string(have)); diff != "" {
		t.Errorf("docs/reference/ceph-health.md is not what healthcodes.go says: run 'make generate'\n%s", diff)
	}
}

// The table is searched, so that it has to be sorted; a step has to fit the API.
func TestHealthCodes(t *testing.T) {
	last := ""
	for _, c := range HealthCodes() {
		if c.Code <= last || len(c.Code) > maxCode || c.Meaning == "" || c.Next == "" || len(c.Next) > maxMessage {
			t.Errorf("%s after %s: %+v", c.Code, last, c)
		}
		if nextStep(c.Code) != c.Next {
			t.Errorf("%s is not found", c.Code)
		}
		last = c.Code
	}
	if got := nextStep("OSD_HOST_DOWN"); !strings.HasPrefix(got, "all OSDs of a host are down") {
		t.Errorf("OSD_HOST_DOWN: %s", got)
	}
	if got := nextStep("NEVER_HEARD_OF"); got != nextUnknown {
		t.Errorf("an unknown code: %s", got)
	}
}

// The codes that the programs and modules of Ceph 16.2.15 have in them, each of which has a step.
func TestHealthCodes_ofCeph16(t *testing.T) {
	for code := range strings.FieldsSeq(`
		AUTH_BAD_CAPS AUTH_INSECURE_GLOBAL_ID_RECLAIM AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED BLUEFS_SPILLOVER BLUESTORE_DISK_SIZE_MISMATCH
		BLUESTORE_LEGACY_STATFS BLUESTORE_NO_COMPRESSION BLUESTORE_NO_PER_PG_OMAP BLUESTORE_NO_PER_POOL_OMAP BLUESTORE_SPURIOUS_READ_ERRORS
		CACHE_POOL_NEAR_FULL CACHE_POOL_NO_HIT_SET DAEMON_OLD_VERSION DEGRADED_STRETCH_MODE FS_DEGRADED FS_INLINE_DATA_DEPRECATED FS_WITH_FAILED_MDS
		LARGE_OMAP_OBJECTS MANY_OBJECTS_PER_PG MDS_ALL_DOWN MDS_CACHE_OVERSIZED MDS_CLIENTS_LAGGY MDS_CLIENT_LATE_RELEASE MDS_CLIENT_LATE_RELEASE_MANY
		MDS_CLIENT_OLDEST_TID MDS_CLIENT_OLDEST_TID_MANY MDS_CLIENT_RECALL MDS_CLIENT_RECALL_MANY MDS_DAMAGE MDS_INSUFFICIENT_STANDBY MDS_READ_ONLY
		MDS_SLOW_METADATA_IO MDS_SLOW_REQUEST MDS_TRIM MDS_UP_LESS_THAN_MAX MGR_DOWN MGR_MODULE_DEPENDENCY MGR_MODULE_ERROR MON_CLOCK_SKEW MON_DISK_BIG
		MON_DISK_CRIT MON_DISK_LOW MON_DOWN MON_LOCATION_NOT_SET MON_MSGR2_NOT_ENABLED OBJECT_MISPLACED OBJECT_UNFOUND OLD_CRUSH_STRAW_CALC_VERSION
		OLD_CRUSH_TUNABLES OSDMAP_FLAGS OSD_BACKFILLFULL OSD_DOWN OSD_FLAGS OSD_FULL OSD_NEARFULL OSD_NO_DOWN_OUT_INTERVAL OSD_NO_SORTBITWISE OSD_ORPHAN
		OSD_OUT_OF_ORDER_FULL OSD_SCRUB_ERRORS OSD_SLOW_PING_TIME_BACK OSD_SLOW_PING_TIME_FRONT OSD_TOO_MANY_REPAIRS OSD_UPGRADE_FINISHED PG_AVAILABILITY
		PG_BACKFILL_FULL PG_DAMAGED PG_DEGRADED PG_NOT_DEEP_SCRUBBED PG_NOT_SCRUBBED PG_RECOVERY_FULL PG_SLOW_SNAP_TRIMMING POOL_APP_NOT_ENABLED
		POOL_BACKFILLFULL POOL_FULL POOL_NEARFULL POOL_NO_REDUNDANCY POOL_PG_NUM_NOT_POWER_OF_TWO POOL_SCRUB_FLAGS REQUEST_SLOW REQUEST_STUCK
		SMALLER_PGP_NUM TOO_FEW_OSDS TOO_FEW_PGS TOO_MANY_PGS MGR_INFLUX_SEND_FAILED TELEMETRY_CHANGED SLOW_OPS RECENT_CRASH RECENT_MGR_MODULE_CRASH
		POOL_TOO_MANY_PGS POOL_TOO_FEW_PGS POOL_TARGET_SIZE_BYTES_OVERCOMMITTED POOL_HAS_TARGET_SIZE_BYTES_AND_RATIO MGR_ZABBIX_SEND_FAILED
		MGR_ZABBIX_NO_SERVER MGR_INFLUX_QUEUE_FULL MGR_INFLUX_NO_SERVER MGR_INFLUX_DB_LIST_FAILED DEVICE_IDENT_ON DEVICE_HEALTH_TOOMANY
		DEVICE_HEALTH_IN_USE DEVICE_HEALTH DEVICE_FAULT_ON ALERTS_SMTP_ERROR`) {
		if nextStep(code) == nextUnknown {
			t.Errorf("%s has no step", code)
		}
	}
}

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
		{Code: "BRAND_NEW", Severity: "HEALTH_ERR", Message: "so it is", Next: nextUnknown},
		{Code: "OSD_NEARFULL", Severity: "HEALTH_WARN", Message: "2 nearfull osd(s)", Detail: []string{"osd.0 is near full", "osd.2 is near full"}, Next: nextStep("OSD_NEARFULL")},
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
	if len(s.Checks) != 1 || s.Checks[0].Next != nextStep("RECENT_CRASH") || !slices.Equal(s.Checks[0].Detail, []string{"detail of RECENT_CRASH"}) {
		t.Errorf("%+v", s.Checks)
	}
	if !contains(s.Reasons, "HEALTH_WARN: RECENT_CRASH: 1 daemons have recently crashed") {
		t.Errorf("%q", s.Reasons)
	}
}

// The next step of a check names who it is about, and the way out of maintenance where that is the reason.
func TestTellChecks(t *testing.T) {
	checks := []api.HealthCheck{
		{Code: "MON_DOWN", Next: nextStep("MON_DOWN"), Detail: []string{"mon.a (rank 0) addr [v2:10.0.0.1:3300/0] is down (out of quorum)"}},
		{Code: "OSD_DOWN", Next: nextStep("OSD_DOWN"), Detail: []string{"osd.0 (root=default,host=h1) is down"}},
		{Code: "OSD_HOST_DOWN", Next: nextStep("OSD_HOST_DOWN"), Detail: []string{"host h1 (root=default) (1 osds) is down"}},
		{Code: "POOL_NO_REDUNDANCY", Next: nextStep("POOL_NO_REDUNDANCY"), Detail: []string{"pool 'images' has no replicas configured"}},
		{Code: "SLOW_OPS", Next: nextStep("SLOW_OPS"), Message: "3 slow ops, oldest one blocked for 31 sec, osd.2 has slow ops"},
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
	} {
		f := withFake(threeHosts())
		f.settle(t)
		o := &Observation{Reachable: true, Checks: checks, Quorum: []string{"b", "c"}, OSDs: map[int]OSD{0: {In: true}, 1: {In: true, Up: true}}}
		tt.change(f, o)
		v := f.view()
		v.System = o
		p := newPlanner(v, f.now)
		p.members = []member{{"a", "h1", ""}, {"b", "h2", ""}, {"c", "h3", ""}}
		p.plan = &engine.Plan{}
		got := p.tellChecks()
		for i, want := range append(tt.want[:], "raise spec.replicated.size of the Pool, or 'ceph osd pool set images size 3'", "'ceph health detail' names it; see what they wait for: 'ceph tell osd.2 dump_ops_in_flight'") {
			if !strings.HasPrefix(got[i].Next, want) {
				t.Errorf("%s: %s: %q, and not %q", name, got[i].Code, got[i].Next, want)
			}
		}
	}
	if checks[0].Next != nextStep("MON_DOWN") {
		t.Error("the observation was changed")
	}
}

// A flag that a person set is not explained by maintenance.
func TestTellChecks_flags(t *testing.T) {
	const kept = "host h1 is in maintenance: to return it to service, run 'holdfast host maintenance exit h1'"
	for detail, want := range map[string]string{
		"osd.0 has flags noout":                                  kept,
		"osd.0 has flags noin,noout":                             nextStep("OSD_FLAGS"),
		"osd.0 has flags noout\nosd.1 has flags noout":           nextStep("OSD_FLAGS"),
		"osd.0 has flags noout\nhost h2 has flags noout":         nextStep("OSD_FLAGS"),
		"osd.0 has flags noout\ndevice class hdd has flags noup": nextStep("OSD_FLAGS"),
	} {
		f := withFake(threeHosts())
		f.settle(t)
		f.mode(1, api.HostMaintenance)
		v := f.view()
		v.System = &Observation{Reachable: true, Checks: []api.HealthCheck{{Code: "OSD_FLAGS", Next: nextStep("OSD_FLAGS"), Detail: strings.Split(detail, "\n")}}}
		p := newPlanner(v, f.now)
		p.plan = &engine.Plan{}
		if got := p.tellChecks()[0].Next; got != want {
			t.Errorf("%q: %q, and not %q", detail, got, want)
		}
	}
}
