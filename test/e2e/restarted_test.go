package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// restart asks for the restart of a daemon, and returns the name of the action.
func (b *bed) restart(d api.Daemon) string {
	b.Helper()
	return created(b, b.run("daemon", "restart", d.Name))
}

var createdAction = regexp.MustCompile(`(?m)^action/(\S+) created$`)

// created is the action that a command says it created.
func created(b *bed, out string) string {
	b.Helper()
	found := createdAction.FindStringSubmatch(out)
	if found == nil {
		b.Fatalf("no action was created:\n%s", out)
	}
	return found[1]
}

// restartHeld freezes a daemon, asks for its restart, and returns when the process was asked to end, which it does when it is thawed.
func (b *bed) restartHeld(d api.Daemon) string {
	b.Helper()
	b.signal(d, "STOP")
	name := b.restart(d)
	b.await("the process to be asked to end", func() error {
		const ended = 1 << (syscall.SIGTERM - 1)
		status, err := os.ReadFile(b.proc(d) + "/status")
		_, pending, _ := strings.Cut(string(status), "\nShdPnd:\t")
		if pending, _, _ = strings.Cut(pending, "\n"); err == nil {
			if signals, e := strconv.ParseUint(pending, 16, 64); e != nil || signals&ended == 0 {
				err = fmt.Errorf("the signals that wait are %q", pending)
			}
		}
		return err
	})
	b.await("the restart to be in the midst", func() error {
		if a := b.actionOf(name); a.Status.State != api.ActionRunning || a.Status.WaitsFor != fmt.Sprintf("process %d of %s to end", d.Status.PID, d.Name) {
			return fmt.Errorf("it is %+v", a.Status)
		}
		return nil
	})
	return name
}

// proc is where the machine sees the process of a daemon.
func (b *bed) proc(d api.Daemon) string {
	return fmt.Sprintf("/proc/%d/root/proc/%d", b.hostNamed(d.Spec.Host).PID(), d.Status.PID)
}

func (b *bed) signal(d api.Daemon, signal string) {
	b.Helper()
	b.hostNamed(d.Spec.Host).Run(b, context.Background(), "kill", "-"+signal, strconv.Itoa(int(d.Status.PID)))
}

const anyHost = 0

// daemonOf is a daemon of a type on a host, which runs.
func (b *bed) daemonOf(host int, kind string) (found api.Daemon) {
	b.Helper()
	b.await("a "+kind+" to run", func() error {
		for _, d := range b.daemons() {
			if (host == anyHost || d.Spec.Host == b.Lab.Host(host).Name) && d.Spec.Type == kind && d.Status.State == api.DaemonRunning {
				found = d
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	return found
}

var startOfCeph = regexp.MustCompile(`process ceph-\w+, pid (\d+)`)

// starts are the processes of a daemon so far, by what each wrote when it began.
func (b *bed) starts(d api.Daemon) (pids []int) {
	b.Helper()
	text, err := os.ReadFile(b.hostNamed(d.Spec.Host).Path(dataDir + "/agent/daemons/" + d.Namespace + "." + d.Name + "/log/daemon.log"))
	if err != nil {
		b.Fatalf("reading the log of %s: %v", d.Name, err)
	}
	for _, m := range startOfCeph.FindAllSubmatch(text, -1) {
		pid, _ := strconv.Atoi(string(m[1]))
		pids = append(pids, pid)
	}
	return pids
}

// startedOnce fails the test unless one more process of a daemon was started, and runs. It returns that.
func (b *bed) startedOnce(d api.Daemon, was []int) (pid int) {
	b.Helper()
	b.await("the new process of "+d.Name, func() error {
		now, told := b.starts(d), b.daemon(d.Name).Status
		if len(now) == 0 || told.State != api.DaemonRunning || int(told.PID) != now[len(now)-1] || told.PID == d.Status.PID {
			return fmt.Errorf("its processes were %v, and are told as %+v", now, told)
		}
		pid = int(told.PID)
		return nil
	})
	if now := b.starts(d); !slices.Equal(now, append(slices.Clone(was), pid)) || b.daemon(d.Name).Status.Restarts != d.Status.Restarts {
		b.Errorf("the processes of %s were %v, and are %v", d.Name, was, now)
	}
	return pid
}

// restartedOnce fails the test unless an action is done, tells of its steps, and started a daemon once.
func (b *bed) restartedOnce(action string, d api.Daemon, was []int) {
	b.Helper()
	pid, a := b.startedOnce(d, was), b.actionOf(action)
	told := []string{a.Status.Message, a.Status.Progress}
	for _, s := range a.Status.Steps {
		told = append(told, fmt.Sprintf("%s %s: %s", s.Name, s.State, s.Message))
	}
	want := []string{
		fmt.Sprintf("%s runs again, as process %d", d.Name, pid), "2/2",
		fmt.Sprintf("look Done: ending process %d, which runs since %s", d.Status.PID, d.Status.Started.UTC().Format("2006-01-02 15:04:05Z")),
		fmt.Sprintf("restart Done: %s runs again, as process %d", d.Name, pid),
	}
	if a.Status.State != api.ActionDone || !slices.Equal(told, want) || !meta.IsStatusConditionTrue(a.Status.Conditions, api.ActionEffective) {
		b.Errorf("action %s is %s, %+v, and tells\n%q, not\n%q", action, a.Status.State, a.Status.Conditions, told, want)
	}
	b.await("the end of the action to be told", func() error { return b.endTold(action) })
}

func (b *bed) actionOf(name string) api.Action {
	b.Helper()
	a, err := read[api.Action](b, 1, "actions", name)
	if err != nil {
		b.Fatalf("%v", err)
	}
	return a
}

// isAction returns a check of whether an action is in a state.
func (b *bed) isAction(name string, want api.ActionState) func() error {
	return func() error {
		a, err := read[api.Action](b, 1, "actions", name)
		if err == nil && a.Status.State != want {
			err = fmt.Errorf("it is %s: %s; it waits for %q", a.Status.State, a.Status.Message, a.Status.WaitsFor)
		}
		return err
	}
}
