package e2e

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// daemonsRestarted has an OSD, a mon and a mgr restarted, one after the other.
func (b *bed) daemonsRestarted() {
	for _, kind := range []string{"osd", "mon", "mgr"} {
		d := b.daemonOf(anyHost, "ceph-"+kind)
		was := b.starts(d)
		before := b.pids()
		out := b.run("daemon", "restart", kind+"."+d.Spec.ID, "--wait", "--timeout", "2m")
		a := b.actionOf(created(b, out))
		b.restartedOnce(a.Name, d, was)
		if !strings.Contains(out, d.Name+" runs again, as process ") || a.Spec.Requester != "holdfast:admin" || !meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionPersistent) {
			b.Errorf("the command says\n%s\nof %+v", out, a)
		}
		after := b.pids()
		delete(before, d.Name)
		delete(after, d.Name)
		if fmt.Sprint(after) != fmt.Sprint(before) {
			b.Errorf("other processes were %v, and are %v", before, after)
		}
	}
}

// restartAsksCeph has Ceph count an OSD as down: the restart of another one would take data away, and is refused with Ceph's reason; who wants it
// nonetheless has it.
func (b *bed) restartAsksCeph() {
	next := b.daemonOf(2, "ceph-osd")
	down := b.oldestOSD(next.Spec.Host)
	was, osd := b.starts(next), "osd."+down.Spec.ID
	b.await("the OSD not to be fresh any more", func() error { // one that was started just now is waited for
		if age := time.Since(b.daemon(down.Name).Status.Started.Time); age < used.DaemonFresh {
			return fmt.Errorf("it runs for %s", age)
		}
		return nil
	})
	b.ceph("osd", "set-group", "noup", osd)
	b.ceph("osd", "down", osd)
	b.refused("daemon restart "+next.Name, "PGs are or would become offline), with "+osd+" down already; to restart it in any case: 'holdfast daemon restart "+next.Name+
		" --force'")
	if now := b.starts(next); !slices.Equal(now, was) {
		b.Errorf("what was refused made its processes %v, from %v", now, was)
	}
	forced := created(b, b.run("daemon", "restart", next.Name, "--force", "--wait", "--timeout", "2m"))
	b.restartedOnce(forced, next, was)
	if shown := b.run("action", "show", forced); !strings.Contains(shown, "force") {
		b.Errorf("that it was forced is not shown:\n%s", shown)
	}
	b.ceph("osd", "unset-group", "noup", osd)
}

// oldestOSD is the OSD that runs the longest of those that are not on a host.
func (b *bed) oldestOSD(host string) (oldest api.Daemon) {
	b.Helper()
	for _, d := range b.daemons() {
		if d.Spec.Type != "ceph-osd" || d.Spec.Host == host || d.Status.State != api.DaemonRunning {
			continue
		}
		if oldest.Name == "" || d.Status.Started.Before(oldest.Status.Started) {
			oldest = d
		}
	}
	if oldest.Name == "" {
		b.Fatalf("no OSD runs but on host %s", host)
	}
	return oldest
}

// restartWaitsInLine freezes an OSD while it is restarted: another restart on its host waits for that, and another one in the cluster for both.
func (b *bed) restartWaitsInLine() {
	first, second, third := b.daemonOf(2, "ceph-osd"), b.daemonOf(2, "ceph-mon"), b.daemonOf(3, "ceph-mon")
	starts := map[string][]int{}
	for _, d := range []api.Daemon{first, second, third} {
		starts[d.Name] = b.starts(d)
	}
	names := []string{b.restartHeld(first)}
	for _, next := range []struct {
		d     api.Daemon
		after string
		why   string
	}{
		{second, "in progress", "one action at a time on host h2"},
		{third, "before it in the queue", "only one action that reduces the redundancy of cluster default/ceph runs at a time"},
	} {
		last := names[len(names)-1]
		name := b.restart(next.d)
		names = append(names, name)
		b.await("the restart of "+next.d.Name+" to wait", b.isAction(name, api.ActionPendingSchedule))
		a := b.actionOf(name)
		for _, want := range []string{
			"action " + last + " (daemon.restart daemon/", next.after, next.why,
			"cancel that with 'holdfast action cancel " + last + "'",
		} {
			if !strings.Contains(a.Status.WaitsFor, want) {
				b.Errorf("the restart of %s waits for %q, not for %q", next.d.Name, a.Status.WaitsFor, want)
			}
		}
	}
	b.signal(first, "CONT")
	for i, d := range []api.Daemon{first, second, third} {
		b.await("the restart of "+d.Name, b.isAction(names[i], api.ActionDone))
		b.restartedOnce(names[i], d, starts[d.Name])
		if a := b.actionOf(names[i]); i > 0 && a.Status.Started.Before(b.actionOf(names[i-1]).Status.Finished) {
			b.Errorf("action %s began before the one that it waited for had ended", a.Name)
		}
	}
}

