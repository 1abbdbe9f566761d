package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
)

// TestIdleDaemons has daemons run and do nothing, for all causes that can be staged, one after the other: 'holdfast
// why' names the cause and the command that mends it, 'holdfast status' has no ✓ for them, and the Daemon is not Ready.
func TestIdleDaemons(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	spec := home.SpecFor(b.Lab, 3, 2, 1)
	spec.Interval, spec.Config = "2s", maps.Clone(spec.Config)
	spec.Config["mon_data_avail_warn"], spec.Config["mon_data_avail_crit"] = "2", "1"
	b.mustApply(spec.YAML() + filesystemYAML())
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	b.idleOSDs()
	b.filledOSDs()
	b.idleMons()
	b.idleMgrs()
	b.idleMDS()
	b.endsAgain()
}

// idle checks a situation of a daemon that runs, undoes it, and waits until the daemon serves.
func (b *bed) idle(situation, name string, undo func(), names ...string) {
	b.Helper()
	b.tells(situation, names...)
	b.await(name+" not to be Ready", func() error { return b.stands(name, "False") })
	if row := b.row(name); !strings.HasPrefix(row, "✗") || !strings.Contains(row, "Running") {
		b.Errorf("%s: the row of status is %q", situation, row)
	}
	undo()
	b.await(name+" to serve", func() error { return b.stands(name, "True") })
	if row := b.row(name); !strings.HasPrefix(row, "✓") {
		b.Errorf("after %s: the row of status is %q", situation, row)
	}
}

// stands says whether the condition Ready of a daemon has a status.
func (b *bed) stands(name, want string) error {
	d, err := read[api.Daemon](b, 1, "daemons", name)
	if err != nil {
		return err
	}
	for _, c := range d.Status.Conditions {
		if c.Type == api.ConditionReady && string(c.Status) == want {
			return nil
		}
	}
	return fmt.Errorf("%s is %s: %+v", name, d.Status.State, d.Status.Conditions)
}

