package foreign

import (
	"cmp"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/cephconf"
)

// idOf is the name of a daemon within its type, as its arguments say: -i 3, --id=3, -n osd.3.
func idOf(program string, args []string) string {
	if id := option(args, "-i", "--id"); id != "" {
		return id
	}
	name := option(args, "-n", "--name")
	if program == "radosgw" {
		return strings.TrimPrefix(name, "client.")
	}
	_, id, _ := strings.Cut(name, ".")
	return id
}

// option is the value of the first of these arguments that is there.
func option(args []string, names ...string) string {
	for i, arg := range args {
		for _, name := range names {
			if value, ok := strings.CutPrefix(arg, name+"="); ok {
				return value
			}
			if arg == name && i+1 < len(args) {
				return args[i+1]
			}
		}
	}
	return ""
}

// defaultData is where Ceph puts a daemon's data when nobody says anything else.
func defaultData(program, id string, args []string) string {
	cluster := cmp.Or(option(args, "--cluster"), "ceph")
	if kind, ok := strings.CutPrefix(program, "ceph-"); ok {
		return "/var/lib/ceph/" + kind + "/" + cluster + "-" + id
	}
	return "/var/lib/ceph/radosgw/" + cluster + "-" + id
}

// conf is section [global] of the ceph.conf that a process was started with, as it is now.
func (p proc) conf(pid int, args []string) map[string]string {
	path := cmp.Or(option(args, "-c", "--conf"), "/etc/ceph/"+cmp.Or(option(args, "--cluster"), "ceph")+".conf")
	text, err := os.ReadFile(p.inside(pid, path))
	if err != nil {
		return nil
	}
	return cephconf.Parse(string(text))["global"]
}

// inside is where a path of a process is for us.
func (p proc) inside(pid int, path string) string {
	if !filepath.IsAbs(path) {
		return filepath.Join(p.path(pid, "cwd"), path)
	}
	return filepath.Join(p.path(pid, "root"), path)
}

// read is the first line of a small file of a process; empty where there is none.
func (p proc) read(pid int, path string) string {
	b, err := os.ReadFile(p.inside(pid, path))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSpace(line)
}

// dataByFiles is the directory of a daemon's data by the files that it has open, which is the truth whatever its files of configuration say
// by now: a mon's RocksDB holds store.db/LOCK, an OSD's BlueStore the file fsid.
func (p proc) dataByFiles(pid int, program string) string {
	suffix := map[string]string{"ceph-mon": "/store.db/LOCK", "ceph-osd": "/fsid"}[program]
	if suffix == "" {
		return ""
	}
	fds, err := os.ReadDir(p.path(pid, "fd"))
	if err != nil {
		return ""
	}
	for _, fd := range fds {
		target, err := os.Readlink(filepath.Join(p.path(pid, "fd"), fd.Name()))
		if dir, ok := strings.CutSuffix(target, suffix); err == nil && ok {
			return dir
		}
	}
	return ""
}

// unit is the systemd unit whose control group a process is in. A user's session is no unit that keeps anything running.
func (p proc) unit(pid int) string {
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return "" // systemd does not run this machine (sd_booted(3))
	}
	b, err := os.ReadFile(p.path(pid, "cgroup"))
	if err != nil {
		return ""
	}
	return unitOf(string(b))
}

func unitOf(cgroups string) string {
	for line := range strings.Lines(cgroups) {
		_, path, _ := strings.Cut(strings.TrimSpace(line), "/")
		if unit := path[strings.LastIndexByte(path, '/')+1:]; strings.HasSuffix(unit, ".service") {
			return unit
		}
	}
	return ""
}

// contained says whether a process has another root directory than we have.
func (p proc) contained(pid int) bool {
	var own, its unix.Stat_t
	if unix.Stat("/", &own) != nil || unix.Stat(p.path(pid, "root")+"/", &its) != nil {
		return false
	}
	return own.Dev != its.Dev || own.Ino != its.Ino
}
