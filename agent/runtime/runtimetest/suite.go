// Package runtimetest holds the suite that every runtime.Runtime passes, with real processes.
package runtimetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/runtime"
)

// Harness is what the suite needs of an implementation.
type Harness struct {
	// Open returns a runtime over the given directory. It is called again with the same directory, after Close, as the
	// next agent would.
	Open func(t *testing.T, dir string) runtime.Runtime
	// Own, when not nil, fills in what the implementation needs of a process beyond what the suite
	// says of it, such as whose it is. It is called before each start.
	Own func(t *testing.T, p *runtime.Process)
	// Log, when not nil, is what a process wrote to standard output and error, for an
	// implementation that keeps it elsewhere than in LogFile.
	Log func(t *testing.T, p runtime.Process) string
	// KillsChildren is set for an implementation that cannot keep Process.KeepChildren. Its
	// Capabilities say so, too.
	KillsChildren bool
}

// deadline bounds every wait of the suite.
const deadline = time.Minute

// Run runs the suite. Restarts must come within seconds.
func Run(t *testing.T, h Harness) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, e *env)
	}{
		{"a started process runs and writes its log", testStart},
		{"starting again changes nothing", testStartTwice},
		{"many are started at once", testStartMany},
		{"a program that does not exist is refused", testStartMissing},
		{"a process that exits is started again", testRestartExit},
		{"a process that is killed is started again", testRestartKilled},
		{"stop ends it gently and forgets it", testStop},
		{"stop kills what does not end", testStopKills},
		{"a process that is being stopped is known for one, also by the next agent", testStopping},
		{"a process that ends after its stop was cut off is started when that is asked for, once", testStopLate},
		{"the same, by the next agent", testStopLateNext},
		{"a start waits for a stop that was cut off, and starts once", testStartStopping},
		{"stop leaves no process of the daemon behind", testStopChildren},
		{"what the runtime cannot do it says", testCapabilities},
		{"stop of a process that waits to be started again", testStopBackOff},
		{"stop of the unknown is no error", testStopUnknown},
		{"a stopped process can be started again", testStartAfterStop},
		{"a process outlives its agent and is adopted", testAdopt},
		{"an adopted process is restarted and stopped", testAdoptedLives},
		{"a process that runs once is not started again", testOnce},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, newEnv(t, h)) })
	}
	if !h.KillsChildren {
		t.Run("what it started goes on where that is wanted", func(t *testing.T) { testKeepChildren(t, newEnv(t, h)) })
	}
}

type env struct {
	h    Harness
	dir  string
	rt   runtime.Runtime
	tell context.CancelFunc
	wg   sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{}
}

func newEnv(t *testing.T, h Harness) *env {
	e := &env{h: h, dir: t.TempDir(), changed: make(chan struct{})}
	e.open(t)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		for _, name := range e.rt.Names() {
			if err := e.rt.Stop(ctx, name); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
		e.close(t)
	})
	return e
}

func (e *env) open(t *testing.T) {
	e.rt = e.h.Open(t, e.dir)
	var ctx context.Context
	ctx, e.tell = context.WithCancel(context.Background())
	e.wg.Go(func() { e.listen(ctx, e.rt.Changes()) })
}

// listen makes await wake up at each change that the runtime tells, and never otherwise.
func (e *env) listen(ctx context.Context, changes <-chan string) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-changes:
			e.mu.Lock()
			close(e.changed)
			e.changed = make(chan struct{})
			e.mu.Unlock()
		}
	}
}

func (e *env) close(t *testing.T) {
	t.Helper()
	if err := e.rt.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	e.tell()
	e.wg.Wait()
}

// await waits until the state is as wanted, and fails when the runtime tells of no change that brings it there.
func (e *env) await(t *testing.T, name string, what string, ok func(runtime.State) bool) runtime.State {
	t.Helper()
	timeout := time.After(deadline)
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		s, known := e.rt.State(name)
		if known && ok(s) {
			return s
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%s: no %s; state %+v, known %v, last exit %+v", name, what, s, known, s.LastExit)
		}
	}
}

// shell is a process that runs a script. $T is the test's own directory.
func (e *env) shell(name, script string) runtime.Process {
	return runtime.Process{
		Name: name, Command: []string{"sh", "-c", "T=" + e.dir + "\n" + script}, Dir: e.dir,
		RunDir: filepath.Join(e.dir, "run", name), LogFile: filepath.Join(e.dir, "log", name+".log"),
		StopTimeout: 10 * time.Second,
		Of:          runtime.Owner{Namespace: "default", Name: name, Type: "shell", ID: name, Cluster: "suite"},
	}
}

// begin starts a process, without waiting for more than Start itself does.
func (e *env) begin(t *testing.T, p runtime.Process) error {
	if e.h.Own != nil {
		e.h.Own(t, &p)
	}
	return e.rt.Start(t.Context(), p)
}

// awaitLog waits until a process has written a line.
func (e *env) awaitLog(t *testing.T, p runtime.Process, line string) {
	t.Helper()
	read := e.h.Log
	if read == nil {
		read = func(t *testing.T, p runtime.Process) string {
			return e.file(t, filepath.Join("log", filepath.Base(p.LogFile)))
		}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(deadline)
	for {
		text := read(t, p)
		if strings.Contains(text, line+"\n") {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("the log has no line %q: %q", line, text)
		}
	}
}

func (e *env) start(t *testing.T, p runtime.Process) runtime.State {
	t.Helper()
	if err := e.begin(t, p); err != nil {
		t.Fatalf("start: %v", err)
	}
	return e.await(t, p.Name, "running process", func(s runtime.State) bool { return s.Running })
}

func (e *env) stop(t *testing.T, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	if err := e.rt.Stop(ctx, name); err != nil {
		t.Fatalf("stop: %v", err)
	}
	if _, known := e.rt.State(name); known {
		t.Errorf("%s is still known after stop", name)
	}
}

// file waits until a process has written a file, and returns it.
func (e *env) file(t *testing.T, name string) string {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(deadline)
	for {
		b, err := os.ReadFile(filepath.Join(e.dir, name))
		if err == nil && len(b) > 0 {
			return string(b)
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%s was not written: %v", name, err)
		}
	}
}

func (e *env) pidFrom(t *testing.T, name string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.TrimSpace(e.file(t, name)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// Alive says whether a process runs; a zombie does not.
func Alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}
