package lastwords

import (
	"regexp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// rule says what a line of the log means. say and next may use $1 of the line, {name}, {entity} and {host}.
type rule struct {
	types     []string // of daemons; none for all
	line      *regexp.Regexp
	reason    api.Reason
	say, next string
}

// The types of Ceph's daemons.
var (
	mon  = []string{"ceph-mon"}
	osd  = []string{"ceph-osd"}
	keys = []string{"ceph-mgr", "ceph-osd", "ceph-mds", "ceph-rgw", "ceph-rbd-mirror"}
)

const (
	taken    = "port $1 is taken by another program"
	findPort = "find it on host {host} with 'ss -ltnp sport = :$1', and stop it" + retries
	retries  = "; the agent retries by itself"

	writeAnew = "have the agent write its files anew with 'holdfast daemon restart {name}'"

	checkDisk = "look for errors of the device in 'dmesg' on host {host}; if it is broken, name it in replace of the " +
		"StorageNode"
	seeCrash = "see 'holdfast ceph crash ls' and the log; if it happens again, report it to Ceph"
)

// rules are tried in order, each on all lines: the first ones name causes, the last ones what may follow from them.
// The words are those of Ceph 16 to 20 (src/msg/async, src/mon/MonClient.cc, src/ceph_mon.cc, src/osd/OSD.cc,
// src/os/bluestore), glusterd, NFS-Ganesha, Go's net package and the C library's strerror.
var rules = []rule{
	{
		line:   regexp.MustCompile(`(?i):(\d{2,5})\b[^:]*(?:/\d+)?[^:]*: .*address already in use`),
		reason: api.ReasonPortInUse, say: taken, next: findPort,
	},
	{
		line:   regexp.MustCompile(`(?i)port (\d{2,5})\b.*(?:address already in use|is already in use)`),
		reason: api.ReasonPortInUse, say: taken, next: findPort,
	},
	{
		line:   regexp.MustCompile(`(?i)address already in use`),
		reason: api.ReasonPortInUse, say: "a port that it listens on is taken by another program",
		next: "find it on host {host} with 'ss -ltnp', and stop it" + retries,
	},
	{
		line:   regexp.MustCompile(`(?i)no space left on device`),
		reason: api.ReasonDiskFull, say: "the file system that it writes to is full",
		next: "free space on host {host}: 'df -h' shows which one is full" + retries,
	},
	{
		line:   regexp.MustCompile(`(?i)read-only file system`),
		reason: api.ReasonReadOnly, say: "the file system that it writes to is read-only",
		next: "look for its cause in 'dmesg' on host {host}, repair the file system, and mount it again" + retries,
	},
	{
		line:   regexp.MustCompile(`error while loading shared libraries: ([^:]+):`),
		reason: api.ReasonProgramBroken, say: "its program lacks the library $1",
		next: "install the package of the library on host {host} again with 'apt-get install --reinstall PACKAGE': " +
			"'dpkg -S $1' on a host that has it names the package" + retries,
	},
	{
		line:   regexp.MustCompile(`error reading config file\. (.*)|parse error: (.*) in line \d+ at position`),
		reason: api.ReasonChangedOutside, say: "its ceph.conf was changed, and Ceph cannot read it", next: writeAnew,
	},
	{
		types:  osd,
		line:   regexp.MustCompile(`(?i)/block\b.*(?:\(2\) No such file|got: \(1\) Operation not permitted)`),
		reason: api.ReasonChangedOutside, say: "the link to its device is gone from its directory", next: writeAnew,
	},
	{
		types: mon, line: regexp.MustCompile(`not in monmap and have been in a quorum before`),
		reason: api.ReasonNotInMap, say: "Ceph's map of the mons does not have it any more",
		next: "wait: the leader creates another mon in its place",
	},
	{
		types: mon,
		line: regexp.MustCompile(`(?i)rocksdb: corruption|error opening mon data directory|` +
			`unable to read magic from mon data`),
		reason: api.ReasonDataDamaged, say: "its store is damaged",
		next: "look for errors of the disk in 'dmesg' on host {host}; then have another mon made: drain the host, or " +
			"move the damaged store aside",
	},
	{
		types: osd,
		line: regexp.MustCompile(`(?i)unable to (?:read|open) osd superblock|unable to decode label|bad magic|` +
			`_read_bdev_label failed`),
		reason: api.ReasonDataDamaged, say: "what Ceph keeps at the beginning of its device is missing or damaged",
		next: checkDisk,
	},
	{
		types: osd, line: regexp.MustCompile(`\((?:BlueFS::_open_super|BlueFS::_replay|BlueStore::_open_super_meta)\(`),
		reason: api.ReasonDataDamaged, say: "what Ceph keeps on its device is damaged", next: checkDisk,
	},
	{
		types: osd, line: regexp.MustCompile(`(?i)rocksdb: corruption|checksum mismatch|\(5\) Input/output error`),
		reason: api.ReasonDataDamaged, say: "its device returns errors or damaged data", next: checkDisk,
	},
	{
		types: osd, line: regexp.MustCompile(`(?i)(?:open|lock).*(?:\(16\) Device or resource busy|another process)`),
		reason: api.ReasonInUse, say: "another program has its device open",
		next: "find it on host {host} with 'fuser -v' and the device, and end it" + retries,
	},
	{
		types: keys,
		line: regexp.MustCompile(`(?i)handle_auth_bad_method|authentication error|unable to find a keyring|` +
			`no keyring found|failed to fetch mon config|\(1\) Operation not permitted|\(13\) Permission denied`),
		reason: api.ReasonKeyRefused, say: "Ceph refuses its key",
		next: "'holdfast ceph auth get {entity}' shows what Ceph has; the leader puts the key of its Secret back by " +
			"itself",
	},
	{
		line:   regexp.MustCompile(`([\w./]+\.(?:cc|h|cpp)): \d+: FAILED ceph_(?:assert|abort)\w*\((.*)\)`),
		reason: api.ReasonCrashed, say: "it stopped at a check that failed: $2 in $1", next: seeCrash,
	},
	{
		line:   regexp.MustCompile(`\*\*\* Caught signal \((.*)\)`),
		reason: api.ReasonCrashed, say: "it crashed ($1)", next: seeCrash,
	},
}
