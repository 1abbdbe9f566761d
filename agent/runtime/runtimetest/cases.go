package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// forever ends at once when it is told to. A shell would wait for its child first.
const forever = "exec sleep 1000"

func testStart(t *testing.T, e *env) {
	before := time.Now().Add(-2 * time.Second)
	p := e.shell("one", `echo "ready" > $T/ready; pwd > $T/pwd; echo to the log; echo to the log too >&2; `+forever)
	s := e.start(t, p)
	e.file(t, "ready")
	if !Alive(s.PID) || s.Started.Before(before) || s.Restarts != 0 || s.LastExit != nil || !s.BackOffUntil.IsZero() {
		t.Errorf("state %+v", s)
	}
	if got := strings.TrimSpace(e.file(t, "pwd")); got != e.dir {
		t.Errorf("runs in %s, want %s", got, e.dir)
	}
	e.awaitLog(t, p, "to the log")
	e.awaitLog(t, p, "to the log too")
	if st, err := os.Stat(p.RunDir); err != nil || !st.IsDir() {
		t.Errorf("run directory: %v", err)
	}
	if got := e.rt.Names(); !slices.Equal(got, []string{"one"}) {
		t.Errorf("names %v", got)
	}
}

func testStartTwice(t *testing.T, e *env) {
	s := e.start(t, e.shell("one", forever))
	for _, script := range []string{forever, "exec sleep 2000"} {
		if again := e.start(t, e.shell("one", script)); again.PID != s.PID || again.Restarts != 0 {
			t.Errorf("was %+v, is %+v", s, again)
		}
	}
}

