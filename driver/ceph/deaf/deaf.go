// Package deaf finds daemons whose processes run while Ceph hears nothing of them. It is pure.
package deaf

import (
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Mgr says whether a mgr hangs: its process runs for longer than a time, and Ceph has no mgr at all, neither active
// nor standby. A ceph-mgr may lock up while it becomes active, mostly by Python's global lock, and does nothing from
// then on (Ceph tracker 55687, 61969). Ceph drops a mgr after 30 s without a beacon (option mon_mgr_beacon_grace). A
// mgr loads its modules before its first one, which takes seconds, and on a machine that is very busy half a minute.
func Mgr(d *api.Daemon, active string, standbys int, now time.Time, after time.Duration) bool {
	runs := d.Status.State == api.DaemonRunning && d.Status.Started != nil
	return runs && active == "" && standbys == 0 && now.Sub(d.Status.Started.Time) > after
}
