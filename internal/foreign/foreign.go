// Package foreign finds the daemons of Ceph on a host that Holdfast did not start: it reads /proc, and changes nothing.
package foreign

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// programs are the daemons that are looked for.
var programs = []string{"ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds", "radosgw"}

// Most bounds what is told of one host (HostStatus.foreign).
const Most = 256

// Finder finds foreign daemons. What it found out about a process is kept while that runs. It is safe for concurrent use.
type Finder struct {
	// Proc is /proc; empty means that.
	Proc string

	mu    sync.Mutex
	known map[int]found
	last  []api.ForeignDaemon
	at    time.Time // when last was found
}

type found struct {
	start uint64
	// name is the kernel's for it, which is another one when a shell becomes a daemon, without another start.
	name   string
	daemon *api.ForeignDaemon // nil for a process that is none
	early  bool               // it had just been started, and may not have opened its files yet
}

// unsure says whether a process is to be looked at anew although it goes by the same name: a script with the name of a daemon may become it.
func (x found) unsure() bool {
	return x.early || x.daemon == nil && slices.Contains(programs, x.name)
}

// earlyFor is how long a daemon is looked at anew after its start: before it has opened its store, where that is can only be guessed.
const earlyFor = time.Minute

// Find returns the daemons that run and are not of the processes ours, sorted by type, id and process. A process that ends while it is
// looked at is left out.
func (f *Finder) Find(ours map[int]bool) ([]api.ForeignDaemon, error) { return f.Recent(0, ours) }

// Recent is Find, and takes what was found within the last age for true: to look at a process costs 20 µs, and there are thousands.
func (f *Finder) Recent(age time.Duration, ours map[int]bool) ([]api.ForeignDaemon, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.at.IsZero() || time.Since(f.at) >= age {
		all, err := f.look()
		if err != nil {
			return nil, err
		}
		f.last, f.at = all, time.Now()
	}
	others := slices.DeleteFunc(slices.Clone(f.last), func(d api.ForeignDaemon) bool { return ours[int(d.PID)] })
	return others[:min(len(others), Most)], nil
}

// look looks at all processes.
func (f *Finder) look() ([]api.ForeignDaemon, error) {
	p := proc{cmp.Or(f.Proc, "/proc")}
	entries, err := os.ReadDir(p.dir)
	if err != nil {
		return nil, fmt.Errorf("while looking for daemons: %w", err)
	}
	boot, err := p.bootTime()
	if err != nil {
		return nil, err
	}
	var all []api.ForeignDaemon
	now := map[int]found{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		start, name, err := p.start(pid)
		if err != nil {
			continue
		}
		was, ok := f.known[pid]
		if !ok || was.start != start || was.name != name || was.unsure() {
			was = found{start: start, name: name, daemon: p.look(pid, start, boot)}
			was.early = was.daemon != nil && time.Since(was.daemon.Started.Time) < earlyFor
		}
		now[pid] = was
		if was.daemon != nil {
			all = append(all, *was.daemon)
		}
	}
	f.known = now
	slices.SortFunc(all, func(a, b api.ForeignDaemon) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.ID, b.ID), cmp.Compare(a.PID, b.PID))
	})
	return all, nil
}

// Pick returns the one daemon of a type, with an id, of a cluster; nil where none runs. One whose cluster is not known counts where there is no
// other.
func Pick(all []api.ForeignDaemon, daemonType, id, fsid string) (picked *api.ForeignDaemon) {
	for i := range all {
		switch d := &all[i]; {
		case d.Type != daemonType || d.ID != id:
		case d.Cluster == fsid:
			return d
		case d.Cluster == "" && picked == nil:
			picked = d
		}
	}
	return picked
}

// proc is the kernel's view of processes.
type proc struct{ dir string }

func (p proc) path(pid int, name string) string {
	return filepath.Join(p.dir, strconv.Itoa(pid), name)
}

// ticks is the kernel's clock tick for /proc (USER_HZ), which is 100 on every architecture that Holdfast is built for.
const ticks = 100

// bootTime is when the kernel was started (the line btime of /proc/stat).
func (p proc) bootTime() (time.Time, error) {
	b, err := os.ReadFile(filepath.Join(p.dir, "stat"))
	if err != nil {
		return time.Time{}, fmt.Errorf("while looking for daemons: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		if text, ok := strings.CutPrefix(line, "btime "); ok {
			sec, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return time.Unix(sec, 0), err
		}
	}
	return time.Time{}, fmt.Errorf("%s/stat does not have the time of the last boot", p.dir)
}

// start is when a process was started, in ticks after the kernel, and the kernel's name for it (proc(5), comm); an error when it has ended, or is a zombie.
func (p proc) start(pid int) (ticks uint64, name string, err error) {
	b, err := os.ReadFile(p.path(pid, "stat"))
	if err != nil {
		return 0, "", err
	}
	open, i := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if open < 0 || i < open || len(f) < 20 || f[0] == "Z" || f[0] == "X" {
		return 0, "", os.ErrNotExist
	}
	ticks, err = strconv.ParseUint(f[19], 10, 64)
	return ticks, string(b[open+1 : i]), err
}

// look reads what a process is; nil if it is no daemon of Ceph.
func (p proc) look(pid int, start uint64, boot time.Time) *api.ForeignDaemon {
	b, err := os.ReadFile(p.path(pid, "cmdline"))
	if err != nil || len(b) == 0 {
		return nil
	}
	args := strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
	program := filepath.Base(args[0])
	if !slices.Contains(programs, program) || slices.Contains(args, "--mkfs") {
		return nil
	}
	id := idOf(program, args)
	if id == "" {
		return nil
	}
	started := boot.Add(time.Duration(start) * (time.Second / ticks)).UTC()
	d := &api.ForeignDaemon{Type: program, ID: id, PID: int32(pid), Started: metav1.NewMicroTime(started), Unit: p.unit(pid), Container: p.contained(pid)}
	conf := p.conf(pid, args)
	d.Data = cmp.Or(p.dataByFiles(pid, program), option(args, "--mon-data", "--osd-data", "--mgr-data"), defaultData(program, id, args))
	d.Cluster = cmp.Or(option(args, "--fsid"), p.read(pid, filepath.Join(d.Data, "ceph_fsid")), conf["fsid"])
	return d
}

// RunBy says what keeps a daemon running.
func RunBy(d *api.ForeignDaemon) string {
	switch {
	case d.Container && d.Unit != "":
		return "a container (unit " + d.Unit + ")"
	case d.Container:
		return "a container"
	case d.Unit != "":
		return "the unit " + d.Unit
	}
	return "hand"
}
