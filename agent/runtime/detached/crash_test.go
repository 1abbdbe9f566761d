package detached

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/logfile"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
)

// agentRole makes the test binary play an agent that starts daemons in the given directory, and is killed.
const agentRole = "play-agent"

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == agentRole {
		playAgent(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// playAgent starts one daemon after the other, says so, and never ends by itself.
func playAgent(dir string) {
	r, err := New(Config{Dir: filepath.Join(dir, "runtime")})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 0; ; i++ {
		fmt.Println("starting", i)
		if err := r.Start(context.Background(), sleeper(dir, fmt.Sprint("d", i))); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
	}
}

// sleeper notes each process that it ever becomes in a file of its own.
func sleeper(dir, name string) runtime.Process {
	return runtime.Process{
		Name: name, Command: []string{"sh", "-c", `: > "$0/born-` + name + `-$$"; exec sleep 1000`, dir}, Dir: dir,
		LogFile: filepath.Join(dir, "log", name), StopTimeout: 5 * time.Second,
	}
}

// An agent that is killed at any moment leaves no process that the next one does not know, and none is started twice.
func TestKilledAgent(t *testing.T) {
	for i := range 25 {
		dir := t.TempDir()
		killAgentAfter(t, dir, time.Duration(i)*700*time.Microsecond)
		checkOneEach(t, dir)
	}
}

// killAgentAfter kills an agent this long after it began to start daemons.
func killAgentAfter(t *testing.T, dir string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0], agentRole, dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "starting 0\n" {
		t.Fatalf("the agent says %q (%v)", line, err)
	}
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait() // it was killed
}

// checkOneEach has the next agent adopt what is there, start everything, and counts the processes.
func checkOneEach(t *testing.T, dir string) {
	t.Helper()
	r := open(t, dir)
	defer r.Close()
	// The daemon after the last one known may have been on its way: it must be started exactly once as well.
	n := len(r.Names())
	want := map[string]int{}
	for i := range n + 1 {
		p := sleeper(dir, fmt.Sprint("d", i))
		if err := r.Start(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range r.Names() {
		want[name] = awaitBorn(t, r, dir, name)
	}
	for name, pid := range want {
		for _, other := range born(t, dir, name) {
			if other != pid && runtimetest.Alive(other) {
				t.Errorf("%s runs as %d and as %d", name, pid, other)
			}
		}
	}
	for _, name := range r.Names() {
		if err := r.Stop(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	for name := range want {
		for _, pid := range born(t, dir, name) {
			if runtimetest.Alive(pid) {
				t.Errorf("%s is still alive as %d", name, pid)
			}
		}
	}
}

func awaitRunning(t *testing.T, r *Runtime, name string) runtime.State {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		s, _ := r.State(name)
		if s.Running {
			return s
		}
		select {
		case <-r.Changes():
		case <-timeout:
			t.Fatalf("%s does not run: %+v", name, s)
		}
	}
}

// awaitBorn waits until a daemon runs whose program has begun. What is adopted may be a shell that sees its agent's end
// only now; another process then takes its place.
func awaitBorn(t *testing.T, r *Runtime, dir, name string) (pid int) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		s, _ := r.State(name)
		if s.Running && slices.Contains(born(t, dir, name), s.PID) {
			return s.PID
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("%s never began: %+v", name, s)
		}
	}
}

// born lists the processes that a daemon ever was.
func born(t *testing.T, dir, name string) []int {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "born-"+name+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, p := range paths {
		pid, err := strconv.Atoi(p[strings.LastIndexByte(p, '-')+1:])
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// An agent that dies after the process is there and before it is recorded leaves nothing: the program never begins.
func TestKilledBeforeTheRecord(t *testing.T) {
	dir := t.TempDir()
	g, err := spawn(sleeper(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	pid := g.id.PID
	g.gate.Close() // as the kernel does when the agent is killed
	if err := awaitEnd(g.pidfd); err != nil {
		t.Fatal(err)
	}
	reap(pid)
	g.pidfd.Close()
	if b := born(t, dir, "one"); len(b) != 0 {
		t.Errorf("the program began: %v", b)
	}
}

// An agent that dies after the record and before the program may begin leaves a record of a process that ends: the next agent
// starts it anew.
func TestKilledBeforeTheGate(t *testing.T) {
	dir := t.TempDir()
	g, err := spawn(sleeper(dir, "one"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "runtime"), 0o700); err != nil {
		t.Fatal(err)
	}
	rec := record{Process: sleeper(dir, "one"), Identity: g.id, Started: time.Now()}
	if err := rec.write(filepath.Join(dir, "runtime")); err != nil {
		t.Fatal(err)
	}
	g.abandon()
	checkOneEach(t, dir)
}

// A process that got the PID of a daemon is neither taken for it nor signalled.
func TestStrayPID(t *testing.T) {
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*identity){
		"other start time": func(id *identity) { id.StartTicks-- },
		"other boot":       func(id *identity) { id.BootID = "another boot" },
		"no identity":      func(id *identity) { *id = identity{PID: id.PID} },
	} {
		t.Run(name, func(t *testing.T) {
			stranger := exec.Command("sleep", "1000")
			if err := stranger.Start(); err != nil {
				t.Fatal(err)
			}
			id, err := identify(stranger.Process.Pid)
			if err != nil || id.BootID != boot {
				t.Fatal(id, err)
			}
			spoil(&id)
			if _, err := id.open(); !errors.Is(err, errGone) {
				t.Errorf("open: %v, want gone", err)
			}
			dir := t.TempDir()
			if err := os.MkdirAll(filepath.Join(dir, "runtime"), 0o700); err != nil {
				t.Fatal(err)
			}
			rec := record{Process: sleeper(dir, "one"), Identity: id, Started: time.Now()}
			if err := rec.write(filepath.Join(dir, "runtime")); err != nil {
				t.Fatal(err)
			}
			r := open(t, dir)
			defer r.Close()
			if s := awaitRunning(t, r, "one"); s.PID == stranger.Process.Pid {
				t.Error("the stranger was adopted")
			}
			if err := r.Stop(t.Context(), "one"); err != nil {
				t.Fatal(err)
			}
			if !runtimetest.Alive(stranger.Process.Pid) {
				t.Error("the stranger was killed")
			}
			if err := stranger.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = stranger.Wait() // it was killed
		})
	}
}

// A stop that an agent began and did not finish is carried through, and the process is not started again.
func TestStopCutOff(t *testing.T) {
	dir := t.TempDir()
	r := open(t, dir)
	p := sleeper(dir, "one")
	p.Command = []string{"sh", "-c", `trap "" TERM; : > "$0/ready"; while :; do sleep 0.02; done`, dir}
	p.StopTimeout = 100 * time.Millisecond
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	pid := awaitRunning(t, r, "one").PID
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Stop(ctx, "one"); !errors.Is(err, context.Canceled) {
		t.Fatalf("stop: %v", err)
	}
	if err := r.find("one").stop(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("stop: %v", err)
	}
	r.Close()
	r = open(t, dir)
	defer r.Close()
	if err := r.Stop(t.Context(), "one"); err != nil || runtimetest.Alive(pid) {
		t.Errorf("stop: %v, alive %v", err, runtimetest.Alive(pid))
	}
	if recs := r.loadRecords(); len(recs) != 0 {
		t.Errorf("records %+v", recs)
	}
}

func TestDamagedRecord(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "runtime"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(recordPath(filepath.Join(dir, "runtime"), "bad"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := open(t, dir)
	defer r.Close()
	if names := r.Names(); len(names) != 0 {
		t.Errorf("names %v", names)
	}
	if _, err := os.Stat(recordPath(filepath.Join(dir, "runtime"), "bad") + ".damaged"); err != nil {
		t.Error(err)
	}
}

// The log of a running daemon is rotated under it.
func TestRotation(t *testing.T) {
	dir := t.TempDir()
	r, err := New(Config{Dir: filepath.Join(dir, "runtime"), Limits: logfile.Limits{Size: 16 << 10, Keep: 2}, RotateEvery: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := sleeper(dir, "one")
	p.Command = []string{"sh", "-c", "i=0; while :; do i=$((i+1)); echo line $i; done"}
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		if _, err := os.Stat(p.LogFile + ".2"); err == nil {
			break
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatal("the log was not rotated twice")
		}
	}
	if err := r.Stop(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
}

func TestBackOff(t *testing.T) {
	b := DefaultBackOff
	if b.Reset < b.Max {
		t.Errorf("a process that ends after %v each time is never started later, though more often than every %v", b.Reset, b.Max)
	}
	for ends, want := range []time.Duration{0: b.First, 1: b.First, 2: time.Second, 3: 2 * time.Second, 4: 4 * time.Second, 7: 32 * time.Second, 8: time.Minute, 100: time.Minute} {
		if want == 0 {
			continue
		}
		if got := b.Delay(ends); got < want || got > want+want/5+1 {
			t.Errorf("after %d ends: %v, want %v or up to a fifth more", ends, got, want)
		}
	}
}

func TestParseStat(t *testing.T) {
	line := "42 (a) b (c) S 1 42 43 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 12345 1 2 3"
	got, err := parseStat([]byte(line))
	if want := (stat{state: 'S', session: 43, start: 12345}); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []string{"", "42 (x", "42 (x) S 1"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was understood", bad)
		}
	}
}
