package detached

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
)

func open(t *testing.T, dir string) *Runtime {
	t.Helper()
	r, err := New(Config{
		Dir: dir + "/runtime", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		BackOff: BackOff{First: time.Millisecond, Min: 50 * time.Millisecond, Max: 200 * time.Millisecond, Reset: time.Minute},
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestConformance(t *testing.T) {
	runtimetest.Run(t, runtimetest.Harness{Open: func(t *testing.T, dir string) runtime.Runtime { return open(t, dir) }})
}

// While it is not known whether a process runs elsewhere, one from the records of the time before a boot is not started; it can be stopped.
func TestHold(t *testing.T) {
	dir := t.TempDir()
	process := func(name string) runtime.Process {
		return runtime.Process{Name: name, Command: []string{"sh", "-c", "echo >> " + filepath.Join(dir, name) + "; exec sleep 60"}, Dir: dir, LogFile: filepath.Join(dir, "log"), StopTimeout: time.Second}
	}
	r := open(t, dir)
	for _, name := range []string{"x", "y"} {
		if err := r.Start(t.Context(), process(name)); err != nil {
			t.Fatal(err)
		}
		await(t, filepath.Join(dir, name), "\n")
	}
	booted(t, r, "x", "y")
	hold := make(chan struct{})
	var released atomic.Bool
	r, err := New(Config{Dir: filepath.Join(dir, "runtime"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Hold: hold, BeforeStart: func(p runtime.Process) {
		if p.Name != "z" && !released.Load() {
			t.Errorf("%s is started although it may run elsewhere", p.Name)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Stop(t.Context(), "y"); err != nil {
		t.Error(err)
	}
	if err := r.Start(t.Context(), process("z")); err != nil {
		t.Fatal(err)
	}
	await(t, filepath.Join(dir, "z"), "\n")
	released.Store(true)
	close(hold)
	await(t, filepath.Join(dir, "x"), "\n\n")
	if got, err := os.ReadFile(filepath.Join(dir, "y")); err != nil || string(got) != "\n" {
		t.Errorf("y wrote %q: %v", got, err)
	}
	if err := errors.Join(r.Stop(t.Context(), "x"), r.Stop(t.Context(), "z")); err != nil {
		t.Error(err)
	}
}

// What has to be before a process starts is there before the first start, and again before one from the records of the time before a boot.
func TestBeforeStart(t *testing.T) {
	dir := t.TempDir()
	allowed, out := filepath.Join(dir, "allowed"), filepath.Join(dir, "out")
	r := open(t, dir)
	p := runtime.Process{Name: "x", Command: []string{"sh", "-c", "cat " + allowed + " >> " + out + "; exec sleep 60"}, Dir: dir, LogFile: filepath.Join(dir, "log"), StopTimeout: time.Second}
	before := func(text string) func(runtime.Process) {
		return func(p runtime.Process) {
			if err := os.WriteFile(allowed, []byte(p.Name+text), 0o600); err != nil {
				t.Error(err)
			}
		}
	}
	r.cfg.BeforeStart = before("1")
	if err := r.Start(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	await(t, out, "x1")
	booted(t, r, "x")
	r, err := New(Config{Dir: filepath.Join(dir, "runtime"), Log: slog.New(slog.NewTextHandler(t.Output(), nil)), BeforeStart: before("2")})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	await(t, out, "x1x2")
	if err := r.Stop(t.Context(), "x"); err != nil {
		t.Error(err)
	}
}

// await waits until a file holds a text.
func await(t *testing.T, file, want string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		text, _ := os.ReadFile(file)
		if string(text) == want {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s has %q, want %q", file, text, want)
		}
	}
}

// booted closes a runtime, ends its process, and has its record be of another boot.
func booted(t *testing.T, r *Runtime, names ...string) {
	t.Helper()
	var all []*process
	for _, name := range names {
		all = append(all, r.find(name))
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		if err := unix.Kill(p.rec.Identity.PID, unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		p.rec.Identity.BootID = "another"
		if err := p.rec.write(r.cfg.Dir); err != nil {
			t.Fatal(err)
		}
	}
}
