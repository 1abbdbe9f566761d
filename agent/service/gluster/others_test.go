package gluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// TestBeforeStart: the pid file of a brick that is gone is removed although its number is that of a
// process that lives, and that of a brick that runs is kept.
func TestBeforeStart(t *testing.T) {
	t.Parallel()
	run := t.TempDir()
	dir := filepath.Join(run, "vols", "v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	stale, kept := filepath.Join(dir, "h1-a.pid"), filepath.Join(dir, "h1-b.pid")
	other := filepath.Join(run, "cli.socket")
	for _, file := range []string{stale, kept, other} {
		if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	brick := exec.Command("sh")
	brick.Args = []string{"glusterfsd", "-c", "read x", "--pid-file", kept}
	in, err := brick.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := brick.Start(); err != nil {
		t.Fatal(err)
	}
	p := runtime.Process{Name: "glusterd", RunDir: run}
	if err := (Glusterd{}).BeforeStart(p); err != nil {
		t.Fatal(err)
	}
	there(t, map[string]bool{stale: false, kept: true, other: true})
	in.Close()
	_ = brick.Wait()
	if err := (Glusterd{}).BeforeStart(p); err != nil {
		t.Fatal(err)
	}
	there(t, map[string]bool{stale: false, kept: false, other: true})
	p.RunDir = filepath.Join(run, "missing")
	if err := (Glusterd{}).BeforeStart(p); err != nil {
		t.Errorf("the daemon's first start: %v", err)
	}
}

func there(t *testing.T, want map[string]bool) {
	t.Helper()
	for file, want := range want {
		if _, err := os.Lstat(file); (err == nil) != want {
			t.Errorf("%s is there: %t, want %t", file, err == nil, want)
		}
	}
}

// TestReal_staleNumber: a brick is started whose pid file has the number of another process that
// lives, as in a new pod.
func TestReal_staleNumber(t *testing.T) {
	n := newNode(t)
	n.twice(glusterd.VerbCreate, "v", map[string]string{glusterd.ParamBricks: n.bricks("a"), glusterd.ParamForce: "true"})
	n.twice(glusterd.VerbStart, "v", nil)
	online := func() error {
		if b := n.volume().Bricks[0]; b.State != glusterd.BrickOnline {
			return fmt.Errorf("brick %+v", b)
		}
		return nil
	}
	n.await("a brick that serves", online)
	n.stop(syscall.SIGKILL)
	files, err := filepath.Glob(filepath.Join(n.l.Run, "vols", "v", "*.pid"))
	if err != nil || len(files) != 1 {
		t.Fatalf("pid files %v, %v", files, err)
	}
	if err := (Glusterd{}).EndOthers(t.Context(), n.l); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], fmt.Appendln(nil, os.Getpid()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (Glusterd{}).BeforeStart(runtime.Process{Name: "glusterd", RunDir: n.l.Run}); err != nil {
		t.Fatal(err)
	}
	n.start()
	n.await("a brick that serves again", online)
}
