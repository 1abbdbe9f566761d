// Package health explains the health checks of Ceph, and names the next step of each.
package health

import (
	"fmt"
	"slices"
	"strings"
)

//go:generate go run ../internal/healthdoc ../../../docs/reference/ceph-health.md

// Code explains one of Ceph's health checks.
type Code struct {
	Code string
	// Meaning says what is wrong, Next the step to take.
	Meaning, Next string
}

// NextUnknown is the next step for a check that the table does not have: it is of a newer Ceph, or of a
// manager's module.
const NextUnknown = "see what it names with 'holdfast ceph health detail'; to accept it for a week, run " +
	"'holdfast ceph health mute CODE 1w'"

// codes are the checks of Ceph 16 to 20, as their mons, managers and modules name them, each once and sorted.
// (Ceph docs, "Health checks" and "CephFS health messages".)
var codes = []Code{
	{
		"ALERTS_SMTP_ERROR", "The module alerts cannot send mail.",
		"check the mail server's settings: 'holdfast ceph config dump | grep alerts'",
	},
	{
		"AUTH_BAD_CAPS", "An entity has capabilities that cannot be understood.",
		"see whose: 'holdfast ceph health detail'; correct them: 'holdfast ceph auth caps', or in its Client's spec",
	},
	{
		"AUTH_EMERGENCY_CIPHERS_SET", "Ciphers for keys are set that only serve in an emergency.",
		"when the emergency is over: 'holdfast ceph config dump' names the option; remove it",
	},
	{
		"AUTH_INSECURE_CLIENT_KEY_TYPE", "Clients have keys of an old, weaker kind.",
		"have new keys made of those that 'holdfast ceph health detail' names: 'holdfast ceph auth rotate ENTITY'",
	},
	{
		"AUTH_INSECURE_GLOBAL_ID_RECLAIM", "Clients are connected that are too old to prove their earlier identity.",
		"upgrade the clients that 'holdfast ceph health detail' names",
	},
	{
		"AUTH_INSECURE_GLOBAL_ID_RECLAIM_ALLOWED", "Clients may take over another one's identity (CVE-2021-20288).",
		"when all clients are new enough, set auth_allow_insecure_global_id_reclaim to false in spec.ceph.config",
	},
	{
		"AUTH_INSECURE_KEYS_ALLOWED", "Ceph accepts keys of an old, weaker kind.",
		"when no entity has one ('holdfast ceph health detail'), let Ceph accept the newer kind alone",
	},
	{
		"AUTH_INSECURE_KEYS_CREATABLE", "Ceph makes new keys of an old, weaker kind.",
		"when all clients are new enough, let Ceph make keys of the newer kind alone",
	},
	{
		"AUTH_INSECURE_ROTATING_SERVICE_KEY_TYPE", "The keys that Ceph renews by itself are of an old, weaker kind.",
		"when all daemons are upgraded: 'holdfast ceph auth wipe-rotating-service-keys'",
	},
	{
		"AUTH_INSECURE_SERVICE_KEY_TYPE", "Daemons have keys of an old, weaker kind.",
		"have new keys made of those that 'holdfast ceph health detail' names: 'holdfast ceph auth rotate ENTITY'",
	},
	{
		"AUTH_INSECURE_SERVICE_TICKETS", "Tickets for daemons are of an old, weaker kind.",
		"when all daemons are upgraded: 'holdfast ceph auth wipe-rotating-service-keys'",
	},
	{
		"BLOCK_DEVICE_STALLED_READ_ALERT", "An OSD's device stalls while it reads.",
		"check the device ('smartctl -a', the kernel's log on its host), and replace it if it fails",
	},
	{
		"BLUEFS_AVAILABLE_SPACE", "The metadata of an OSD has little room.",
		"'holdfast ceph osd df' shows how full it is; add disks or delete data",
	},
	{
		"BLUEFS_LOW_SPACE", "The metadata of an OSD has almost no room.",
		"'holdfast ceph osd df' shows how full it is; add disks or delete data",
	},
	{
		"BLUEFS_SPILLOVER", "An OSD's metadata has outgrown its fast device and spills over to the slow one.",
		"give its DriveGroup a larger db device and replace the OSD, or compact its database: 'holdfast ceph tell " +
			"osd.N compact'",
	},
	{
		"BLUESTORE_DISK_SIZE_MISMATCH", "An OSD has recorded another size of its device than the device has.",
		"remove the OSD before it crashes: remove its device from the StorageNode, and add it again when it is " +
			"wiped",
	},
	{
		"BLUESTORE_FRAGMENTATION", "The free space of an OSD is in many pieces.",
		"move data off it for a while: 'holdfast ceph osd reweight', or replace the OSD",
	},
	{
		"BLUESTORE_FREE_FRAGMENTATION", "The free space of an OSD is in many pieces.",
		"move data off it for a while: 'holdfast ceph osd reweight OSD 0.9', or replace the OSD",
	},
	{
		"BLUESTORE_LEGACY_STATFS", "An OSD of before Ceph 14 counts its space as a whole and not by pool.",
		"while the OSD is stopped: 'ceph-bluestore-tool repair --path /var/lib/ceph/osd/ceph-N' on its host",
	},
	{
		"BLUESTORE_NO_COMPRESSION", "An OSD cannot load the compressor that a pool wants.",
		"install the same packages of Ceph on its host as on the others",
	},
	{
		"BLUESTORE_NO_PER_PG_OMAP", "An OSD of an older release does not count omap by placement group.",
		"while the OSD is stopped: 'ceph-bluestore-tool repair --path …', or replace it",
	},
	{
		"BLUESTORE_NO_PER_POOL_OMAP", "An OSD of before Ceph 15 does not count omap by pool.",
		"while the OSD is stopped: 'ceph-bluestore-tool repair --path …', or replace it",
	},
	{
		"BLUESTORE_SLOW_OP_ALERT", "An OSD's device takes seconds for single reads or writes.",
		"check the device ('smartctl -a', the kernel's log on its host), and replace it if it fails",
	},
	{
		"BLUESTORE_SPURIOUS_READ_ERRORS", "Reads of an OSD's device failed and worked when they were repeated.",
		"check the device ('smartctl -a', the kernel's log on its host), its controller and memory; replace it if " +
			"the errors continue",
	},
	{
		"CACHE_POOL_NEAR_FULL", "A cache pool is almost full.",
		"raise its target_max_bytes: 'holdfast ceph osd pool set POOL target_max_bytes'",
	},
	{
		"CACHE_POOL_NO_HIT_SET", "A cache pool does not record which objects are used.",
		"'holdfast ceph osd pool set POOL hit_set_type bloom'",
	},
	{
		"CEPHADM_AGENT_DOWN", "cephadm misses agents of its own. Holdfast does not use them.",
		"switch them off: 'holdfast ceph config set mgr mgr/cephadm/use_agent false'",
	},
	{
		"CEPHADM_CERT_ERROR", "cephadm has a certificate that is invalid or expires.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_CERT_WARNING", "cephadm has a certificate that expires.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_DAEMON_PLACE_FAIL", "cephadm cannot start daemons.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_FAILED_DAEMON", "A daemon that cephadm manages has failed.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_FAILED_SET_OPTION", "cephadm cannot set an option.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_HOST_CHECK_FAILED", "A host does not meet what cephadm wants.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_INVALID_CONFIG_OPTION", "cephadm was given an option that Ceph does not have.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_PAUSED", "cephadm is paused.",
		"nothing: Holdfast manages this cluster; 'holdfast ceph mgr module disable cephadm' ends the " +
			"warning",
	},
	{
		"CEPHADM_REFRESH_FAILED", "cephadm cannot read the state of hosts.",
		"Holdfast manages this cluster: switch cephadm off with 'holdfast ceph mgr module disable " +
			"cephadm'",
	},
	{
		"CEPHADM_STRAY_DAEMON", "cephadm reports daemons that it does not manage: those of Holdfast.",
		"nothing: 'holdfast ceph mgr module disable cephadm' ends the warning",
	},
	{
		"CEPHADM_STRAY_HOST", "cephadm reports hosts with daemons that it does not manage: those of Holdfast.",
		"nothing: 'holdfast ceph mgr module disable cephadm' ends the warning",
	},
	{
		"DAEMON_OLD_VERSION", "Daemons have run different releases of Ceph for a long time.",
		"install one release on all hosts ('holdfast status' shows the releases), and restart the old daemons: " +
			"'holdfast daemon restart'",
	},
	{
		"DASHBOARD_DEBUG", "The dashboard shows every user its errors in full.",
		"'holdfast ceph dashboard debug disable'",
	},
	{
		"DB_DEVICE_STALLED_READ_ALERT", "The device of an OSD's database stalls while it reads.",
		"check the device ('smartctl -a', the kernel's log on its host), and replace it if it fails",
	},
	{
		"DEGRADED_STRETCH_MODE", "A site of a stretched cluster is missing.",
		"bring the site back; 'holdfast ceph osd tree' shows which hosts are down",
	},
	{
		"DEVICE_FAULT_ON", "The fault light of a device is on.",
		"when it is replaced: 'holdfast ceph device light off DEVICE'",
	},
	{
		"DEVICE_HEALTH", "A device is expected to fail soon.",
		"replace it: remove it from its StorageNode; its data moves before the OSD stops",
	},
	{
		"DEVICE_HEALTH_IN_USE", "A device that is expected to fail still holds data although its OSD is out.",
		"wait until the data has moved: 'holdfast ceph -s'",
	},
	{
		"DEVICE_HEALTH_TOOMANY", "More devices are expected to fail than may be out at one time.",
		"replace them one at a time, the one with the shortest life expectancy first: 'holdfast ceph device ls'",
	},
	{"DEVICE_IDENT_ON", "The locate light of a device is on.", "'holdfast ceph device light off DEVICE ident'"},
	{
		"FS_DEGRADED", "A file system has a metadata server that is missing or starting.",
		"run 'holdfast why' with the Filesystem, or see 'holdfast ceph fs status'",
	},
	{"FS_INLINE_DATA_DEPRECATED", "A file system uses inline data.", "'holdfast ceph fs set FS inline_data false'"},
	{
		"FS_WITH_FAILED_MDS", "A file system has a rank that failed, and no standby takes it over.",
		"run 'holdfast why' with the Filesystem, or see 'holdfast ceph fs status'",
	},
	{"HARDWARE_FANS", "A host reports that a fan fails.", "check the host's hardware log"},
	{"HARDWARE_MEMORY", "A host reports that its memory fails.", "check the host's hardware log"},
	{"HARDWARE_NETWORK", "A host reports that its network hardware fails.", "check the host's hardware log"},
	{"HARDWARE_POWER", "A host reports that a power supply fails.", "check the host's hardware log"},
	{"HARDWARE_PROCESSORS", "A host reports that a processor fails.", "check the host's hardware log"},
	{"HARDWARE_STORAGE", "A host reports that its storage hardware fails.", "check the host's hardware log"},
	{
		"HARDWARE_TEMPERATURES", "A host reports that it is too hot.",
		"check the host's hardware log, and its cooling",
	},
	{
		"INCORRECT_NUM_BUCKETS_STRETCH_MODE", "A stretched cluster has not exactly two sites.",
		"'holdfast ceph osd tree' shows the sites: move hosts of others to one of the two",
	},
	{
		"LARGE_OMAP_OBJECTS", "Objects have very many keys, mostly the index of a bucket of an object store.",
		"'holdfast ceph health detail' names the pool; have the bucket's index spread: 'holdfast ceph shell -- " +
			"radosgw-admin bucket limit check'",
	},
	{
		"MANY_OBJECTS_PER_PG", "A pool has far more objects in each placement group than the others.",
		"let Ceph choose the number: 'holdfast ceph osd pool set POOL pg_autoscale_mode on'",
	},
	{
		"MDS_ALL_DOWN", "No metadata server of a file system runs: its files cannot be reached.",
		"run 'holdfast why' with the Filesystem; after 'ceph fs fail': 'holdfast ceph fs set FS " +
			"joinable true'",
	},
	{
		"MDS_CACHE_OVERSIZED", "A metadata server uses more memory than it should.",
		"raise mds_cache_memory_limit in spec.ceph.config, or find the client that holds most: 'holdfast ceph tell " +
			"mds.NAME client ls'",
	},
	{
		"MDS_CLIENTS_BROKEN_ROOTSQUASH", "Clients mount with root squashed and are too old to do it safely.",
		"upgrade the clients that 'holdfast ceph health detail' names",
	},
	{
		"MDS_CLIENTS_LAGGY", "Clients of a file system are slow to answer because OSDs are.",
		"check the OSDs first: 'holdfast ceph osd perf'",
	},
	{
		"MDS_CLIENT_LATE_RELEASE", "A client of a file system does not release capabilities that the MDS asked for.",
		"'holdfast ceph health detail' names it; update its kernel or ceph-fuse, or evict it: 'holdfast ceph tell " +
			"mds.NAME client evict id=…'",
	},
	{
		"MDS_CLIENT_LATE_RELEASE_MANY",
		"Many clients of a file system do not release capabilities that the MDS asked for.",
		"'holdfast ceph tell mds.NAME client ls'; update their kernels or ceph-fuse",
	},
	{
		"MDS_CLIENT_OLDEST_TID", "A client of a file system does not complete its oldest request.",
		"'holdfast ceph health detail' names it; update its kernel or ceph-fuse, or mount again there",
	},
	{
		"MDS_CLIENT_OLDEST_TID_MANY", "Many clients of a file system do not complete their oldest requests.",
		"'holdfast ceph tell mds.NAME client ls'; update their kernels or ceph-fuse",
	},
	{
		"MDS_CLIENT_RECALL", "A client of a file system holds more in its cache than it was asked to.",
		"'holdfast ceph health detail' names it; update it, or give the mds more memory (mds_cache_memory_limit)",
	},
	{
		"MDS_CLIENT_RECALL_MANY", "Many clients of a file system hold more in their caches than they were asked to.",
		"give the mds more memory (mds_cache_memory_limit)",
	},
	{
		"MDS_DAMAGE", "Metadata of a file system is damaged.",
		"stop writing to the damaged files and list the damage: 'holdfast ceph tell mds.NAME damage ls'; then have " +
			"the MDS repair it: 'holdfast ceph tell mds.NAME scrub start / recursive,repair'",
	},
	{
		"MDS_ESTIMATED_REPLAY_TIME", "A metadata server reads its journal for a long time before it serves.",
		"wait; 'holdfast ceph health detail' has Ceph's estimate",
	},
	{
		"MDS_HEALTH_READ_ONLY", "A metadata server has made its file system read-only after an error.",
		"check its log: 'holdfast why' with the mds; then restart it: 'holdfast daemon restart'",
	},
	{
		"MDS_INSUFFICIENT_STANDBY", "Fewer metadata servers stand by than the file system wants.",
		"raise the number in the Filesystem's spec, or 'holdfast why' with an mds that does not run",
	},
	{
		"MDS_READ_ONLY", "A metadata server has made its file system read-only after an error.",
		"check its log: 'holdfast why' with the mds; then restart it: 'holdfast daemon restart'",
	},
	{
		"MDS_SLOW_METADATA_IO", "A metadata server waits for OSDs.",
		"find the slow OSDs: 'holdfast ceph osd perf', and 'holdfast ceph health detail'",
	},
	{
		"MDS_SLOW_REQUEST", "A metadata server has requests that take long.",
		"see what they wait for: 'holdfast ceph tell mds.NAME dump_ops_in_flight'",
	},
	{
		"MDS_TRIM", "A metadata server's journal grows faster than it is trimmed.",
		"find slow OSDs in the metadata pool ('holdfast ceph osd perf'); else raise mds_log_max_segments",
	},
	{
		"MDS_UP_LESS_THAN_MAX", "Fewer metadata servers are active than the file system wants.",
		"'holdfast ceph fs status'; 'holdfast why' with an mds that does not run",
	},
	{
		"MGR_DOWN", "No manager is active: Ceph's reports are out of date.",
		"'holdfast why' with a mgr that does not run",
	},
	{
		"MGR_INFLUX_DB_LIST_FAILED", "The module influx cannot reach its database.",
		"'holdfast ceph influx config-show', and correct it",
	},
	{
		"MGR_INFLUX_NO_SERVER", "The module influx has no server.",
		"'holdfast ceph influx config-set hostname …', or switch it off: 'holdfast ceph mgr module disable influx'",
	},
	{
		"MGR_INFLUX_QUEUE_FULL", "The module influx cannot send as fast as it should.",
		"check the influx server, or raise the module's interval",
	},
	{
		"MGR_INFLUX_SEND_FAILED", "The module influx cannot send.",
		"check the influx server, and 'holdfast ceph influx config-show'",
	},
	{
		"MGR_MODULE_DEPENDENCY", "A module of the manager lacks something on its host.",
		"'holdfast ceph health detail' names what; install it on the hosts of the mgrs, or switch the module off",
	},
	{
		"MGR_MODULE_ERROR", "A module of the manager has failed.",
		"see 'holdfast ceph health detail'; let another manager take over: 'holdfast ceph mgr fail'",
	},
	{
		"MGR_ZABBIX_NO_SERVER", "The module zabbix has no server.",
		"'holdfast ceph zabbix config-set zabbix_host …', or switch it off: 'holdfast ceph mgr module disable " +
			"zabbix'",
	},
	{
		"MGR_ZABBIX_SEND_FAILED", "The module zabbix cannot send.",
		"check the zabbix server, and 'holdfast ceph zabbix config-show'",
	},
	{
		"MON_CLOCK_SKEW", "The clocks of the mons' hosts differ; mons that differ too much lose the quorum.",
		"check that chrony or ntpd runs on the hosts that 'holdfast ceph time-sync-status' names: 'chronyc " +
			"tracking' there",
	},
	{
		"MON_DISK_BIG", "A mon's database is very large.",
		"wait until all placement groups are clean; if it stays large: 'holdfast ceph tell mon.NAME compact'",
	},
	{
		"MON_DISK_CRIT", "The file system of a mon is all but full; the mon stops soon.",
		"make room on its host now: 'df -h /var/lib/holdfast' there",
	},
	{
		"MON_DISK_LOW", "The file system of a mon is getting full.",
		"make room on its host: 'df -h /var/lib/holdfast' there",
	},
	{
		"MON_DOWN", "A mon is not in the quorum.",
		"'holdfast why mon.NAME'; when its host is gone for good: 'holdfast host remove HOST --gone'",
	},
	{
		"MON_LOCATION_NOT_SET", "A mon of a stretched cluster has no location.",
		"'holdfast ceph mon set_location NAME …'",
	},
	{"MON_MSGR2_NOT_ENABLED", "Mons do not speak the newer protocol.", "'holdfast ceph mon enable-msgr2'"},
	{
		"MON_NETSPLIT", "Mons do not reach each other.",
		"check the network between the hosts of the mons that 'holdfast ceph health detail' names",
	},
	{
		"MON_STALE_NETWORK_INFO", "A mon has no recent measurement of the network between mons.",
		"'holdfast why quorum'",
	},
	{
		"NONEXISTENT_MON_CRUSH_LOC_STRETCH_MODE", "A mon of a stretched cluster has a site that CRUSH does not have.",
		"'holdfast ceph mon set_location NAME datacenter=SITE'",
	},
	{
		"NVMEOF_GATEWAY_DELETING", "An NVMe-oF gateway is being deleted for a long time.",
		"'holdfast ceph health detail' names it; check that others can take over",
	},
	{
		"NVMEOF_GATEWAY_DOWN", "An NVMe-oF gateway is down.",
		"'holdfast ceph health detail' names it; start it again where it runs: Holdfast runs none",
	},
	{
		"NVMEOF_SINGLE_GATEWAY", "A group of NVMe-oF gateways has one gateway.",
		"add one where they run: Holdfast runs none",
	},
	{
		"OBJECT_MISPLACED", "Data is not at its CRUSH location yet; all copies exist.",
		"nothing: Ceph moves the data; spec.ceph.recovery sets the speed",
	},
	{
		"OBJECT_UNFOUND", "The newest copy of some objects is on OSDs that are missing.",
		"bring back the OSDs that are down ('holdfast ceph osd tree', 'holdfast why osd.N'); do not purge them. As " +
			"a last resort: Ceph docs, 'Unfound objects'",
	},
	{
		"OLD_CRUSH_STRAW_CALC_VERSION", "CRUSH weighs data by an old formula.",
		"'holdfast ceph osd crush set-tunable straw_calc_version 1'; some data moves",
	},
	{
		"OLD_CRUSH_TUNABLES", "CRUSH uses old settings.",
		"'holdfast ceph osd crush tunables optimal', when all clients are new enough; much data moves",
	},
	{
		"OSDMAP_FLAGS",
		"A flag such as noout, norebalance or pauserd is set for the whole cluster, by an administrator: Holdfast " +
			"sets flags of single OSDs only.",
		"when the reason is over: 'holdfast ceph osd unset FLAG' (pauserd and pausewr: 'holdfast ceph osd unset " +
			"pause')",
	},
	{
		"OSD_BACKFILLFULL", "An OSD is so full that Ceph moves no data to it.",
		"add disks, or delete data; 'holdfast ceph osd df' shows how full each is",
	},
	{"OSD_DOWN", "An OSD is down.", "'holdfast why osd.N'; 'holdfast ceph osd tree down' lists them"},
	{
		"OSD_FILESTORE", "An OSD uses a format that is gone from newer releases.",
		"replace it: remove its device from its StorageNode and add it again",
	},
	{
		"OSD_FLAGS",
		"OSDs, hosts or device classes have flags such as noout. Holdfast sets noout on the OSDs of hosts in " +
			"maintenance and unsets it afterwards.",
		"'holdfast ceph health detail' names them; 'holdfast get hosts' shows hosts in maintenance; for others: " +
			"'holdfast ceph osd unset-group FLAG WHO'",
	},
	{
		"OSD_FULL", "An OSD is full: clients cannot write to pools that use it.",
		"delete data or add disks now; to be able to delete: 'holdfast ceph osd set-full-ratio 0.97', and back to " +
			"0.95 afterwards",
	},
	{
		"OSD_NEARFULL", "An OSD is almost full.",
		"add disks or delete data before it is full; 'holdfast ceph osd df' shows how full each is, and whether " +
			"'holdfast ceph balancer status' is on",
	},
	{
		"OSD_NO_DOWN_OUT_INTERVAL", "OSDs that are down are never marked out, so lost copies are not restored.",
		"remove mon_osd_down_out_interval from spec.ceph.config",
	},
	{
		"OSD_NO_SORTBITWISE", "A flag of very old clusters is missing.",
		"'holdfast ceph versions' lists OSDs that are too old: upgrade them",
	},
	{"OSD_ORPHAN", "CRUSH has an OSD that does not exist.", "'holdfast ceph osd crush rm osd.N'"},
	{
		"OSD_OSDMAP_FLAGS", "A flag is set for the whole cluster.",
		"when the reason is over: 'holdfast ceph osd unset FLAG' (pauserd and pausewr: 'holdfast ceph osd unset " +
			"pause')",
	},
	{
		"OSD_OUT_OF_ORDER_FULL", "The ratios nearfull, backfillfull and full are not in this order.",
		"'holdfast ceph osd dump | grep ratio', then 'holdfast ceph osd set-nearfull-ratio', " +
			"'set-backfillfull-ratio' and 'set-full-ratio'",
	},
	{
		"OSD_SCRUB_ERRORS", "Scrubbing found copies that differ.",
		"'holdfast ceph health detail' names the placement groups; see PG_DAMAGED",
	},
	{
		"OSD_SLOW_PING_TIME_BACK", "OSDs reach each other slowly on the network for replication.",
		"check the network between the hosts that 'holdfast ceph health detail' names (errors, full links, MTU)",
	},
	{
		"OSD_SLOW_PING_TIME_FRONT", "OSDs reach each other slowly on the public network.",
		"check the network between the hosts that 'holdfast ceph health detail' names (errors, full links, MTU)",
	},
	{
		"OSD_TOO_MANY_REPAIRS", "An OSD repaired many reads from other copies: its device fails.",
		"replace the device: remove it from its StorageNode",
	},
	{
		"OSD_UNREACHABLE", "An OSD has an address outside of the public network.",
		"check spec.network.public, and the addresses: 'holdfast ceph osd dump'",
	},
	{
		"OSD_UPGRADE_FINISHED", "All OSDs run a newer release than the cluster relies on.",
		"'holdfast ceph osd require-osd-release RELEASE'",
	},
	{
		"PG_AVAILABILITY", "Some data cannot be reached now.",
		"bring back the OSDs that are down: 'holdfast ceph osd tree down', 'holdfast why osd.N'; 'holdfast ceph pg " +
			"dump_stuck inactive' lists what waits",
	},
	{
		"PG_BACKFILL_FULL", "Ceph cannot make copies at their location, because the OSDs there are too full.",
		"add disks, or delete data; 'holdfast ceph osd df' shows how full each is",
	},
	{
		"PG_DAMAGED", "Copies of a placement group differ, or it has lost its history.",
		"'holdfast ceph health detail' names it; see the differences: 'holdfast ceph shell -- rados " +
			"list-inconsistent-obj PG'; if one copy is clearly bad: 'holdfast ceph pg repair PG'",
	},
	{
		"PG_DEGRADED", "Some data has fewer copies than it should.",
		"nothing if OSDs are starting; else bring back those that are down ('holdfast ceph osd tree down'). Ceph " +
			"then makes the copies",
	},
	{
		"PG_NOT_DEEP_SCRUBBED", "Placement groups have not been deep-scrubbed for a long time.",
		"give scrubbing more time: spec.ceph.scrub (hours, days), or start it: 'holdfast ceph pg deep-scrub PG'",
	},
	{
		"PG_NOT_SCRUBBED", "Placement groups have not been scrubbed for a long time.",
		"give scrubbing more time: spec.ceph.scrub (hours, days), or start it: 'holdfast ceph pg scrub PG'",
	},
	{
		"PG_RECOVERY_FULL", "Copies cannot be restored, because OSDs are full.",
		"add disks, or delete data, now; 'holdfast ceph osd df' shows how full each is",
	},
	{
		"PG_SLOW_SNAP_TRIMMING", "Deleted snapshots are cleaned up slowly.",
		"find slow OSDs ('holdfast ceph osd perf'); make fewer snapshots",
	},
	{
		"POOL_APP_NOT_ENABLED", "A pool has no application.",
		"'holdfast ceph osd pool application enable POOL rbd' (or cephfs, rgw), or declare it as a Pool with " +
			"spec.application",
	},
	{
		"POOL_BACKFILLFULL", "A pool is on OSDs that are too full to take copies.",
		"add disks, or delete data; 'holdfast ceph df'",
	},
	{
		"POOL_FULL", "A pool has reached its quota, or is on full OSDs: clients cannot write.",
		"raise the quota in the Pool's spec, or delete data; 'holdfast ceph df detail'",
	},
	{
		"POOL_HAS_TARGET_SIZE_BYTES_AND_RATIO", "A pool has both a target size and a target ratio.",
		"'holdfast ceph osd pool set POOL target_size_bytes 0'",
	},
	{
		"POOL_NEARFULL", "A pool is near its quota, or is on OSDs that are almost full.",
		"raise the quota in the Pool's spec, add disks, or delete data; 'holdfast ceph df detail'",
	},
	{
		"POOL_NEAR_FULL", "A pool has almost reached its quota.",
		"raise the quota in the Pool's spec, or delete data; 'holdfast ceph df detail'",
	},
	{
		"POOL_NO_REDUNDANCY", "A pool keeps one copy: if a disk fails its data is lost.",
		"raise spec.replicated.size of the Pool, or 'holdfast ceph osd pool set POOL size 3'",
	},
	{
		"POOL_PG_NUM_NOT_POWER_OF_TWO",
		"A pool's number of placement groups is not a power of two, so they differ in size.",
		"'holdfast ceph osd pool set POOL pg_num' with a power of two, or pg_autoscale_mode on",
	},
	{
		"POOL_SCRUB_FLAGS", "Scrubbing of a pool is switched off.",
		"when the reason is over: 'holdfast ceph osd pool set POOL noscrub 0' and nodeep-scrub",
	},
	{
		"POOL_TARGET_SIZE_BYTES_OVERCOMMITTED", "Pools are expected to grow beyond the available space.",
		"lower target_size_bytes of a pool, or add disks: 'holdfast ceph osd pool autoscale-status'",
	},
	{
		"POOL_TARGET_SIZE_RATIO_OVERCOMMITTED", "The target ratios of pools add up to more than 1.",
		"lower target_size_ratio of a pool: 'holdfast ceph osd pool autoscale-status'",
	},
	{
		"POOL_TOO_FEW_PGS", "A pool has fewer placement groups than it needs.",
		"'holdfast ceph osd pool set POOL pg_autoscale_mode on'",
	},
	{
		"POOL_TOO_MANY_PGS", "A pool has more placement groups than it needs.",
		"'holdfast ceph osd pool set POOL pg_autoscale_mode on'",
	},
	{
		"RECENT_CRASH", "A daemon crashed within the last two weeks.",
		"'holdfast ceph crash ls-new', 'holdfast ceph crash info ID' and the daemon's log; when it is resolved: " +
			"'holdfast ceph crash archive-all'",
	},
	{
		"RECENT_MGR_MODULE_CRASH", "A module of the manager crashed within the last two weeks.",
		"'holdfast ceph crash ls-new', 'holdfast ceph crash info ID'; when it is resolved: 'holdfast ceph crash " +
			"archive-all'",
	},
	{
		"RECOVERING_STRETCH_MODE", "A site of a stretched cluster is back, and its copies are being made.",
		"wait: Ceph makes the copies",
	},
	{
		"REQUEST_SLOW", "Requests take long.",
		"find the slow OSDs: 'holdfast ceph osd perf' and 'holdfast ceph health detail'",
	},
	{
		"REQUEST_STUCK", "Requests are stuck.",
		"find the OSDs: 'holdfast ceph health detail'; 'holdfast ceph tell osd.N dump_blocked_ops'; then restart " +
			"the OSD that hangs: 'holdfast daemon restart'",
	},
	{
		"SLOW_OPS", "Requests to a daemon take more than half a minute.",
		"'holdfast ceph health detail' names it; see what they wait for: 'holdfast ceph tell osd.N " +
			"dump_ops_in_flight' ('holdfast ceph tell mon.N ops' for a mon); check its disk ('holdfast ceph osd " +
			"perf') and network. A mon that joined may keep one op 'log(…)' for ever, on which nothing waits: " +
			"'holdfast daemon restart mon.N' clears it",
	},
	{
		"SMALLER_PGP_NUM", "A pool places its data in fewer placement groups than it has.",
		"'holdfast ceph osd pool set POOL pgp_num' with the value of pg_num",
	},
	{
		"SNAP_SCHED_DB", "The module snap_schedule cannot use its database.",
		"'holdfast ceph health detail' says why; then let another manager take over: 'holdfast ceph mgr fail'",
	},
	{
		"TELEMETRY_CHANGED", "The module telemetry would send more data, which must be approved.",
		"'holdfast ceph telemetry show', then 'holdfast ceph telemetry on', or 'holdfast ceph telemetry off'",
	},
	{
		"TOO_FEW_OSDS", "There are fewer OSDs than the pools keep copies.",
		"declare more disks, or lower osd_pool_default_size in spec.ceph.config",
	},
	{
		"TOO_FEW_PGS", "There are few placement groups for so many OSDs.",
		"'holdfast ceph osd pool set POOL pg_autoscale_mode on'",
	},
	{
		"TOO_MANY_PGS", "There are too many placement groups for so few OSDs.",
		"add disks, or let Ceph lower the number: 'holdfast ceph osd pool set POOL pg_autoscale_mode on'",
	},
	{
		"UNEVEN_WEIGHTS_STRETCH_MODE", "The sites of a stretched cluster have different sizes.",
		"make their disks equal: 'holdfast ceph osd tree'",
	},
	{
		"UPGRADE_EXCEPTION", "An upgrade by cephadm failed.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"UPGRADE_FAILED_PULL", "An upgrade by cephadm cannot fetch its image.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"UPGRADE_NO_STANDBY_MGR", "An upgrade by cephadm needs a second manager.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"UPGRADE_OFFLINE_HOST", "An upgrade by cephadm misses a host.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"UPGRADE_REDEPLOY_DAEMON", "An upgrade by cephadm cannot start a daemon.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"UPGRADE_UNKNOWN_VERSION", "An upgrade by cephadm does not know the release of its image.",
		"Holdfast upgrades by packages: end it with 'holdfast ceph orch upgrade stop', and disable cephadm",
	},
	{
		"WAL_DEVICE_STALLED_READ_ALERT", "The device of an OSD's write-ahead log stalls while it reads.",
		"check the device ('smartctl -a', the kernel's log on its host), and replace it if it fails",
	},
}

