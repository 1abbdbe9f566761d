package lastwords

import (
	"strings"
	"testing"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// end is when the daemons of these tests ended.
var end = time.Date(2026, 11, 27, 0, 0, 51, 0, time.UTC)

// ended is a daemon that ended, and what a user reads of it.
type ended struct {
	kind, reason, log string
	want              api.Reason
	says, next        string
}

// Lines as Ceph 16, NFS-Ganesha, glusterd and Go programs write them.
var endings = map[string]ended{
	"the port of a mon": {
		"ceph-mon", "exit code 1",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1  Processor -- bind unable to bind to v2:10.77.222.11:3300/0: " +
			"(98) Address already in use\n\n2026-11-27T00:00:50.694+0000 7f0d89a2 -1 unable to bind monitor to " +
			"[v2:10.77.222.11:3300/0,v1:10.77.222.11:6789/0]\n",
		api.ReasonPortInUse, "port 3300 is taken by another program", "'ss -ltnp sport = :3300'",
	},
	"the port of a gateway": {
		"ceph-rgw", "exit code 98",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1 failed to bind address 0.0.0.0:7480: Address already in use\n",
		api.ReasonPortInUse, "port 7480", "on host h2",
	},
	"the port of a Go program": {
		"torus", "exit code 1", "listen tcp 10.0.0.1:40000: bind: address already in use",
		api.ReasonPortInUse, "port 40000", "",
	},
	"a port that it does not name": {
		"ganesha", "exit code 2",
		"Bind_sockets_V6 :DISP :WARN :Cannot bind NFS tcp6 socket, error 98 (Address already in use)",
		api.ReasonPortInUse, "a port that it listens on is taken", "'ss -ltnp'",
	},
	"no key": {
		"ceph-osd", "exit code 1",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1 monclient(hunting): handle_auth_bad_method server " +
			"allowed_methods [2] but i only support [2]\nfailed to fetch mon config (--no-mon-config to skip)",
		api.ReasonKeyRefused, "Ceph refuses its key", "'holdfast ceph auth get osd.1'",
	},
	"the key of a gateway": {
		"ceph-rgw", "exit code 1", "failed to fetch mon config (--no-mon-config to skip)",
		api.ReasonKeyRefused, "", "'holdfast ceph auth get client.rgw.1'",
	},
	"not in the monmap": {
		"ceph-mon", "exit code 1",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1 mon.b@-1(probing) e4 not in monmap and have been in a quorum " +
			"before; must have been removed",
		api.ReasonNotInMap, "map of the mons", "creates another mon",
	},
	"no superblock": {
		"ceph-osd", "exit code 1",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1  ** ERROR: unable to open OSD superblock on /x: (2) No such file",
		api.ReasonDataDamaged, "at the beginning of its device", "'dmesg' on host h2",
	},
	"full": {
		"glusterd", "exit code 1", "failed to write /var/lib/glusterd/x: No space left on device",
		api.ReasonDiskFull, "full", "'df -h'",
	},
	"killed": {"ceph-osd", "signal: killed", "all is well\n", api.ReasonKilled, "killed", "Out of memory"},
	"an assertion": {
		"ceph-osd", "signal: aborted",
		"./src/os/BlueStore.cc: 11111: FAILED ceph_assert(r == 0)\n ceph version 16\n 1: (abort()+0x1)\n" +
			"*** Caught signal (Aborted) **\n",
		api.ReasonCrashed, "r == 0 in ./src/os/BlueStore.cc", "crash ls",
	},
	"an earlier run": {
		"ceph-mon", "exit code 1",
		"2026-11-27T00:00:30.694+0000 7f0d89a2 -1 bind unable to bind to v2:10.0.0.1:3300/0: (98) Address already " +
			"in use\n2026-11-27T00:00:40.694+0000 7f0d89a2  0 ceph version 16.2.15 (618f) pacific (stable), process " +
			"ceph-mon, pid 7\n2026-11-27T00:00:41.694+0000 7f0d89a2 -1 it is another cause\n",
		"", "it is another cause", "",
	},
	"a crash with a dump": {
		"ceph-osd", "signal: aborted",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1 the sea is dry\n*** Caught signal (Aborted) **\n in " +
			"thread 7f\n    -2> 2026-11-27T00:00:39.694+0000 7f -1 no space left on device\n",
		api.ReasonCrashed, "it crashed (Aborted); it wrote before: the sea is dry", "crash ls",
	},
	"long before": {
		"ceph-osd", "exit code 1",
		"2026-11-26T23:50:00.694+0000 7f0d89a2 -1 monclient: authentication error (1)\n" +
			"2026-11-27T00:00:50.694+0000 7f0d89a2 -1 osd.1 the sky is green\n",
		"", "osd.1 the sky is green", "",
	},
	"the next run": {
		"ceph-osd", "exit code 1",
		"2026-11-27T00:00:50.694+0000 7f0d89a2 -1 osd.1 the sky is green\n" +
			"2026-11-27T00:00:52.694+0000 7f0d89a2  0 ceph version 16.2.15 (x) pacific, process ceph-osd, pid 8\n" +
			"2026-11-27T00:00:53.694+0000 7f0d89a2 -1 no space left on device\n",
		"", "osd.1 the sky is green", "",
	},
	"killed, with a line that others would be blamed for": {
		"ceph-osd", "signal: killed",
		"2026-11-27T00:00:50.694+0000 7f0d89a2 -1 no space left on device\n",
		api.ReasonKilled, "killed", "Out of memory",
	},
	"ended by a signal": {
		"ceph-osd", "exit code 0",
		"2026-11-27T00:00:50.694+0000 7f0d89a2 -1 received  signal: Terminated\n", "", "signal: Terminated", "",
	},
	"a ceph.conf of somebody else": {
		"ceph-mon", "exit code 1",
		"global_init: error reading config file. parse error: expected '<eoi>' in line 40 at position 1\n",
		api.ReasonChangedOutside, "its ceph.conf was changed", "'holdfast daemon restart mon.1'",
	},
	"a ceph.conf of somebody else, for minutes": {
		"ceph-mon", "exit code 1",
		"2026-11-26T23:50:00.694+0000 7f0d89a2  0 mon.a is well\n" +
			"global_init: error reading config file. parse error: expected '<eoi>' in line 40 at position 1\n",
		api.ReasonChangedOutside, "its ceph.conf was changed", "'holdfast daemon restart mon.1'",
	},
	"a library after an old crash": {
		"ceph-osd", "exit code 127",
		"2026-11-26T23:50:00.694+0000 7f0d89a2 -1 osd.1 the sky is green\n*** Caught signal (Aborted) **\n" +
			"  log_file \n--- end dump of recent events ---\n" +
			"ceph-osd: error while loading shared libraries: libx.so.1: cannot open shared object file\n",
		api.ReasonProgramBroken, "lacks the library libx.so.1", "'dpkg -S libx.so.1'",
	},
	"no word after an old crash": {
		"ceph-osd", "exit code 1",
		"2026-11-26T23:50:00.694+0000 7f0d89a2 -1 osd.1 the sky is green\n*** Caught signal (Aborted) **\n" +
			"  log_file \n--- end dump of recent events ---\nthe sea is dry\n",
		"", "the sea is dry", "",
	},
	"no link to the device": {
		"ceph-osd", "exit code 1",
		"2026-11-27T00:00:40.694+0000 7f0d89a2 -1 bluestore(/var/lib/x/store/block) _read_bdev_label failed to open " +
			"/var/lib/x/store/block: (2) No such file or directory\n" +
			"2026-11-27T00:00:40.695+0000 7f0d89a2 -1 osd.1 0 OSD:init: unable to mount object store\n",
		api.ReasonChangedOutside, "the link to its device is gone", "'holdfast daemon restart osd.1'",
	},
	"nothing known": {
		"ceph-mds", "exit code 7",
		"2026-11-27T00:00:40.694+0000 7f0d89a2  0 starting\n2026-11-27T00:00:41.694+0000 7f0d89a2 -1 mds.x the " +
			"sky is green\n 1: (frame)\n---\nand the end\n",
		"", "mds.x the sky is green", "",
	},
	"nothing at all": {"ceph-mds", "exit code 7", "", "", "", ""},
}

func TestOf(t *testing.T) { check(t, endings) }

// TestOf_notStarted: an old log is not blamed where a process was not started, or was killed.
func TestOf_notStarted(t *testing.T) {
	check(t, map[string]ended{
		"a pod": {"ceph-osd", "cannot be started", "", "", "", "'kubectl -n default describe pod ceph-osd-1'"},
		"no program": {
			"ceph-osd", `cannot be started: exec: "ceph-osd": executable file not found in $PATH`,
			"2026-11-27T00:00:40.694+0000 7f0d89a2  0 log_channel(cluster) log [DBG] : 9.18 scrub ok\n",
			api.ReasonProgramBroken, "its program ceph-osd is not installed",
			"'apt-get install --reinstall ceph-osd' on host h2",
		},
		"no program of another package's name": {
			"glusterd", "cannot be started: fork/exec /usr/sbin/glusterd: no such file or directory", "an old line\n",
			api.ReasonProgramBroken, "its program glusterd is", "--reinstall glusterfs-server'",
		},
		"a program that may not be executed": {
			"ceph-mds", "cannot be started: fork/exec /usr/bin/ceph-mds: permission denied", "an old line\n",
			api.ReasonProgramBroken, "may not be executed", "'apt-get install --reinstall ceph-mds'",
		},
		"a program of another processor": {
			"ceph-rgw", "cannot be started: fork/exec /usr/bin/radosgw: exec format error", "an old line\n",
			api.ReasonProgramBroken, "its program radosgw is damaged", "'apt-get install --reinstall radosgw'",
		},
		"no room to start": {
			"ceph-mon", "cannot be started: open /var/lib/x/log: no space left on device", "an old line\n",
			api.ReasonDiskFull, "the agent is full", "'df -h'",
		},
		"a container without memory": {
			"ceph-osd", "killed by the kernel: out of memory", "2026-11-27T00:00:50.694+0000 7f -1 failed to x\n",
			api.ReasonKilled, "memory ran out", "more memory",
		},
	})
}

func check(t *testing.T, all map[string]ended) {
	t.Helper()
	for name, tt := range all {
		d := &api.Daemon{Spec: api.DaemonSpec{Type: tt.kind, ID: "1", Host: "h2"}}
		d.Namespace, d.Name = "default", tt.kind+"-1"
		c := Of(d, tt.reason, end, tt.log)
		if c.Reason != tt.want || !strings.Contains(c.Message, tt.says) || !strings.Contains(c.Next, tt.next) {
			t.Errorf("%s: %+v", name, c)
		}
		if strings.Contains(c.Message, "old line") || strings.Contains(c.Message+c.Next, "{") {
			t.Errorf("%s: %+v", name, c)
		}
		if (tt.log == "") != (c.Message == "") || c.Reason != "" && c.Next == "" {
			t.Errorf("%s: a user would not know what to do: %+v", name, c)
		}
	}
}

// A crafted log does not take long, nor does it put more into the sentence than it is.
func TestOf_hostile(t *testing.T) {
	d := &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "1", Host: "h2"}}
	for _, log := range []string{
		strings.Repeat(":99", 1300) + ": address already in use", strings.Repeat("error ", 700), "{host}{name}$1${1}",
		"\xff\xfe failed", strings.Repeat("\n", 4096),
	} {
		if c := Of(d, "exit code 1", end, log); len(c.Message) > len(log)+40 {
			t.Errorf("%q", c.Message)
		}
	}
}
