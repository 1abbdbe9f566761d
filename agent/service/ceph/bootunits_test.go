package ceph

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// enable makes the links that 'systemctl enable' makes.
func enable(t *testing.T, dir string, links ...string) {
	t.Helper()
	for _, link := range links {
		path := filepath.Join(dir, link)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/lib/systemd/system/ceph-volume@.service", path); err != nil {
			t.Fatal(err)
		}
	}
}

// An OSD that ceph-disk has made is started at a boot by the unit of 'ceph-volume simple', whatever is said of its own unit. Others' are left alone.
func TestEnabledUnits(t *testing.T) {
	const uuid, other = testUUID, "0b8dbc3e-0cd3-4a3b-9b7e-4c7d1e1d3f5a"
	dir := t.TempDir()
	s := systemd{units: dir}
	simple, own := "ceph-volume@simple-3-"+uuid+".service", "ceph-osd@3.service"
	enable(t, dir,
		"multi-user.target.wants/"+simple, "multi-user.target.wants/ceph-volume@simple-33-"+uuid+".service", "multi-user.target.wants/ceph-volume@simple-3-"+other+".service",
		"ceph-osd.target.wants/"+own, "ceph-osd.target.wants/ceph-osd@33.service", "ceph-mon.target.wants/ceph-mon@3.service")
	l := &service.Local{Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}}, Data: t.TempDir(), Parameters: map[string]string{paramOSDUUID: uuid}}
	if got, err := s.enabled(bootUnits(l, nil, nil)); err != nil || !slices.Equal(got, []string{simple, own}) {
		t.Errorf("of the OSD: %v, %v", got, err)
	}
	l.Daemon.Spec.Type, l.Parameters = "ceph-mon", nil
	if got, err := s.enabled(bootUnits(l, nil, nil)); err != nil || !slices.Equal(got, []string{"ceph-mon@3.service"}) {
		t.Errorf("of the mon: %v, %v", got, err)
	}
}

