package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/test/hosts"
)

// moduleThread is what ceph-mgr calls the thread of the module.
const moduleThread = "holdfast"

// idle is what an active mgr uses at rest, in percent of a core: all of it, and the thread of the
// module.
type idle struct{ mgr, module float64 }

// threads are how long threads have run, by their numbers.
type threads map[string]thread

type thread struct {
	name string
	ran  time.Duration
}

// watchMgr watches the mgrs of the cluster on the hosts of a lab. The active one is the busiest.
func watchMgr(lab *hosts.Lab, watch time.Duration) (most idle, err error) {
	mgrs, err := mgrsOf(lab)
	if err != nil {
		return idle{}, err
	}
	before := map[int]threads{}
	for _, pid := range mgrs {
		if before[pid], err = threadsOf(pid); err != nil {
			return idle{}, err
		}
	}
	start := time.Now()
	<-time.After(watch)
	for _, pid := range mgrs {
		after, err := threadsOf(pid)
		if err != nil {
			return idle{}, err
		}
		if used := after.since(before[pid], time.Since(start)); used.mgr > most.mgr {
			most = used
		}
	}
	return most, nil
}

func (t threads) since(before threads, took time.Duration) (used idle) {
	for id, now := range t {
		percent := 100 * (now.ran - before[id].ran).Seconds() / took.Seconds()
		used.mgr += percent
		if now.name == moduleThread {
			used.module += percent
		}
	}
	return used
}

// threadsOf reads how long the threads of a process have run, in nanoseconds (proc_pid_schedstat).
func threadsOf(pid int) (threads, error) {
	dirs, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err == nil && len(dirs) == 0 {
		err = fmt.Errorf("process %d has ended", pid)
	}
	all := threads{}
	for _, dir := range dirs {
		name, _ := os.ReadFile(filepath.Join(dir, "comm"))
		text, _ := os.ReadFile(filepath.Join(dir, "schedstat"))
		ran, _, _ := strings.Cut(string(text), " ")
		if n, err := strconv.ParseInt(ran, 10, 64); err == nil { // else it has ended
			all[filepath.Base(dir)] = thread{strings.TrimSpace(string(name)), time.Duration(n)}
		}
	}
	return all, err
}

// mgrsOf are the processes of ceph-mgr on the hosts of a lab.
func mgrsOf(lab *hosts.Lab) ([]int, error) {
	of := map[string]bool{}
	for _, h := range lab.Hosts() {
		of[namespaceOf(fmt.Sprint(h.PID()))] = true
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	var all []int
	for _, line := range lines {
		text, _ := os.ReadFile(line)
		name, _, _ := bytes.Cut(text, []byte{0})
		pid := filepath.Base(filepath.Dir(line))
		if filepath.Base(string(name)) == "ceph-mgr" && of[namespaceOf(pid)] {
			n, err := strconv.Atoi(pid)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
	}
	if len(all) == 0 {
		return nil, errors.New("no ceph-mgr runs on the hosts")
	}
	return all, nil
}

// namespaceOf names the PID namespace of a process; empty when it has ended.
func namespaceOf(pid string) string {
	name, _ := os.Readlink("/proc/" + pid + "/ns/pid")
	return name
}
