package e2e

import (
	"errors"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/test/home"
)

// TestRecoverMons loses the quorum of the mons for good: first with the stores of two of three, and then with all three. Nothing is made
// up, one command brings the mons back, and a client goes on.
func TestRecoverMons(t *testing.T) {
	begin(t)
	b := newBed(t, 3, 1)
	wanted := home.SpecFor(b.Lab, 3, 1, 1)
	wanted.Interval = "2s"
	b.mustApply(wanted.YAML())
	client := b.startClient(1)
	b.await("Ceph to be well with a pool", func() error { return b.health(3, 3) })
	out, err := b.Holdfast("ceph", "recover-mons", "ceph")
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != 3 ||
		!strings.Contains(out+err.Error(), "the mons answer") || strings.Contains(out, "--approve") {
		t.Errorf("the recovery of a cluster whose mons answer: %v: %s", err, out)
	}

	part := func(name string, do func(*bed)) {
		if !t.Run(name, func(t *testing.T) {
			do(&bed{t, b.Home})
			client.goesOn(t)
		}) {
			t.FailNow()
		}
	}
	part("from one survivor", func(b *bed) {
		b.destroyMons("a", "b")
		b.await("mon.a to wait for a quorum", b.says("ceph-mon-a", "recover-mons"))
		b.noQuorum()
		b.recoverMons("alone")
		b.await("three mons", func() error { return b.mons("c", "d", "e") })
	})
	part("from the OSDs", func(b *bed) {
		b.destroyMons("c", "d", "e")
		b.await("mon.e to wait for a quorum", b.says("ceph-mon-e", "recover-mons"))
		b.noQuorum()
		b.refuseRecovery("recover the mons from the OSDs", "alone")
		b.recoverMons("osds")
	})
	b.await("Ceph to be well", func() error { return b.health(3, 3) })
	client.end(t)
	b.noOrphans()
}

// noQuorum returns when the cluster is known to have none.
func (b *bed) noQuorum() {
	b.Helper()
	b.await("the quorum to be lost", func() error {
		if out := b.run("get", "storagestatuses", "ceph", "-o", "yaml"); !strings.Contains(out, "to form a quorum") {
			return errors.New(out)
		}
		return nil
	})
}

// recoverMons runs the command as a person would: first to read what it would do, then with the code that approves it.
func (b *bed) recoverMons(from string) {
	b.Helper()
	args := []string{"ceph", "recover-mons", "ceph", "--from", from}
	code := regexp.MustCompile(`--approve ([0-9a-f]+)`).FindStringSubmatch(b.run(args...))
	if code == nil {
		b.Fatal("it names no code")
	}
	b.Logf("%s", b.run(append(args, "--approve", code[1], "--timeout", "90s")...))
}

// refuseRecovery expects that a recovery is refused.
func (b *bed) refuseRecovery(why, from string) {
	b.Helper()
	args := []string{"ceph", "recover-mons", "ceph", "--from", from}
	out := b.run(args...)
	code := regexp.MustCompile(`--approve ([0-9a-f]+)`).FindStringSubmatch(out)
	if code == nil {
		b.Fatalf("it names no code: %s", out)
	}
	out, err := b.Holdfast(append(args, "--approve", code[1], "--timeout", "60s")...)
	if err == nil || !strings.Contains(out+err.Error(), why) {
		b.Fatalf("%v: %s", err, out)
	}
}