// On a host with two clusters the unit of a name runs the daemon of one of them. That of the other, which was started by hand, is taken over without it.
func TestBootUnits_anotherCluster(t *testing.T) {
	l := &service.Local{
		Daemon:     &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}},
		Parameters: map[string]string{paramOSDUUID: "u", api.ParameterForeign: "ours"},
	}
	volume, own := []string{"ceph-volume@simple-3-u.service", "ceph-volume@lvm-3-u.service"}, "ceph-osd@3.service"
	daemon := func(pid int32, cluster, unit string) api.ForeignDaemon {
		return api.ForeignDaemon{Type: "ceph-osd", ID: "3", PID: pid, Cluster: cluster, Unit: unit}
	}
	tests := []struct {
		name string
		all  []api.ForeignDaemon
		own  bool
	}{
		{"nothing runs", nil, true},
		{"ours by its unit, the other by hand", []api.ForeignDaemon{daemon(1, "ours", own), daemon(2, "theirs", "")}, true},
		{"both by hand", []api.ForeignDaemon{daemon(1, "ours", ""), daemon(2, "theirs", "")}, true},
		{"ours by hand, the other by the unit", []api.ForeignDaemon{daemon(1, "ours", ""), daemon(2, "theirs", own)}, false},
		{"ours has ended", []api.ForeignDaemon{daemon(2, "theirs", own)}, false},
	}
	for _, tt := range tests {
		want := slices.Clone(volume)
		if tt.own {
			want = append(want, own)
		}
		if got := bootUnits(l, tt.all, pick(l, tt.all)); !slices.Equal(got, want) {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// noSystemd is a host without it.
var noSystemd = systemd{units: "/nowhere", running: "/nowhere"}

// fakeSystemd is a systemd, and a systemctl that does what the real one does: 'disable' removes the links, and the directories that are empty then;
// 'stop' does as it is told. said has what it was asked for.
func fakeSystemd(t *testing.T, stop string) (s systemd, said func() string) {
	t.Helper()
	s, bin, log := systemd{units: t.TempDir(), running: t.TempDir()}, t.TempDir(), filepath.Join(t.TempDir(), "said")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >>%s\nverb=$1; shift\ncase $verb in\n"+
		"disable) for u; do rm %[2]s/*.wants/$u || exit 1; done; rmdir --ignore-fail-on-non-empty %[2]s/*.wants;;\n"+
		"stop) %[3]s;;\n*) exit 2;;\nesac\n", log, s.units, stop)
	if err := os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return s, func() string {
		text, _ := os.ReadFile(log)
		_ = os.Remove(log)
		return string(text)
	}
}

const testUUID = "6cc43680-4f6e-4feb-92ff-9c7ba204120e"

var (
	testSimple = "ceph-volume@simple-3-" + testUUID + ".service"
	testLinks  = []string{"multi-user.target.wants/" + testSimple, "ceph-osd.target.wants/ceph-osd@3.service"}
)

// foreignOSD is an OSD whose process has ended.
func foreignOSD(t *testing.T) *service.Local {
	t.Helper()
	return &service.Local{Daemon: &api.Daemon{Spec: api.DaemonSpec{Type: "ceph-osd", ID: "3"}}, Data: t.TempDir(), Parameters: map[string]string{paramOSDUUID: testUUID}}
}

// endItsUnits does so for a process, or for none.
func endItsUnits(t *testing.T, l *service.Local, s systemd, p *api.ForeignDaemon) error {
	t.Helper()
	return endUnits(t.Context(), l, s, bootUnits(l, nil, p), p)
}

// What is not enabled needs no systemctl, as on machines without systemd. What is enabled does, and that it is not there is told.
func TestEndUnits_noSystemctl(t *testing.T) {
	l, s := foreignOSD(t), systemd{units: t.TempDir(), running: "/nowhere"}
	t.Setenv("PATH", t.TempDir())
	if err := endItsUnits(t, l, s, nil); err != nil {
		t.Error(err)
	}
	enable(t, s.units, testLinks...)
	if err := endItsUnits(t, l, s, nil); err == nil {
		t.Error("they stay enabled, and nobody says so")
	}
}

// Where systemd does not run the machine the units are disabled, for the day on which it does, and none is stopped.
func TestEndUnits_notBooted(t *testing.T) {
	l := foreignOSD(t)
	s, said := fakeSystemd(t, "exit 1")
	s.running = "/nowhere"
	enable(t, s.units, testLinks...)
	for range 2 {
		if err := endItsUnits(t, l, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := s.enabled(bootUnits(l, nil, nil)); err != nil || len(left) > 0 {
		t.Errorf("%v start it again at the next boot, %v", left, err)
	}
	if got := said(); got != "disable "+testSimple+" ceph-osd@3.service\n" {
		t.Errorf("systemctl was told %q", got)
	}
}

// The unit that runs the process is stopped, though it is not enabled; one that is enabled is stopped before it, lest it starts the daemon again.
func TestEndUnits_booted(t *testing.T) {
	l := foreignOSD(t)
	s, said := fakeSystemd(t, "[ $1 = ceph-osd@3.service ] || exit 5") // the package of ceph-volume is gone
	enable(t, s.units, testLinks[0])
	if err := endItsUnits(t, l, s, &api.ForeignDaemon{Unit: "ceph-osd@3.service"}); err != nil {
		t.Fatal(err)
	}
	if got := said(); got != "disable "+testSimple+"\nstop "+testSimple+"\nstop ceph-osd@3.service\n" {
		t.Errorf("systemctl was told %q", got)
	}
}

// A try that is cut off after it had disabled the units leaves a record of them, which the next one keeps, also where the process has ended meanwhile.
func TestEndUnits_again(t *testing.T) {
	l := foreignOSD(t)
	s, said := fakeSystemd(t, "exit 1")
	enable(t, s.units, testLinks...)
	p := &api.ForeignDaemon{Type: "ceph-osd", ID: "3", PID: int32(os.Getpid()), Unit: "ceph-osd@3.service"}
	if err := endItsUnits(t, l, s, p); err == nil {
		t.Fatal("systemctl failed, and nobody says so")
	}
	said()
	running := s.running
	s, said = fakeSystemd(t, "exit 0")
	s.running = running
	for _, now := range []*api.ForeignDaemon{p, nil} {
		if err := endItsUnits(t, l, s, now); err != nil {
			t.Fatal(err)
		}
		if got := said(); got != "stop "+testSimple+"\nstop ceph-osd@3.service\n" {
			t.Errorf("systemctl was told %q", got)
		}
		is, err := readBefore(l)
		if err != nil || !slices.Equal(is.Enabled, []string{testSimple, "ceph-osd@3.service"}) || is.ForeignDaemon == nil || is.Unit != p.Unit || !slices.Equal(is.Command, os.Args) {
			t.Errorf("of before it says %+v, %v", is, err)
		}
	}
}

// Where the process has ended before anything was done, the units are written down all the same, and what is enabled later is added to them.
func TestEndUnits_ended(t *testing.T) {
	l := foreignOSD(t)
	s, _ := fakeSystemd(t, "exit 0")
	for _, link := range testLinks {
		enable(t, s.units, link)
		if err := endItsUnits(t, l, s, nil); err != nil {
			t.Fatal(err)
		}
	}
	if is, err := readBefore(l); err != nil || !slices.Equal(is.Enabled, []string{testSimple, "ceph-osd@3.service"}) {
		t.Errorf("of before it says %+v, %v", is, err)
	}
	if err := os.WriteFile(filepath.Join(l.Data, fileBefore), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	enable(t, s.units, testLinks[0])
	if err := endItsUnits(t, l, s, nil); err == nil {
		t.Error("what cannot be read is written over")
	}
}

// What was disabled, by this try or by one before, is on stable storage before anything is stopped: a directory that cannot be opened is told.
func TestEndUnits_sync(t *testing.T) {
	l := foreignOSD(t)
	s, said := fakeSystemd(t, "exit 0")
	enable(t, s.units, testLinks[0])
	loop := filepath.Join(s.units, "a.target.requires")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"disable " + testSimple + "\n", ""} {
		if err := endItsUnits(t, l, s, nil); err == nil || said() != want {
			t.Errorf("it goes on: %v", err)
		}
	}
	if err := os.Remove(loop); err != nil {
		t.Fatal(err)
	}
	if err := endItsUnits(t, l, s, nil); err != nil || said() != "stop "+testSimple+"\n" {
		t.Errorf("when it can: %v", err)
	}
}
