package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/test/home"
	"github.com/holdfast-storage/holdfast/test/hosts"
)

// TestLogs reads the log of an OSD from the server, and from a laptop that reaches neither the
// OSD's host nor Ceph. It follows the log over a rotation there. Nothing is left of it, also if the
// command is killed, and an agent that is disconnected is named at once.
func TestLogs(t *testing.T) {
	begin(t)
	lab := hosts.New(t, hosts.Options{Count: 4, Disks: 1})
	b := &bed{t, home.StartServers(t, lab, binary, 1)}
	for n := 2; n <= 3; n++ {
		b.StartAgent(t, n, b.Token(t, "agent"))
	}
	b.AwaitHosts(t, 3)
	spec := home.SpecFor(lab, 1, 1, 1)
	delete(spec.Devices, lab.Host(1).Name)
	delete(spec.Devices, lab.Host(4).Name)
	b.mustApply(spec.YAML())
	d := b.daemonOf(2, "ceph-osd")
	l := &logReader{laptop: newLaptop(b), daemon: d, osd: "osd." + d.Spec.ID, file: b.hostNamed(d.Spec.Host).
		Path(dataDir + "/agent/daemons/" + d.Namespace + "." + d.Name + "/log/daemon.log")}
	l.reads()
	l.follows()
	l.isKilled()
	l.leavesNothing()
	l.isDisconnected()
}

// logReader reads the log of an OSD on host 2.
type logReader struct {
	*laptop
	daemon api.Daemon
	osd    string
	// file is the log.
	file string
}

