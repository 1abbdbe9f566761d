package ceph

import (
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ./internal/healthdoc ../../docs/reference/ceph-health.md

// HealthCode explains one of Ceph's health checks.
type HealthCode struct {
	Code string
	// Meaning says what is wrong, Next the step to take. Its commands are for 'holdfast ceph shell', but for those of holdfast itself.
	Meaning, Next string
}

// nextUnknown is the next step for a check that the table does not have: it is of a newer Ceph, or of a manager's module.
const nextUnknown = "'ceph health detail' says more; look the code up in Ceph's own documentation ('Health checks')"

// healthCodes are the checks of Ceph 16, as its mons, managers and modules name them, and some of later releases, each once and sorted.
// (Ceph docs, "Health checks" and "CephFS health messages".)
var healthCodes = []HealthCode{
	{"ALERTS_SMTP_ERROR", "The module alerts cannot send mail.", "check the mail server's settings: 'ceph config dump | grep alerts'"},
	{"AUTH_BAD_CAPS", "An entity has capabilities that cannot be understood.", "see whose: 'ceph health detail'; correct them: 'ceph auth caps', or in its Client's spec"},
	{"AUTH_INSECURE_GLOBAL_ID_RECLAIM", "Clients that are too old to prove who they were are connected.", "upgrade the clients that 'ceph health detail' names"},
	{"AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED", "Clients may take over another one's identity (CVE-2021-20288).", "when all clients are new enough, set auth_allow_insecure_global_id_reclaim to false in spec.ceph.config"},
	{"BLUEFS_SPILLOVER", "An OSD's metadata has outgrown its fast device and lies on the slow one.", "give its DriveGroup a larger db device and replace the OSD, or have it compacted: 'ceph tell osd.N compact'"},
	{"BLUESTORE_DISK_SIZE_MISMATCH", "An OSD remembers another size of its device than the device has.", "take the OSD out before it crashes: withdraw its device from the StorageNode, and declare it again when it is wiped"},
	{"BLUESTORE_FRAGMENTATION", "The free space of an OSD is in many pieces.", "move data off it for a while: 'ceph osd reweight', or replace the OSD"},
	{"BLUESTORE_LEGACY_STATFS", "An OSD of before Ceph 14 counts its space as a whole and not by pool.", "while the OSD is stopped: 'ceph-bluestore-tool repair --path …' on its host"},
	{"BLUESTORE_NO_COMPRESSION", "An OSD cannot load the compressor that a pool wants.", "install the same packages of Ceph on its host as on the others"},
	{"BLUESTORE_NO_PER_PG_OMAP", "An OSD of an older release does not count omap by placement group.", "while the OSD is stopped: 'ceph-bluestore-tool repair --path …', or replace it"},
	{"BLUESTORE_NO_PER_POOL_OMAP", "An OSD of before Ceph 15 does not count omap by pool.", "while the OSD is stopped: 'ceph-bluestore-tool repair --path …', or replace it"},
	{"BLUESTORE_SLOW_OP_ALERT", "An OSD's device takes seconds for single reads or writes.", "look at the device ('smartctl -a', the kernel's log on its host), and replace it if it fails"},
	{"BLUESTORE_SPURIOUS_READ_ERRORS", "Reads of an OSD's device failed and worked when they were repeated.", "look at the device ('smartctl -a', the kernel's log on its host), its controller and memory; replace it if it goes on"},
	{"CACHE_POOL_NEAR_FULL", "A cache pool is almost full.", "raise its target_max_bytes: 'ceph osd pool set POOL target_max_bytes'"},
	{"CACHE_POOL_NO_HIT_SET", "A cache pool keeps no record of what is used.", "'ceph osd pool set POOL hit_set_type bloom'"},
	{"DAEMON_OLD_VERSION", "Daemons run different releases of Ceph for long.", "'holdfast status' shows who runs what; bring the packages of all hosts to one release and restart the old ones: 'holdfast daemon restart'"},
	{"DEGRADED_STRETCH_MODE", "A site of a stretched cluster is missing.", "bring the site back; 'ceph osd tree' shows which hosts are down"},
	{"DEVICE_FAULT_ON", "The fault light of a device is on.", "when it is replaced: 'ceph device light off DEVICE'"},
	{"DEVICE_HEALTH", "A device is expected to fail soon.", "replace it: withdraw it from its StorageNode; its data moves before the OSD stops"},
	{"DEVICE_HEALTH_IN_USE", "A device that is expected to fail still holds data although its OSD is out.", "wait until the data has moved: 'ceph -s'"},
	{"DEVICE_HEALTH_TOOMANY", "More devices are expected to fail than may be out at one time.", "replace them one after the other, the one with the shortest life first: 'ceph device ls'"},
	{"DEVICE_IDENT_ON", "The locate light of a device is on.", "'ceph device light off DEVICE ident'"},
	{"FS_DEGRADED", "A file system has a metadata server that is missing or starting.", "'ceph fs status'; 'holdfast why' with the mds that does not run"},
	{"FS_INLINE_DATA_DEPRECATED", "A file system uses inline data.", "'ceph fs set FS inline_data false'"},
	{"FS_WITH_FAILED_MDS", "A file system has a rank that failed, and no standby takes it over.", "'ceph fs status'; 'holdfast why' with the mds that does not run"},
	{"HARDWARE_STORAGE", "A host reports that its storage hardware fails.", "look at the host's own hardware log"},
	{"LARGE_OMAP_OBJECTS", "Objects have very many keys, mostly the index of a bucket of an object store.", "'ceph health detail' names the pool; have the bucket's index spread: 'radosgw-admin bucket limit check'"},
	{"MANY_OBJECTS_PER_PG", "A pool has far more objects in each placement group than the others.", "let Ceph choose the number: 'ceph osd pool set POOL pg_autoscale_mode on'"},
	{"MDS_ALL_DOWN", "No metadata server of a file system runs: its files cannot be reached.", "'holdfast why' with an mds of it"},
	{"MDS_CACHE_OVERSIZED", "A metadata server uses more memory than it should.", "raise mds_cache_memory_limit in spec.ceph.config, or look for the client that holds most: 'ceph tell mds.NAME client ls'"},
	{"MDS_CLIENTS_LAGGY", "Clients of a file system are slow to answer because OSDs are.", "look at the OSDs first: 'ceph osd perf'"},
	{"MDS_CLIENT_LATE_RELEASE", "A client of a file system does not give back what it was asked for.", "'ceph health detail' names it; update its kernel or ceph-fuse, or end it: 'ceph tell mds.NAME client evict id=…'"},
	{"MDS_CLIENT_LATE_RELEASE_MANY", "Many clients of a file system do not give back what they were asked for.", "'ceph tell mds.NAME client ls'; update their kernels or ceph-fuse"},
	{"MDS_CLIENT_OLDEST_TID", "A client of a file system does not complete its oldest request.", "'ceph health detail' names it; update its kernel or ceph-fuse, or mount anew there"},
	{"MDS_CLIENT_OLDEST_TID_MANY", "Many clients of a file system do not move on with their oldest requests.", "'ceph tell mds.NAME client ls'; update their kernels or ceph-fuse"},
	{"MDS_CLIENT_RECALL", "A client of a file system holds more in its cache than it was asked to.", "'ceph health detail' names it; update it, or give the mds more memory (mds_cache_memory_limit)"},
	{"MDS_CLIENT_RECALL_MANY", "Many clients of a file system hold more in their caches than they were asked to.", "give the mds more memory (mds_cache_memory_limit)"},
	{"MDS_DAMAGE", "Metadata of a file system is damaged.", "write nothing more to what is named, and see what it is: 'ceph tell mds.NAME damage ls'; then Ceph docs, 'Advanced: metadata repair'"},
	{"MDS_HEALTH_READ_ONLY", "A metadata server has made its file system read-only after an error.", "look at its log: 'holdfast why' with the mds; then restart it: 'holdfast daemon restart'"},
	{"MDS_INSUFFICIENT_STANDBY", "Fewer metadata servers stand by than the file system wants.", "raise the number in the Filesystem's spec, or 'holdfast why' with an mds that does not run"},
	{"MDS_READ_ONLY", "A metadata server has made its file system read-only after an error.", "look at its log: 'holdfast why' with the mds; then restart it: 'holdfast daemon restart'"},
	{"MDS_SLOW_METADATA_IO", "A metadata server waits for OSDs.", "find the slow OSDs: 'ceph osd perf', and 'ceph health detail'"},
	{"MDS_SLOW_REQUEST", "A metadata server has requests that take long.", "'ceph tell mds.NAME dump_ops_in_flight' says what they wait for"},
	{"MDS_TRIM", "A metadata server's journal grows faster than it is trimmed.", "look for slow OSDs in the metadata pool ('ceph osd perf'); else raise mds_log_max_segments"},
	{"MDS_UP_LESS_THAN_MAX", "Fewer metadata servers are active than the file system wants.", "'ceph fs status'; 'holdfast why' with an mds that does not run"},
	{"MGR_DOWN", "No manager is active: nothing new is reported.", "'holdfast why' with a mgr that does not run"},
	{"MGR_INFLUX_DB_LIST_FAILED", "The module influx does not get at its database.", "'ceph influx config-show', and correct it"},
	{"MGR_INFLUX_NO_SERVER", "The module influx has no server.", "'ceph influx config-set hostname …', or switch it off: 'ceph mgr module disable influx'"},
	{"MGR_INFLUX_QUEUE_FULL", "The module influx cannot send as fast as it should.", "look at the influx server, or raise the module's interval"},
	{"MGR_INFLUX_SEND_FAILED", "The module influx cannot send.", "look at the influx server, and 'ceph influx config-show'"},
	{"MGR_MODULE_DEPENDENCY", "A module of the manager lacks something on its host.", "'ceph health detail' names what; install it on the hosts of the mgrs, or switch the module off"},
	{"MGR_MODULE_ERROR", "A module of the manager has failed.", "'ceph health detail' says how; have another manager take over: 'ceph mgr fail'"},
	{"MGR_ZABBIX_NO_SERVER", "The module zabbix has no server.", "'ceph zabbix config-set zabbix_host …', or switch it off: 'ceph mgr module disable zabbix'"},
	{"MGR_ZABBIX_SEND_FAILED", "The module zabbix cannot send.", "look at the zabbix server, and 'ceph zabbix config-show'"},
	{"MON_CLOCK_SKEW", "The clocks of the mons' hosts differ; mons that differ too much lose the quorum.", "see that chrony or ntpd runs on the hosts that 'ceph time-sync-status' names: 'chronyc tracking' there"},
	{"MON_DISK_BIG", "A mon's database is very large.", "it shrinks when all placement groups are clean again; else 'ceph tell mon.NAME compact'"},
	{"MON_DISK_CRIT", "The file system of a mon is all but full; the mon stops soon.", "make room on its host now: 'df -h /var/lib/holdfast' there"},
	{"MON_DISK_LOW", "The file system of a mon is getting full.", "make room on its host: 'df -h /var/lib/holdfast' there"},
	{"MON_DOWN", "A mon is not in the quorum.", "'holdfast why mon.NAME'; when its host is gone for good: 'holdfast host remove HOST --gone'"},
	{"MON_LOCATION_NOT_SET", "A mon of a stretched cluster has no location.", "'ceph mon set_location NAME …'"},
	{"MON_MSGR2_NOT_ENABLED", "Mons do not speak the newer protocol.", "'ceph mon enable-msgr2'"},
	{"OBJECT_MISPLACED", "Data is not where it belongs yet; all copies are there.", "nothing: it moves by itself; spec.ceph.recovery says how fast"},
	{"OBJECT_UNFOUND", "The newest copy of some objects is on OSDs that are missing.", "bring back the OSDs that are down ('ceph osd tree', 'holdfast why osd.N'); never purge them before. Last: Ceph docs, 'Unfound objects'"},
	{"OLD_CRUSH_STRAW_CALC_VERSION", "CRUSH weighs data by an old formula.", "'ceph osd crush set-tunable straw_calc_version 1'; some data moves"},
	{"OLD_CRUSH_TUNABLES", "CRUSH uses old settings.", "'ceph osd crush tunables optimal', when all clients are new enough; much data moves"},
	{"OSDMAP_FLAGS", "A flag such as noout, norebalance or pauserd is set for the whole cluster, by an administrator: Holdfast sets flags of single OSDs only.", "when the reason for it is over: 'ceph osd unset FLAG'"},
	{"OSD_BACKFILLFULL", "An OSD is so full that nothing is moved to it.", "add disks, or delete data; 'ceph osd df' shows how full each is"},
	{"OSD_DOWN", "An OSD is down.", "'holdfast why osd.N'; 'ceph osd tree down' lists them"},
	{"OSD_FILESTORE", "An OSD uses a format that is gone from newer releases.", "replace it: withdraw its device from its StorageNode and declare it again"},
	{"OSD_FLAGS", "OSDs, hosts or device classes have flags such as noout. Holdfast sets noout on the OSDs of hosts in maintenance and takes it back.", "'ceph health detail' names them; 'holdfast get hosts' says who is in maintenance; others: 'ceph osd unset-group FLAG WHO'"},
	{"OSD_FULL", "An OSD is full: nothing can be written to pools that use it.", "delete data or add disks now; to be able to delete: 'ceph osd set-full-ratio 0.97', and back to 0.95 afterwards"},
	{"OSD_NEARFULL", "An OSD is almost full.", "add disks or delete data before it is full; 'ceph osd df' shows how full each is, and whether 'ceph balancer status' is on"},
	{"OSD_NO_DOWN_OUT_INTERVAL", "OSDs that are down are never marked out, so lost copies are not restored.", "remove mon_osd_down_out_interval from spec.ceph.config"},
	{"OSD_NO_SORTBITWISE", "A flag of very old clusters is missing.", "'ceph osd set sortbitwise'"},
	{"OSD_ORPHAN", "CRUSH has an OSD that does not exist.", "'ceph osd crush rm osd.N'"},
	{"OSD_OSDMAP_FLAGS", "A flag is set for the whole cluster.", "when the reason for it is over: 'ceph osd unset FLAG'"},
	{"OSD_OUT_OF_ORDER_FULL", "The ratios nearfull, backfillfull and full are not in this order.", "'ceph osd dump | grep ratio', then 'ceph osd set-nearfull-ratio', 'set-backfillfull-ratio' and 'set-full-ratio'"},
	{"OSD_SCRUB_ERRORS", "Scrubbing found copies that differ.", "'ceph health detail' names the placement groups; see PG_DAMAGED"},
	{"OSD_SLOW_PING_TIME_BACK", "OSDs reach each other slowly on the network for replication.", "look at the network between the hosts that 'ceph health detail' names (errors, full links, MTU)"},
	{"OSD_SLOW_PING_TIME_FRONT", "OSDs reach each other slowly on the public network.", "look at the network between the hosts that 'ceph health detail' names (errors, full links, MTU)"},
	{"OSD_TOO_MANY_REPAIRS", "An OSD had to mend many reads from other copies: its device fails.", "replace the device: withdraw it from its StorageNode"},
	{"OSD_UNREACHABLE", "An OSD has an address outside of the public network.", "check spec.network.public, and the addresses: 'ceph osd dump'"},
	{"OSD_UPGRADE_FINISHED", "All OSDs run a newer release than the cluster relies on.", "'ceph osd require-osd-release RELEASE'"},
	{"PG_AVAILABILITY", "Some data cannot be reached now.", "bring back the OSDs that are down: 'ceph osd tree down', 'holdfast why osd.N'; 'ceph pg dump_stuck inactive' lists what waits"},
	{"PG_BACKFILL_FULL", "Copies are not made where they belong, because OSDs there are too full.", "add disks, or delete data; 'ceph osd df' shows how full each is"},
	{"PG_DAMAGED", "Copies of a placement group differ, or it has lost its history.", "'ceph health detail' names it; see what differs: 'rados list-inconsistent-obj PG'; if one copy is plainly bad: 'ceph pg repair PG'"},
	{"PG_DEGRADED", "Some data has fewer copies than it should.", "nothing if OSDs are on their way; else bring back those that are down ('ceph osd tree down'). Copies are then made by themselves"},
	{"PG_NOT_DEEP_SCRUBBED", "Placement groups were not compared bit by bit for long.", "give it more time: spec.ceph.scrub (hours, days), or start it: 'ceph pg deep-scrub PG'"},
	{"PG_NOT_SCRUBBED", "Placement groups were not scrubbed for long.", "give it more time: spec.ceph.scrub (hours, days), or start it: 'ceph pg scrub PG'"},
	{"PG_RECOVERY_FULL", "Copies cannot be restored, because OSDs are full.", "add disks, or delete data, now; 'ceph osd df' shows how full each is"},
	{"PG_SLOW_SNAP_TRIMMING", "Deleted snapshots are cleaned up slowly.", "look for slow OSDs ('ceph osd perf'); make fewer snapshots"},
	{"POOL_APP_NOT_ENABLED", "A pool has no application.", "'ceph osd pool application enable POOL rbd' (or cephfs, rgw), or declare it as a Pool with spec.application"},
	{"POOL_BACKFILLFULL", "A pool lies on OSDs that are too full to take copies.", "add disks, or delete data; 'ceph df'"},
	{"POOL_FULL", "A pool has reached its quota, or lies on full OSDs: it takes no writes.", "raise the quota in the Pool's spec, or delete data; 'ceph df detail'"},
	{"POOL_HAS_TARGET_SIZE_BYTES_AND_RATIO", "A pool has both a target size and a target ratio.", "'ceph osd pool set POOL target_size_bytes 0'"},
	{"POOL_NEARFULL", "A pool is near its quota, or lies on OSDs that are almost full.", "raise the quota in the Pool's spec, add disks, or delete data; 'ceph df detail'"},
	{"POOL_NO_REDUNDANCY", "A pool keeps one copy: any disk that fails takes its data with it.", "raise spec.replicated.size of the Pool, or 'ceph osd pool set POOL size 3'"},
	{"POOL_PG_NUM_NOT_POWER_OF_TWO", "A pool's placement groups are no power of two, and so not equally large.", "'ceph osd pool set POOL pg_num' with a power of two, or pg_autoscale_mode on"},
	{"POOL_SCRUB_FLAGS", "A pool is kept from being scrubbed.", "when the reason for it is over: 'ceph osd pool set POOL noscrub 0' and nodeep-scrub"},
	{"POOL_TARGET_SIZE_BYTES_OVERCOMMITTED", "Pools are expected to grow beyond the space that there is.", "lower target_size_bytes of a pool, or add disks: 'ceph osd pool autoscale-status'"},
	{"POOL_TARGET_SIZE_RATIO_OVERCOMMITTED", "The target ratios of pools come to more than all.", "lower target_size_ratio of a pool: 'ceph osd pool autoscale-status'"},
	{"POOL_TOO_FEW_PGS", "A pool has fewer placement groups than it needs.", "'ceph osd pool set POOL pg_autoscale_mode on'"},
	{"POOL_TOO_MANY_PGS", "A pool has more placement groups than it needs.", "'ceph osd pool set POOL pg_autoscale_mode on'"},
	{"RECENT_CRASH", "A daemon crashed within the last two weeks.", "'ceph crash ls-new', 'ceph crash info ID' and the daemon's log; when it is dealt with: 'ceph crash archive-all'"},
	{"RECENT_MGR_MODULE_CRASH", "A module of the manager crashed within the last two weeks.", "'ceph crash ls-new', 'ceph crash info ID'; when it is dealt with: 'ceph crash archive-all'"},
	{"REQUEST_SLOW", "Requests take long.", "find the slow OSDs: 'ceph osd perf' and 'ceph health detail'"},
	{"REQUEST_STUCK", "Requests are stuck.", "find the OSDs: 'ceph health detail'; 'ceph tell osd.N dump_blocked_ops'; then 'holdfast daemon restart' with the one that hangs"},
	{"SLOW_OPS", "Requests to a daemon take more than half a minute.", "'ceph health detail' names it; 'ceph tell osd.N dump_ops_in_flight' says what they wait for; look at its disk ('ceph osd perf') and network"},
	{"SMALLER_PGP_NUM", "A pool places its data by fewer placement groups than it has.", "'ceph osd pool set POOL pgp_num' with the value of pg_num"},
	{"TELEMETRY_CHANGED", "The module telemetry would send more data, which must be approved.", "'ceph telemetry show', then 'ceph telemetry on', or 'ceph telemetry off'"},
	{"TOO_FEW_OSDS", "There are fewer OSDs than the pools keep copies.", "declare more disks, or lower osd_pool_default_size in spec.ceph.config"},
	{"TOO_FEW_PGS", "There are few placement groups for so many OSDs.", "'ceph osd pool set POOL pg_autoscale_mode on'"},
	{"TOO_MANY_PGS", "There are too many placement groups for so few OSDs.", "add disks, or let Ceph lower the number: 'ceph osd pool set POOL pg_autoscale_mode on'"},
}

// HealthCodes are all health checks that there is a next step for, sorted.
func HealthCodes() []HealthCode { return slices.Clone(healthCodes) }

// nextStep is what to do about a health check.
func nextStep(code string) string {
	if i, found := slices.BinarySearchFunc(healthCodes, code, func(h HealthCode, code string) int { return strings.Compare(h.Code, code) }); found {
		return healthCodes[i].Next
	}
	// OSD_HOST_DOWN, OSD_RACK_DOWN … are made from the types of CRUSH's buckets.
	if kind, ok := strings.CutPrefix(code, "OSD_"); ok {
		if kind, ok = strings.CutSuffix(kind, "_DOWN"); ok {
			return fmt.Sprintf("all OSDs of a %s are down: is it without power or network? 'ceph osd tree down', then 'holdfast get hosts'", strings.ToLower(kind))
		}
	}
	return nextUnknown
}

// HealthPage is the reference page of health checks, in Markdown.
func HealthPage() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by 'make generate' from driver/ceph/healthcodes.go. Do not edit. -->
# Ceph's health checks, and the next step of each

'holdfast status' and 'holdfast why' show Ceph's health checks with the next step. Each is recorded in one event when
it appears (HEALTH_CHECK_RAISED) and in one when it is over (HEALTH_CHECK_CLEARED). Run the Ceph commands in 'holdfast
ceph shell'. To mute a check for a while: 'ceph health mute CODE 1d'; 'status.ceph.muted' lists muted checks.

| code | what is wrong | next step |
|---|---|---|
| OSD_*TYPE*_DOWN | All OSDs of a host, rack or another bucket of CRUSH are down. | is it without power or network? 'ceph osd tree down', then 'holdfast get hosts' |
`)
	for _, c := range healthCodes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Code, c.Meaning, strings.ReplaceAll(c.Next, "|", "\\|"))
	}
	return b.String()
}
