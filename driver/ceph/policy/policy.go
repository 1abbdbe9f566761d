// Package policy has the options of Ceph that the policies in spec.ceph come to: recovery and scrub. It is pure.
package policy

import (
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// paces are what spec.ceph.recovery comes to in releases whose OSDs pace themselves by pauses and numbers (Ceph
// docs, "OSD config reference: backfilling, recovery"). Balanced is Ceph's own default, so that nothing has to be
// set.
var paces = map[api.CephRecovery]map[string]string{
	api.RecoveryGentle: {
		"osd_max_backfills": "1", "osd_recovery_max_active_hdd": "1", "osd_recovery_max_active_ssd": "3",
		"osd_recovery_sleep_hdd": "0.2", "osd_recovery_sleep_hybrid": "0.1", "osd_recovery_sleep_ssd": "0.02",
		"osd_recovery_op_priority": "1",
	},
	api.RecoveryFast: {
		"osd_max_backfills": "4", "osd_recovery_max_active_hdd": "6", "osd_recovery_max_active_ssd": "20",
		"osd_recovery_sleep_hdd": "0", "osd_recovery_sleep_hybrid": "0", "osd_recovery_sleep_ssd": "0",
	},
}

// profiles are what it comes to where OSDs share their time out by mClock, which is the default from release 17
// on; they do not heed the pauses any more.
var profiles = map[api.CephRecovery]string{
	api.RecoveryGentle: "high_client_ops", api.RecoveryBalanced: "balanced", api.RecoveryFast: "high_recovery_ops",
}

// MclockSince is the first release whose OSDs pace themselves by mClock.
const MclockSince = "17"

// Options are the options of OSDs that the policies in the spec come to, with mClock or without it.
func Options(spec *api.CephSpec, mclock bool) map[string]string {
	o := map[string]string{}
	if mclock && profiles[spec.Recovery] != "" {
		o["osd_mclock_profile"] = profiles[spec.Recovery]
	} else if !mclock {
		for name, value := range paces[spec.Recovery] {
			o[name] = value
		}
	}
	scrubOptions(spec.Scrub, o)
	return o
}

func scrubOptions(s *api.CephScrub, o map[string]string) {
	if s == nil {
		return
	}
	number := func(name string, value *int32) {
		if value != nil {
			o[name] = strconv.Itoa(int(*value))
		}
	}
	seconds := func(name string, value *metav1.Duration) {
		if value != nil {
			o[name] = strconv.FormatInt(int64(value.Duration/time.Second), 10)
		}
	}
	number("osd_scrub_begin_hour", s.BeginHour)
	number("osd_scrub_end_hour", s.EndHour)
	number("osd_scrub_begin_week_day", s.BeginWeekDay)
	number("osd_scrub_end_week_day", s.EndWeekDay)
	seconds("osd_scrub_min_interval", s.MinInterval)
	seconds("osd_scrub_max_interval", s.MaxInterval)
	seconds("osd_deep_scrub_interval", s.DeepInterval)
}
