package foreign

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// fakeProc is a /proc in which a process has no more than what is looked at.
type fakeProc struct {
	testing.TB
	dir string
}

func newFakeProc(t testing.TB) fakeProc {
	t.Helper()
	p := fakeProc{t, t.TempDir()}
	p.write("stat", "cpu 1 2\nbtime 1700000000\n")
	return p
}

func (p fakeProc) write(path, text string) {
	p.Helper()
	path = filepath.Join(p.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
}

// run has a process run a program, always the same process.
func (p fakeProc) run(pid int, name, cmdline string) {
	p.write(fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (%s) S 1 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2 3", pid, name))
	p.write(fmt.Sprintf("%d/cmdline", pid), cmdline)
}

// A process that was none is a daemon when it executes one, also where it was a script that had the daemon's name already.
func TestFind_becomes(t *testing.T) {
	p := newFakeProc(t)
	f := Finder{Proc: p.dir}
	found := func() (names []string) {
		all, err := f.Find(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range all {
			names = append(names, d.Type+"."+d.ID)
		}
		return names
	}
	p.run(7, "sh", "/bin/sh\x00-c\x00exec ceph-mon -i a")
	p.run(8, "ceph-osd", "/bin/sh\x00/usr/local/bin/ceph-osd\x00-i\x003")
	p.run(9, "a (b) c", "/usr/bin/a\x00-i\x003")
	for range 2 {
		if got := found(); len(got) > 0 {
			t.Errorf("%v are no daemons yet", got)
		}
	}
	p.run(7, "ceph-mon", "ceph-mon\x00-i\x00a\x00")
	p.run(8, "ceph-osd", "/usr/bin/ceph-osd\x00-i\x003\x00")
	if got := found(); !slices.Equal(got, []string{"ceph-mon.a", "ceph-osd.3"}) {
		t.Errorf("found %v", got)
	}
}