// say has the daemon say something.
func (l *logReader) say(text string) {
	l.Helper()
	f, err := os.OpenFile(l.file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		l.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(text); err != nil {
		l.Fatal(err)
	}
}

// key looks like a key of Ceph.
var key = "AQD4" + strings.Repeat("x7Rk", 8) + "Zg=="

func (l *logReader) reads() {
	l.Helper()
	began := time.Now()
	if n := strings.Count(l.run("logs", l.osd, "--since", "1h"), "\n"); n < 20 {
		l.Errorf("from the server: %d lines", n)
	}
	l.say("it said " + key + " here\n")
	out := l.says("kim", 0, "logs", "daemon/"+l.daemon.Name, "--tail", "3")
	if n := strings.Count(out, "\n"); n != 3 || !strings.HasSuffix(out, "it said [redacted] here\n") {
		l.Errorf("from the laptop: %s", out)
	}
	l.Logf("two reads took %s", time.Since(began))
	out = l.says("jo", 3, "logs", l.osd)
	if !strings.Contains(out, "use the kubeconfig of an administrator, or run 'ssh "+l.daemon.Spec.Host+" sudo") {
		l.Errorf("a viewer: %s", out)
	}
	if out = l.says("kim", 3, "logs", "osd.99"); !strings.Contains(out, "daemon osd.99 does not exist") {
		l.Errorf("no such daemon: %s", out)
	}
	l.says("kim", 2, "logs", l.osd, "--tail", "-7")
}

// launch follows the log on the laptop.
func (l *logReader) launch(name string) *hosts.Process {
	l.Helper()
	p := l.host.Launch(l.T, name, l.host.Command(l.Context(), l.Binary, "--kubeconfig",
		"/var/lib/holdfast/kim.kubeconfig", "logs", l.osd, "-f", "--tail", "0"))
	l.await("the second look into the log", func() error {
		for _, a := range l.looks() {
			if a.Spec.Parameters["from"] != "" && a.Status.State == api.ActionRunning {
				return nil
			}
		}
		return fmt.Errorf("there is none")
	})
	return p
}

// looks are the actions that read logs.
func (l *logReader) looks() (all []api.Action) {
	for _, a := range list[api.Action](l.bed, "actions") {
		if action.IsLog(&a) {
			all = append(all, a)
		}
	}
	return all
}

// prints waits until a command has printed a text.
func (l *logReader) prints(p *hosts.Process, text string) string {
	l.Helper()
	var out []byte
	l.await(fmt.Sprintf("the command to print %q", text), func() (err error) {
		if out, err = os.ReadFile(p.Log); err == nil && !strings.Contains(string(out), text) {
			err = fmt.Errorf("it printed %d bytes", len(out))
		}
		return err
	})
	return string(out)
}

const filler = "2026-11-27T03:05:00.000+0000 7f 0 a line of filler\n"

// follows sees each line once, over a rotation, until it is interrupted.
func (l *logReader) follows() {
	l.Helper()
	l.say(strings.Repeat(filler, (int(logfile.DefaultLimits.Size)-50_000)/len(filler)))
	p := l.launch("follower")
	began := time.Now()
	l.say("marker one\n")
	l.prints(p, "marker one\n")
	l.Logf("a new line took %s", time.Since(began))
	const more = 3000
	l.say(strings.Repeat(filler, more) + "marker two\n")
	l.await("the rotation", func() error { _, err := os.Stat(l.file + ".1"); return err })
	l.say("marker three\n")
	out := l.prints(p, "marker three\n")
	one, two := strings.Index(out, "marker one\n"), strings.Index(out, "marker two\n")
	if one < 0 || two < one || strings.Count(out, filler) != more || strings.Count(out, "marker") != 3 {
		l.Errorf("of %d lines it printed %d, markers at %d and %d", more, strings.Count(out, filler), one, two)
	}
	p.Signal(l.T, os.Interrupt)
	<-p.Done()
	if p.Err() != nil || len(l.looks()) > 0 {
		l.Errorf("interrupted it ended with %v, and %d actions are left", p.Err(), len(l.looks()))
	}
}

// isKilled leaves an action, which the leader removes.
func (l *logReader) isKilled() {
	l.Helper()
	p := l.launch("killed")
	p.Kill(l.T)
	if len(l.looks()) != 1 {
		l.Errorf("%d actions are left", len(l.looks()))
	}
	l.await("the leader to remove the action", func() error {
		if left := l.looks(); len(left) > 0 {
			return fmt.Errorf("%s is %s", left[0].Name, left[0].Status.State)
		}
		return nil
	})
}

// leavesNothing: neither events nor the logs of Holdfast have anything of the log, or of the looks
// into it.
func (l *logReader) leavesNothing() {
	l.Helper()
	for _, e := range l.events() {
		if strings.Contains(e.Object, "action/log-") || strings.Contains(e.Message, "marker") {
			l.Errorf("an event: %s %s: %s", e.Code, e.Object, e.Message)
		}
	}
	for n := 1; n <= 3; n++ {
		text, err := os.ReadFile(l.Server(n).Log)
		if err != nil || strings.Contains(string(text), "marker") ||
			strings.Contains(string(text), "a line of filler") {
			l.Errorf("the log of Holdfast on host %d has lines of the daemon's: %v", n, err)
		}
	}
}

// isDisconnected: the agent is named within seconds, also while a log is followed.
func (l *logReader) isDisconnected() {
	l.Helper()
	p := l.launch("disconnected")
	agent, h := l.Server(2), l.Lab.Host(2).Name
	agent.Signal(l.T, syscall.SIGSTOP)
	defer agent.Signal(l.T, syscall.SIGCONT)
	l.await("the agent to be found silent", l.heard(1, h, false))
	began := time.Now()
	out := l.says("kim", 1, "logs", l.osd)
	if !strings.Contains(out, "the agent of host "+h+" is disconnected since") ||
		!strings.Contains(out, "ssh "+h+" sudo holdfast logs "+l.osd) || time.Since(began) > 10*time.Second {
		l.Errorf("after %s: %s", time.Since(began), out)
	}
	if out := l.prints(p, "is disconnected since"); !strings.Contains(out, "ssh "+h) {
		l.Errorf("while it follows: %s", out)
	}
	<-p.Done()
	l.await("the actions to be removed", func() error {
		if left := l.looks(); len(left) > 0 {
			return fmt.Errorf("%s is %s", left[0].Name, left[0].Status.State)
		}
		return nil
	})
	out, err := l.HoldfastOn(2, "logs", l.osd, "--tail", "1")
	if err != nil || strings.TrimSpace(out) != "marker three" {
		l.Errorf("on its host: %v: %s", err, out)
	}
}