// restartCancelled cancels three restarts: one that the agent did not hear of, one in the midst, and one that is done.
func (b *bed) restartCancelled() {
	const number = 4
	d := b.daemonOf(number, "ceph-osd")
	was, agent := b.starts(d), b.Server(number)
	agent.Signal(b, syscall.SIGSTOP)
	name := b.restart(d)
	b.run("action", "cancel", name)
	b.await("the cancel of what was not begun", b.isAction(name, api.ActionCancelled))
	agent.Signal(b, syscall.SIGCONT)
	b.neverBegun(name)

	held := b.restartHeld(d)
	b.run("action", "cancel", held)
	b.await("the cancel to be with the agent", func() error {
		if a := b.actionOf(held); len(a.Status.Steps) != 2 || a.Status.Steps[1].State != api.StepUndoing || a.Status.WaitsFor == "" {
			return fmt.Errorf("it is %+v", a.Status)
		}
		return nil
	})
	b.signal(d, "CONT")
	b.await("the cancel in the midst", b.isAction(held, api.ActionCancelled))
	now := b.startedOnce(d, was)
	a := b.actionOf(held)
	want := fmt.Sprintf("cancelled; process %d could not be kept from ending: now %s runs, as process %d", d.Status.PID, d.Name, now)
	if c := meta.FindStatusCondition(a.Status.Conditions, api.ActionEffective); a.Status.Message != want || c == nil || c.Status != "False" || c.Reason != "Cancelled" {
		b.Errorf("it says %q, not %q; Effective is %+v", a.Status.Message, want, c)
	}
	b.refused("action cancel "+held, "has already ended as Cancelled")

	done := created(b, b.run("daemon", "restart", d.Name, "--wait", "--timeout", "2m"))
	b.refused("action cancel "+done, "has already ended as Done")
}

// neverBegun fails the test unless an action was cancelled before anything of it was begun.
func (b *bed) neverBegun(name string) {
	b.Helper()
	if a := b.actionOf(name); a.Status.Message != "cancelled before it began" || len(a.Status.Steps) > 0 || a.Status.Started != nil {
		b.Errorf("action %s is %+v", name, a.Status)
	}
}

// killedInRestart kills the agent of a host in the midst of a restart, and the leader, too, if it is to be. The process ends while there is no agent,
// and is started by the next one, once.
func (b *bed) killedInRestart(leader bool) {
	const number = 4
	d := b.daemonOf(number, "ceph-osd")
	was := b.starts(d)
	name := b.restartHeld(d)
	before := b.actionOf(name)
	b.Server(number).Kill(b)
	if leader {
		b.killLeader()
	}
	b.signal(d, "CONT")
	b.await("the process to end", func() error {
		if _, err := os.Stat(b.proc(d)); err == nil {
			return fmt.Errorf("process %d is there", d.Status.PID)
		}
		return nil
	})
	if now := b.starts(d); !slices.Equal(now, was) {
		b.Errorf("without an agent the processes became %v, from %v", now, was)
	}
	b.StartAgent(b, number, "")
	b.await("the restart to be done", b.isAction(name, api.ActionDone))
	b.carriedOn(before)
	b.restartedOnce(name, d, was)
}
