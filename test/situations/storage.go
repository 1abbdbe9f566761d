package situations

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

const (
	noWrites  = "e2e TestNoWrites"
	emptyPlan = "e2e TestEmptyPlan"
	poolUnit  = "driver/ceph/writes TestJudgePool"
	lackUnit  = "driver/ceph/writes TestJudgePool_missing"
	fsUnit    = "driver/ceph/writes TestJudgeFS"
	storeUnit = "driver/ceph/writes TestJudgeStore"
	namesUnit = "cli/why TestExplain_names"
)

// storage are the situations of pools, file systems, placement groups, devices and plans.
var storage = slicesOf(
	row{
		"pool", "pool-paused", "A user paused all clients with 'ceph osd pause'.", "why pool/web",
		api.ReasonClientsPaused, "holdfast ceph osd unset pause", noWrites, poolUnit,
	},
	row{
		"pool", "pool-writes-paused", "The flag pausewr is set for the whole cluster.", "why pool/web",
		api.ReasonClientsPaused, "holdfast ceph osd unset pause", "", poolUnit,
	},
	row{
		"pool", "pool-quota-reached", "A pool has as much in it as its quota allows.", "why pool/web",
		api.ReasonQuotaReached, "raise spec.quota", noWrites, poolUnit,
	},
	row{
		"pool", "pool-quota-near", "More than four fifths of a pool's quota are used.", "why pool/web",
		api.ReasonQuotaNear, "raise spec.quota", noWrites, poolUnit,
	},
	row{
		"pool", "pool-osds-full", "OSDs of a pool are full.", "why pool/web",
		api.ReasonFull, "holdfast ceph osd set-full-ratio 0.97", noWrites, poolUnit,
	},
	row{
		"pool", "pool-osds-nearfull", "OSDs of a pool are almost full.", "why pool/web",
		api.ReasonNearFull, "holdfast ceph osd df", noWrites, poolUnit,
	},
	row{
		"pool", "pool-flag-full", "The flag full is set for the whole cluster.", "why pool/web",
		api.ReasonFull, "holdfast ceph osd unset full", "", poolUnit,
	},
	row{
		"pool", "pool-osd-out", "A user marked an OSD out, and the copies have too few hosts.", "why pool/web",
		api.ReasonInsufficientNodes, "holdfast ceph osd in 2", noWrites, lackUnit,
	},
	row{
		"pool", "pool-few-hosts", "A pool wants more copies than there are hosts with OSDs.", "why pool/web",
		api.ReasonInsufficientNodes, "set spec.replicated.size to 2", "", lackUnit,
	},
	row{
		"pool", "pool-no-class", "A pool's rule wants OSDs of a class that no OSD has.", "why pool/web",
		api.ReasonInsufficientNodes, "add disks", "", lackUnit,
	},
	row{
		"pool", "pool-osd-down", "An OSD that holds copies hangs, or was stopped.", "why pool/web",
		api.ReasonDataUnavailable, "holdfast why osd.2", noWrites, lackUnit,
	},
	row{
		"pool", "pool-osds-down", "So many OSDs are stopped that fewer than min_size copies are left.", "why pool/web",
		api.ReasonDataUnavailable, "holdfast why osd.1", "", lackUnit,
	},
	row{
		"pool", "pool-noup", "OSDs were marked down, and the flag noup keeps them from coming up.", "why pool/web",
		api.ReasonChangedOutside, "holdfast ceph osd unset noup", noWrites, lackUnit,
	},
	row{
		"pool", "pool-norecover", "The flag norecover keeps copies from being made.", "why pool/web",
		api.ReasonChangedOutside, "holdfast ceph osd unset norecover", "", lackUnit,
	},
	row{
		"pool", "pool-inconsistent", "Scrubbing found copies that differ.", "why pool/web",
		api.ReasonDataDamaged, "holdfast ceph pg repair PG", "", lackUnit,
	},
	row{
		"pool", "pool-toofull", "Copies find no OSD with enough room.", "why pool/web",
		api.ReasonFull, "holdfast ceph osd df", "", lackUnit,
	},
	row{
		"pool", "pool-incomplete", "The OSDs with the newest copies are gone.", "why pool/web",
		api.ReasonDataUnavailable, "holdfast ceph pg dump_stuck inactive", "", lackUnit,
	},
	row{
		"pool", "pool-foreign-finalizer", "A deleted Pool is kept by another program's finalizer.", "why pool/web",
		api.ReasonForeignFinalizer, "kubectl patch pool web", noWrites, "cli/why TestExplain_foreignFinalizer",
	},
	row{
		"pool", "pool-node-without-host", "A StorageNode selects no host, and a new pool waits for its OSDs.",
		"why pool/web",
		api.ReasonDependencyNotReady, "holdfast why node/n9", noWrites, "driver/ceph/writes TestComing",
	},
	row{
		"pool", "pool-maintenance", "A new pool waits for OSDs whose host is in maintenance.", "why pool/web",
		api.ReasonHostNotActive, "holdfast host maintenance exit h3", "", "driver/ceph/writes TestComing",
	},
	row{
		"pool", "pool-class-overlaps", "A pool of a device class has Ceph's autoscaler leave pools of any class alone.",
		"why pool/web", api.ReasonNotScaled, "holdfast ceph osd pool set .mgr crush_rule RULE", emptyPlan,
		"driver/ceph TestPools_classOverlaps",
	},
	row{
		"pool", "pool-id", "Ceph names a pool by its id.", "why pool/7",
		api.ReasonQuotaReached, "raise spec.quota", "", namesUnit,
	},

	row{
		"file system", "fs-failed", "A user ran 'ceph fs fail'.", "why filesystem/home",
		api.ReasonNotJoinable, "holdfast ceph fs set home joinable true", noWrites, fsUnit,
	},
	row{
		"file system", "fs-no-mds", "All MDS of a file system hang, or were stopped.", "why filesystem/home",
		api.ReasonNotServed, "holdfast why mds.home-a", noWrites, fsUnit,
	},
	row{
		"file system", "fs-read-only", "An MDS serves read-only, as a write to its metadata pool failed.",
		"why filesystem/home",
		api.ReasonReadOnly, "holdfast daemon restart mds.home-a", noWrites, fsUnit,
	},
	row{
		"file system", "fs-damaged", "A rank of a file system is damaged.", "why filesystem/home",
		api.ReasonDataDamaged, "holdfast ceph mds repaired home:0", "", fsUnit,
	},
	row{
		"file system", "fs-paused", "All clients are paused, those of a file system, too.", "why filesystem/home",
		api.ReasonClientsPaused, "holdfast ceph osd unset pause", noWrites, "",
	},

	row{
		"object store", "store-no-gateway", "The only gateway of an object store is stopped.", "why objectstore/s3",
		api.ReasonNotServed, "holdfast why rgw.s3-a", noWrites, storeUnit,
	},

	row{
		"health check", "check-osd-down", "A person looks up OSD_DOWN while an OSD is down.", "why OSD_DOWN",
		api.ReasonHealthCheck, "holdfast why osd.2", noWrites, namesUnit,
	},
	row{
		"health check", "check-flags", "Ceph warns of OSDMAP_FLAGS, and names pauserd and pausewr.", "why OSDMAP_FLAGS",
		api.ReasonHealthCheck, "holdfast ceph osd unset pause", noWrites, namesUnit,
	},
	row{
		"health check", "check-few-hosts", "A pool made by hand wants more copies than there are hosts, and no " +
			"OSD is down.",
		"why PG_DEGRADED", api.ReasonHealthCheck, "holdfast ceph osd pool set hand size 3", noWrites, lackUnit,
	},
	row{
		"health check", "check-muted", "A user muted a check.", "why OSDMAP_FLAGS",
		api.ReasonHealthCheck, "holdfast ceph health unmute OSDMAP_FLAGS", noWrites, namesUnit,
	},

	row{
		"placement group", "pg-undersized", "Ceph names a placement group that lacks copies.", "why pg/4.1f",
		api.ReasonDataUnavailable, "holdfast ceph pg 4.1f query", "", namesUnit,
	},
	row{
		"placement group", "pg-of-nobody", "Ceph names a placement group of a pool that no object declares.", "why 9.0",
		api.ReasonHealthCheck, "bring back osd.2", "", namesUnit,
	},

	row{
		"quorum", "quorum-mon-out", "A mon is not in the quorum.", "why quorum",
		api.ReasonQuorumAtRisk, "holdfast why mon.a", noWrites, namesUnit,
	},
	row{
		"export", "export-no-writes", "A user set pausewr; the pools of an export's file system take no writes.",
		"why nfsexport/data", api.ReasonClientsPaused, "holdfast ceph osd unset pause", "", "driver/ceph TestNFS_noWrites",
	},
	row{
		"export", "mirror-no-writes", "A user set pausewr; a mirrored pool takes no writes.", "why rbdmirror/dr",
		api.ReasonClientsPaused, "holdfast ceph osd unset pause", "", "driver/ceph TestMirror_noWrites",
	},
	row{
		"package", "package-missing", "No host has the program of an MDS, a gateway, an rbd-mirror or an NFS server.",
		"why filesystem/home", api.ReasonUnsupported, "apt-get install ceph-mds", "", "driver/ceph TestInstalled",
	},

	row{
		"quorum", "mons-lost", "Most mons do not run.", "why quorum",
		api.ReasonNotAnswering, "holdfast why mon.a", "", namesUnit,
	},

	row{
		"plan", "plan-stale", "The cluster has changed since a plan was made.", "why plan/p1",
		api.ReasonConflict, "holdfast plan -f FILE", "", namesUnit,
	},
	row{
		"plan", "plan-unanswered", "No leader has answered a plan.", "why plan/p2",
		api.ReasonNotAnswering, "holdfast doctor", "", namesUnit,
	},

	row{
		"device", "device-second-path", "A second path to the disk of an OSD appeared.", "why osd.2",
		api.ReasonSecondPath, "disconnect one of the two", "", "cli/why TestExplain_secondPath",
	},
	row{
		"device", "device-gone", "The disk of an OSD is not there any more.", "why osd.2",
		api.ReasonDeviceUnavailable, "plug the disk in again", "", "cli/why TestExplain_secondPath",
	},
)

// row is a situation in the order of a table's columns.
type row struct {
	about, name, cause, ask string
	reason                  api.Reason
	next, staged, scenario  string
}

func slicesOf(rows ...row) (all []Situation) {
	for _, r := range rows {
		all = append(all, Situation{
			Name: r.name, About: r.about, Cause: r.cause, Ask: "holdfast " + r.ask, Reason: r.reason, Next: r.next,
			Staged: r.staged, Scenario: r.scenario,
		})
	}
	return all
}
