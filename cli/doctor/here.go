package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/private"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// lookHere finds out what can be found out on this machine.
func (f *Facts) lookHere() {
	f.Role = f.role()
	var s unix.Statfs_t
	if err := unix.Statfs(f.DataDir, &s); err == nil {
		f.Local.Free, f.Local.Size = s.Bavail*uint64(s.Bsize), s.Blocks*uint64(s.Bsize)
	}
	f.certificates()
	f.keys()
	f.Local.Processes = processes()
	f.Local.Records = f.records()
	f.snapshot()
	f.twins()
	var err error
	if f.Local.Damage, err = damaged.Read(f.DataDir); err != nil {
		f.problem(err)
	}
}

// twins reads what the agent wrote down of another machine that runs as its host.
func (f *Facts) twins() {
	note, err := instance.ReadNote(filepath.Join(f.DataDir, "agent", instance.NoteFile))
	switch {
	case err != nil:
		f.problem(err)
	case note != nil && note.Self != nil && note.Other != nil:
		f.Local.Twins = []instance.Instance{*note.Self, *note.Other}
	}
}

func (f *Facts) role() string {
	if f.exists("server.json") {
		return "server"
	}
	if f.exists(filepath.Join("host", "servers")) {
		return "agent"
	}
	return ""
}

func (f *Facts) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.DataDir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.problem(err)
	}
	return err == nil
}

func (f *Facts) problem(err error) {
	if text := err.Error(); !slices.Contains(f.Local.Problems, text) {
		f.Local.Problems = append(f.Local.Problems, text)
	}
}

// glob lists what matches below the data directory.
func (f *Facts) glob(pattern ...string) []string {
	paths, err := filepath.Glob(filepath.Join(append([]string{f.DataDir}, pattern...)...))
	if err != nil {
		f.problem(err)
	}
	return paths
}

func (f *Facts) certificates() {
	for _, path := range append(f.glob("pki", "*.crt"), f.glob("host", "*.crt")...) {
		text, err := os.ReadFile(path)
		if err != nil {
			f.problem(err)
			continue
		}
		certs, err := pki.ParseBundle(text)
		if err != nil {
			f.problem(fmt.Errorf("%s: %w", path, err))
			continue
		}
		// Of a chain, the first certificate counts; the authorities are the same in all files.
		if certs[0].IsCA && filepath.Base(path) != "ca.crt" {
			continue
		}
		f.Local.Certificates = append(f.Local.Certificates, Certificate{path, certs[0].NotBefore, certs[0].NotAfter, certs[0].IsCA})
		if host, ok := access.HostOf(certs[0].Subject.CommonName); ok && path == pki.CertFile(control.HostDir(f.DataDir), "host") {
			f.Host = host
		}
	}
}

// keys looks for those that others may read.
func (f *Facts) keys() {
	found, err := private.Find(f.DataDir)
	if err != nil {
		f.problem(err)
	}
	for _, one := range found {
		f.Local.Exposed = append(f.Local.Exposed, one.String())
	}
}

// marker is the variable in the environment of daemons that the agent runs without systemd; agent/runtime/detached sets it.
const marker = "HOLDFAST_DAEMON="

// processes finds the daemons that run on this machine: the first process of each.
func processes() map[string]int {
	found := map[string]int{}
	paths, _ := filepath.Glob("/proc/[0-9]*/environ") // the pattern is good
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(path) // it may have ended, or be somebody else's
		if err != nil {
			continue
		}
		for kv := range bytes.SplitSeq(text, []byte{0}) {
			name, ok := strings.CutPrefix(string(kv), marker)
			if ok && (found[name] == 0 || pid < found[name]) {
				found[name] = pid
			}
		}
	}
	return found
}

// records lists the daemons that something is kept of: their files, or the record of their process.
func (f *Facts) records() []string {
	names := map[string]bool{}
	for _, path := range f.glob("agent", "daemons", "*") {
		names[filepath.Base(path)] = true
	}
	for _, path := range f.glob("agent", "runtime", "*.json") {
		names[strings.TrimSuffix(filepath.Base(path), ".json")] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (f *Facts) snapshot() {
	at, err := control.LastBackup(f.DataDir)
	if err != nil {
		f.problem(err)
	}
	f.Local.Snapshot = at
}