// row is the row of a daemon in 'holdfast status'.
func (b *bed) row(name string) string {
	b.Helper()
	kind, id, _ := strings.Cut(strings.TrimPrefix(name, "ceph-"), "-")
	for line := range strings.SplitSeq(b.run("status"), "\n") {
		if words := strings.Fields(line); len(words) > 1 && words[1] == kind+"."+id {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// suspend stops the process of a daemon by a signal, and returns what has it go on.
func (b *bed) suspend(name string) (resume func()) {
	b.Helper()
	d := b.daemon(name)
	h, pid := b.hostNamed(d.Spec.Host), strconv.Itoa(int(d.Status.PID))
	h.Run(b, b.Context(), "kill", "-STOP", pid)
	return func() { h.Run(b, b.Context(), "kill", "-CONT", pid) }
}

// undo runs a command of ceph.
func (b *bed) undo(args ...string) func() { return func() { b.ceph(args...) } }

func (b *bed) idleOSDs() {
	b.Helper()
	const osd = "ceph-osd-2"
	b.ceph("osd", "out", "2")
	b.idle("osd-out", osd, b.undo("osd", "in", "2"))
	b.ceph("osd", "reweight", "2", "0")
	b.idle("osd-reweight-0", osd, b.undo("osd", "in", "2"))
	b.ceph("osd", "set", "noin")
	b.ceph("osd", "out", "2")
	b.idle("osd-noin", osd, func() { b.ceph("osd", "unset", "noin"); b.ceph("osd", "in", "2") })
	b.ceph("osd", "crush", "reweight", "osd.2", "0")
	b.idle("osd-crush-weight-0", osd, func() {
		d, err := read[api.Daemon](b, 1, "daemons", osd)
		if err != nil || d.Status.Service == nil {
			b.Fatalf("%+v, %v", d.Status, err)
		}
		command := strings.Split(d.Status.Service.Next, "'")[1]
		b.run(strings.Fields(command)[1:]...) // as 'why' says
	})
	b.ceph("osd", "set", "noup")
	b.ceph("osd", "down", "2")
	b.idle("osd-noup", osd, b.undo("osd", "unset", "noup"))
	b.ceph("osd", "add-noup", "2")
	b.ceph("osd", "down", "2")
	b.idle("osd-own-noup", osd, b.undo("osd", "rm-noup", "2"))
	b.suspend(osd)
	b.idle("osd-hung", osd, func() { b.run("daemon", "restart", "osd.2", "--wait") }) // as 'why' says
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}

// filledOSDs has OSDs count as full by limits that a small cluster reaches.
func (b *bed) filledOSDs() {
	b.Helper()
	levels := []struct{ name, limit, back string }{
		{"nearfull", "0.0001", "0.85"}, {"backfillfull", "0.0002", "0.9"}, {"full", "0.0003", "0.95"},
	}
	for _, x := range levels {
		b.ceph("osd", "set-"+x.name+"-ratio", x.limit)
		b.tells("osd-" + x.name)
		if row := b.row("ceph-osd-2"); strings.HasPrefix(row, "✓") {
			b.Errorf("%s: the row of status is %q", x.name, row)
		}
	}
	for _, x := range slices.Backward(levels) {
		b.ceph("osd", "set-"+x.name+"-ratio", x.back)
	}
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
}

func (b *bed) idleMons() {
	b.Helper()
	resume := b.suspend("ceph-mon-c")
	b.idle("mon-hung", "ceph-mon-c", resume)
}

func (b *bed) idleMgrs() {
	b.Helper()
	active, standby := b.mgrs().Active, "a"
	if active == "a" {
		standby = "b"
	}
	b.tells("mgr-standby", "mgr.b", "mgr."+standby)
	if row := b.row("ceph-mgr-" + standby); !strings.HasPrefix(row, "✓") || !strings.Contains(row, "stands by") {
		b.Errorf("the row of the standby mgr is %q", row)
	}
	resume := b.suspend("ceph-mgr-" + active)
	b.idle("mgr-hung", "ceph-mgr-"+active, resume, "mgr.a", "mgr."+active)
}

func (b *bed) idleMDS() {
	b.Helper()
	b.await("the filesystem to be Online", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Standby != "" }))
	s, err := b.filesystem()
	if err != nil {
		b.Fatal(err)
	}
	mds := "ceph-mds-" + s.Standby
	b.tells("mds-standby", "mds.home-b", "mds."+s.Standby)
	resume := b.suspend(mds)
	b.idle("mds-hung", mds, resume, "mds.home-b", "mds."+s.Standby)
	b.ceph("fs", "fail", "home")
	b.idle("mds-fs-fail", mds, b.undo("fs", "set", "home", "joinable", "true"), "mds.home-a", "mds."+s.Standby)
}

// endsAgain kills an MDS again and again.
func (b *bed) endsAgain() {
	b.Helper()
	b.await("the filesystem to be Online", b.filesystemIs(func(s api.FilesystemStatus) bool { return s.Standby != "" }))
	s, err := b.filesystem()
	if err != nil {
		b.Fatal(err)
	}
	mds := "ceph-mds-" + s.Standby
	for range 4 {
		b.await("the MDS to run", b.state(mds, api.DaemonRunning))
		ended := b.daemon(mds).Status.Restarts
		b.endOf(mds)
		b.await("its end to be noticed", func() error {
			if d := b.daemon(mds); d.Status.Restarts == ended {
				return fmt.Errorf("it ended %d times", ended)
			}
			return nil
		})
	}
	b.tells("daemon-keeps-ending", "mds.home-b", "mds."+s.Standby)
	b.await("the MDS to run", b.state(mds, api.DaemonRunning))
	b.await("the cluster to say so", func() error {
		if out := b.run("status"); !strings.Contains(out, "DEGRADED") || !strings.Contains(out, "keeps ending") {
			return fmt.Errorf("%s", out)
		}
		return nil
	})
	out := b.run("why", "mds."+s.Standby)
	for said := range strings.SplitSeq(out, ". ") {
		if strings.Count(out, said) > 1 && len(said) > 20 {
			b.Errorf("why says it twice: %s", out)
		}
	}
}