func testStartMany(t *testing.T, e *env) {
	var wg sync.WaitGroup
	for i := range 12 {
		for range 2 {
			wg.Go(func() {
				if err := e.begin(t, e.shell(fmt.Sprint("p", i), "echo $$ >> $T/pids; "+forever)); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	pids := map[int]bool{}
	for i := range 12 {
		s := e.await(t, fmt.Sprint("p", i), "running process", func(s runtime.State) bool { return s.Running })
		pids[s.PID] = true
	}
	if len(pids) != 12 || len(e.rt.Names()) != 12 {
		t.Errorf("%d processes, names %v", len(pids), e.rt.Names())
	}
}

func testStartMissing(t *testing.T, e *env) {
	p := e.shell("one", "")
	p.Command = []string{"/nonexistent/program", "-f"}
	if err := e.begin(t, p); err == nil || !strings.Contains(err.Error(), "/nonexistent/program") {
		t.Errorf("error %v, want one that names the program", err)
	}
	if _, known := e.rt.State("one"); known || len(e.rt.Names()) > 0 {
		t.Error("it is known although it was refused")
	}
}

func testRestartExit(t *testing.T, e *env) {
	e.start(t, e.shell("one", `if [ -e $T/again ]; then `+forever+`; fi; touch $T/again; echo last words; exit 3`))
	s := e.await(t, "one", "restart", func(s runtime.State) bool { return s.Running && s.Restarts == 1 })
	if s.LastExit == nil || s.LastExit.Reason != "exit code 3" || !strings.Contains(s.LastExit.Log, "last words") {
		t.Errorf("last exit %+v", s.LastExit)
	}
}

func testRestartKilled(t *testing.T, e *env) {
	first := e.start(t, e.shell("one", forever))
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s := e.await(t, "one", "restart", func(s runtime.State) bool { return s.Running && s.Restarts == 1 })
	if s.PID == first.PID || s.LastExit == nil || s.LastExit.Reason != "signal: killed" {
		t.Errorf("state %+v, last exit %+v", s, s.LastExit)
	}
}

func testStop(t *testing.T, e *env) {
	s := e.start(t, e.shell("one", `trap 'echo bye > $T/bye; exit 0' TERM; echo ok > $T/ready; while :; do sleep 0.05; done`))
	e.file(t, "ready")
	e.stop(t, "one")
	if Alive(s.PID) {
		t.Error("still alive")
	}
	if e.file(t, "bye") == "" || len(e.rt.Names()) != 0 {
		t.Errorf("names %v", e.rt.Names())
	}
}

func testStopKills(t *testing.T, e *env) {
	p := e.shell("one", `trap '' TERM; echo ok > $T/ready; while :; do sleep 0.05; done`)
	p.StopTimeout = 300 * time.Millisecond
	s := e.start(t, p)
	e.file(t, "ready")
	begin := time.Now()
	e.stop(t, "one")
	if took := time.Since(begin); Alive(s.PID) || took < p.StopTimeout {
		t.Errorf("alive %v after %v", Alive(s.PID), took)
	}
}

func testStopping(t *testing.T, e *env) {
	e.startLate(t)
	e.cutOff(t)
	e.close(t)
	e.open(t)
	e.await(t, "one", "end that was asked for before", func(s runtime.State) bool { return s.Stopping })
	e.write(t, "go")
	e.stop(t, "one")
	if s := e.start(t, e.shell("one", forever)); s.Stopping {
		t.Errorf("started again, it is %+v", s)
	}
}

// startLate starts a process that ends when it was asked to and the file go is there.
func (e *env) startLate(t *testing.T) (pid int) {
	t.Helper()
	s := e.start(t, e.shell("one", `echo $$ >> $T/pids; trap 'until [ -e $T/go ]; do sleep 0.01; done; exit 0' TERM; echo ok > $T/ready; while :; do sleep 0.05; done`))
	e.file(t, "ready")
	if s.Stopping {
		t.Errorf("just started, it is %+v", s)
	}
	return s.PID
}

// cutOff asks the process to end, and does not wait for that.
func (e *env) cutOff(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var stop sync.WaitGroup
	stop.Go(func() {
		if err := e.rt.Stop(ctx, "one"); !errors.Is(err, context.Canceled) {
			t.Errorf("the stop that is cut off: %v", err)
		}
	})
	e.await(t, "one", "end that was asked for", func(s runtime.State) bool { return s.Stopping })
	cancel()
	stop.Wait()
}

func (e *env) write(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(e.dir, name), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func testStopLate(t *testing.T, e *env) {
	first := e.endLate(t)
	e.startOnce(t, first)
}

func testStopLateNext(t *testing.T, e *env) {
	first := e.endLate(t)
	e.close(t)
	e.open(t)
	e.await(t, "one", "end of before", endedLate)
	e.startOnce(t, first)
}

// endLate has a process end after its stop was cut off.
func (e *env) endLate(t *testing.T) (pid int) {
	t.Helper()
	pid = e.startLate(t)
	e.cutOff(t)
	e.write(t, "go")
	e.await(t, "one", "late end", endedLate)
	if Alive(pid) {
		t.Error("it is still alive")
	}
	return pid
}

func endedLate(s runtime.State) bool {
	return s.LastExit != nil && s.Stopping && !s.Running && s.BackOffUntil.IsZero()
}

// startOnce starts the process of which first was the last one, and sees that there were just two ever.
func (e *env) startOnce(t *testing.T, first int) {
	t.Helper()
	p := e.shell("one", `echo $$ >> $T/pids; echo ok > $T/again; `+forever)
	s := e.start(t, p)
	e.file(t, "again")
	if again := e.start(t, p); again.PID != s.PID || again.Stopping || again.Restarts != 0 {
		t.Errorf("was %+v, is %+v", s, again)
	}
	if got, want := e.file(t, "pids"), fmt.Sprintf("%d\n%d\n", first, s.PID); got != want {
		t.Errorf("processes %q, want %q", got, want)
	}
}

func testStartStopping(t *testing.T, e *env) {
	first := e.startLate(t)
	e.cutOff(t)
	var start sync.WaitGroup
	start.Go(func() {
		if err := e.begin(t, e.shell("one", `echo $$ >> $T/pids; echo ok > $T/again; `+forever)); err != nil {
			t.Errorf("start: %v", err)
		}
	})
	e.write(t, "go")
	start.Wait()
	if Alive(first) {
		t.Error("it was started while the old process was alive")
	}
	e.startOnce(t, first)
}

func testStopChildren(t *testing.T, e *env) {
	e.start(t, e.shell("one", `sh -c 'trap "" TERM; echo $$ > '$T'/child; while :; do sleep 0.05; done' & `+forever))
	child := e.pidFrom(t, "child")
	e.stop(t, "one")
	if Alive(child) {
		t.Error("a child of the daemon is still alive")
	}
}

func testCapabilities(t *testing.T, e *env) {
	if keeps := e.rt.Capabilities().KeepsChildren; keeps == e.h.KillsChildren {
		t.Errorf("it says that it keeps children: %v", keeps)
	}
}

// The next agent does not start it again either.
func testOnce(t *testing.T, e *env) {
	if !e.rt.Capabilities().Once {
		t.Skip("this runtime cannot run a process once")
	}
	p := e.shell("one", `echo run >> $T/runs; `+forever)
	p.Once = true
	first := e.start(t, p)
	e.file(t, "runs") // the script has run as far as that
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	ended := func(s runtime.State) bool { return !s.Running && s.LastExit != nil }
	e.await(t, "one", "end", ended)
	e.close(t)
	e.open(t)
	s := e.await(t, "one", "end", ended)
	if !s.BackOffUntil.IsZero() || s.LastExit.Reason != "signal: killed" {
		t.Errorf("state %+v, last exit %+v", s, s.LastExit)
	}
	e.stop(t, "one")
	if _, known := e.rt.State("one"); known {
		t.Error("it is known after it was stopped")
	}
	if runs := e.file(t, "runs"); runs != "run\n" {
		t.Errorf("it ran: %q", runs)
	}
}

// The child is in the session of the daemon, where others are killed with it.
func testKeepChildren(t *testing.T, e *env) {
	p := e.shell("one", `[ -e $T/child ] || sh -c 'trap "" TERM; echo $$ > '$T'/child; while :; do sleep 0.05; done' & `+forever)
	p.KeepChildren = true
	first := e.start(t, p)
	child := e.pidFrom(t, "child")
	defer func() {
		if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
			t.Errorf("the child: %v", err)
		}
	}()
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e.await(t, "one", "restart", func(s runtime.State) bool { return s.Running && s.Restarts == 1 })
	if !Alive(child) {
		t.Error("the child ended when the process was restarted")
	}
	e.stop(t, "one")
	if !Alive(child) {
		t.Error("the child ended with the process")
	}
}

func testStopBackOff(t *testing.T, e *env) {
	e.start(t, e.shell("one", "exit 1"))
	e.await(t, "one", "second end", func(s runtime.State) bool {
		if s.Stopping {
			t.Fatalf("it ended by itself, and is %+v", s)
		}
		return s.Restarts >= 2
	})
	e.stop(t, "one")
}

func testStopUnknown(t *testing.T, e *env) {
	e.stop(t, "never seen")
}

func testStartAfterStop(t *testing.T, e *env) {
	first := e.start(t, e.shell("one", forever))
	e.stop(t, "one")
	if s := e.start(t, e.shell("one", forever)); s.PID == first.PID || s.Restarts != 0 {
		t.Errorf("was %+v, is %+v", first, s)
	}
}

func testAdopt(t *testing.T, e *env) {
	first := e.start(t, e.shell("one", `echo ok > $T/ready; `+forever))
	e.file(t, "ready")
	e.close(t)
	if !Alive(first.PID) {
		t.Fatal("it ended with its agent")
	}
	e.open(t)
	s, known := e.rt.State("one")
	if !known || !s.Running || s.PID != first.PID || !s.Started.Equal(first.Started) {
		t.Errorf("was %+v, is %+v (known %v)", first, s, known)
	}
	if again := e.start(t, e.shell("one", forever)); again.PID != first.PID {
		t.Errorf("started a second time: was %+v, is %+v", first, again)
	}
}

func testAdoptedLives(t *testing.T, e *env) {
	first := e.start(t, e.shell("one", forever))
	e.close(t)
	e.open(t)
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s := e.await(t, "one", "restart", func(s runtime.State) bool { return s.Running && s.Restarts == 1 })
	if s.PID == first.PID || s.LastExit == nil {
		t.Errorf("state %+v", s)
	}
	e.stop(t, "one")
	if Alive(s.PID) {
		t.Error("still alive after stop")
	}
}
