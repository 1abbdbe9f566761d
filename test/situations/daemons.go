package situations

import api "github.com/holdfast-storage/holdfast/api/v1alpha1"

// Where the situations of daemons are shown.
const (
	idle    = "e2e TestIdleDaemons"
	ofCeph  = "driver/ceph/serves TestOf"
	answers = "cli/why TestExplain_served"
	endsOf  = "agent/lastwords TestOf"
)

// daemons are the situations of single daemons, and of what the storage system says of them.
var daemons = []Situation{
	{
		"osd-out", "daemon", "A user marked an OSD out with `ceph osd out`.",
		"holdfast why osd.2", api.ReasonMarkedOut, "holdfast ceph osd in 2", idle, ofCeph,
	},
	{
		"osd-reweight-0", "daemon", "A user gave an OSD weight 0 with `ceph osd reweight`.",
		"holdfast why osd.2", api.ReasonMarkedOut, "holdfast ceph osd in 2", idle, ofCeph,
	},
	{
		"osd-crush-weight-0", "daemon", "A user gave an OSD weight 0 in CRUSH.",
		"holdfast why osd.2", api.ReasonZeroWeight, "holdfast ceph osd crush reweight osd.2 0.", idle, ofCeph,
	},
	{
		"osd-noin", "daemon", "An OSD is out, and flag `noin` keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd unset noin", idle, ofCeph,
	},
	{
		"osd-noup", "daemon", "An OSD was marked down, and flag `noup` keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd unset noup", idle, ofCeph,
	},
	{
		"osd-own-noup", "daemon", "An OSD was marked down, and a flag of its own keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd rm-noup 2", idle, ofCeph,
	},
	{
		"osd-own-noin", "daemon", "An OSD is out, and a flag of its own keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd rm-noin 2", "", ofCeph,
	},
	{
		"osd-host-noup", "daemon", "An OSD was marked down, and a flag of its host (`ceph osd set-group`) keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd unset-group noup h2", "", ofCeph,
	},
	{
		"osd-class-noin", "daemon", "An OSD is out, and a flag of its host or device class keeps it there.",
		"holdfast why osd.2", api.ReasonFlagSet, "holdfast ceph osd unset-group noin h2", "", ofCeph,
	},
	{
		"program-missing", "daemon", "The program of a daemon was removed from its host.",
		"holdfast why osd.2", api.ReasonProgramBroken, "apt-get install --reinstall ceph-osd", "", endsOf,
	},
	{
		"library-missing", "daemon", "A library that the program of a daemon needs was removed, minutes ago.",
		"holdfast why mds.home-b", api.ReasonProgramBroken, "dpkg -S libx.so.1", "", endsOf,
	},
	{
		"program-forbidden", "daemon", "The program of a daemon may not be executed.",
		"holdfast why mds.home-a", api.ReasonProgramBroken, "apt-get install --reinstall ceph-mds", "", endsOf,
	},
	{
		"conf-damaged", "daemon", "Somebody wrote into a ceph.conf what Ceph cannot read.",
		"holdfast why mon.c", api.ReasonChangedOutside, "holdfast daemon restart mon.c", "", endsOf,
	},
	{
		"osd-link-gone", "daemon", "Somebody removed the link to an OSD's device.",
		"holdfast why osd.2", api.ReasonChangedOutside, "holdfast daemon restart osd.2", "", endsOf,
	},
	{
		"osd-hung", "daemon", "The process of an OSD hangs, so that Ceph marks it down.",
		"holdfast why osd.2", api.ReasonDaemonHangs, "holdfast daemon restart osd.2", idle, ofCeph,
	},
	{
		"osd-class-unused", "daemon", "No pool stores data on OSDs of this device class.",
		"holdfast why osd.2", api.ReasonNotUsed, "declare a Pool with deviceClass", "", ofCeph,
	},
	{
		"osd-full", "daemon", "An OSD is full.",
		"holdfast why osd.2", api.ReasonFull, "holdfast ceph osd set-full-ratio", idle, ofCeph,
	},
	{
		"osd-backfillfull", "daemon", "An OSD is so full that Ceph moves no more data to it.",
		"holdfast why osd.2", api.ReasonBackfillFull, "add a device to a StorageNode", idle, ofCeph,
	},
	{
		"osd-nearfull", "daemon", "An OSD is nearly full.",
		"holdfast why osd.2", api.ReasonNearFull, "holdfast ceph osd df", idle, ofCeph,
	},
	{
		"mon-hung", "daemon", "The process of a mon hangs; the others are a quorum.",
		"holdfast why mon.c", api.ReasonDaemonHangs, "holdfast daemon restart mon.c", idle, ofCeph,
	},
	{
		"mon-cut-off", "daemon", "A mon answers, and does not reach the quorum of the others.",
		"holdfast why mon.c", api.ReasonNotInQuorum, "check the network between", "", ofCeph,
	},
	{
		"mgr-standby", "daemon", "A mgr stands by, as it should.",
		"holdfast why mgr.b", api.ReasonStandby, "", idle, ofCeph,
	},
	{
		"mgr-hung", "daemon", "The process of a mgr hangs, and the standby has taken over.",
		"holdfast why mgr.a", api.ReasonDaemonHangs, "holdfast daemon restart mgr.a", idle, ofCeph,
	},
	{
		"mds-standby", "daemon", "An MDS stands by, as it should.",
		"holdfast why mds.home-b", api.ReasonStandby, "", idle, ofCeph,
	},
	{
		"mds-hung", "daemon", "The process of an MDS hangs.",
		"holdfast why mds.home-b", api.ReasonDaemonHangs, "holdfast daemon restart mds.home-b", idle, ofCeph,
	},
	{
		"mds-fs-fail", "daemon", "A user took all MDS from a filesystem with `ceph fs fail`.",
		"holdfast why mds.home-a", api.ReasonNotJoinable, "holdfast ceph fs set home joinable true", idle, ofCeph,
	},
	{
		"mds-replay", "daemon", "An MDS replays its journal for long.",
		"holdfast why mds.home-a", api.ReasonTakingOver, "holdfast daemon restart mds.home-a", "",
		"driver/ceph/serves TestOf_takeover",
	},
	{
		"mds-clientreplay", "daemon", "An MDS that takes over waits for a client that does not answer.",
		"holdfast why mds.home-a", api.ReasonTakingOver, "holdfast ceph tell mds.home-a client ls", "",
		"driver/ceph/serves TestOf_takeover",
	},
	{
		"rgw-hung", "daemon", "The process of a gateway runs and does not answer.",
		"holdfast why rgw.s3-a", api.ReasonDaemonHangs, "holdfast daemon restart rgw.s3-a", "", ofCeph,
	},
	{
		"rgw-not-listed", "daemon", "Ceph does not list a gateway whose process runs.",
		"holdfast why rgw.s3-b", api.ReasonNotListed, "holdfast daemon restart rgw.s3-b", "", ofCeph,
	},
	{
		"rbd-mirror-not-listed", "daemon", "Ceph does not list an rbd-mirror whose process runs.",
		"holdfast why rbd-mirror.m-b", api.ReasonNotListed, "holdfast daemon restart rbd-mirror.m-b", "", ofCeph,
	},
	{
		"daemon-keeps-ending", "daemon", "The process of a daemon is killed again and again, and runs between.",
		"holdfast why mds.home-b", api.ReasonKeepsEnding, "dmesg", idle, answers,
	},
	{
		"daemon-unknown", "daemon", "The process of a daemon runs, and Ceph does not answer.",
		"holdfast why osd.2", api.ReasonNotAnswering, "holdfast why cluster/ceph", "", answers,
	},
}