// Codes are all health checks that there is a next step for, sorted.
func Codes() []Code { return slices.Clone(codes) }

// NextStep is what to do about a health check.
func NextStep(code string) string {
	if c, known := Explain(code); known {
		return c.Next
	}
	return strings.ReplaceAll(NextUnknown, "CODE", code)
}

// Explain explains a health check, where it is known.
func Explain(code string) (c Code, known bool) {
	byCode := func(c Code, code string) int { return strings.Compare(c.Code, code) }
	if i, found := slices.BinarySearchFunc(codes, code, byCode); found {
		return codes[i], true
	}
	// OSD_HOST_DOWN, OSD_RACK_DOWN … are made from the types of CRUSH's buckets.
	kind, isOSD := strings.CutPrefix(code, "OSD_")
	kind, isDown := strings.CutSuffix(kind, "_DOWN")
	if !isOSD || !isDown || kind == "" {
		return Code{}, false
	}
	kind = strings.ToLower(kind)
	return Code{code, fmt.Sprintf("All OSDs of a %s are down.", kind), fmt.Sprintf("all OSDs of a %s are down; check its "+
		"power and network ('holdfast ceph osd tree down', 'holdfast get hosts')", kind)}, true
}

// Page is the reference page of health checks, in Markdown.
func Page() string {
	var b strings.Builder
	b.WriteString(`<!-- Made by 'make generate' from driver/ceph/health/codes.go. Do not edit. -->
# Ceph's health checks, and the next step of each

'holdfast status' and 'holdfast why' show Ceph's health checks with the next step. Each is recorded in one event when
it appears (HEALTH_CHECK_RAISED) and in one when it is over (HEALTH_CHECK_CLEARED). 'holdfast why CODE' explains each,
also one that is not raised. To mute a check for a while: 'holdfast ceph health mute CODE 1d'; 'status.ceph.muted' lists
muted checks.

| code | what is wrong | next step |
|---|---|---|
| OSD_*TYPE*_DOWN | All OSDs of a host, rack or another bucket of CRUSH are down. | ` +
		"check its power and network: 'holdfast ceph osd tree down', 'holdfast get hosts' |\n")
	for _, c := range codes {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", c.Code, c.Meaning, strings.ReplaceAll(c.Next, "|", "\\|"))
	}
	return b.String()
}
