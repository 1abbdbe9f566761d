package gluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// TestReal_selfHeal: the self-heal daemon serves all replicated volumes, and its command line names
// the pid file of one. A new glusterd finds it by those of the others.
func TestReal_selfHeal(t *testing.T) {
	n := newNode(t)
	pid := func(volume string) string {
		files, err := filepath.Glob(filepath.Join(n.l.Run, "shd", volume, "*.pid"))
		if err != nil || len(files) != 1 {
			return ""
		}
		text, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(text))
	}
	for _, v := range []string{"v", "w"} {
		n.twice(glusterd.VerbCreate, v, map[string]string{
			glusterd.ParamBricks: n.bricks(v+"a", v+"b", v+"c"), glusterd.ParamReplica: "3", glusterd.ParamForce: "true",
		})
		n.twice(glusterd.VerbStart, v, nil)
	}
	n.await("a self-heal daemon of both volumes", func() error {
		if v, w := pid("v"), pid("w"); v == "" || v != w {
			return fmt.Errorf("process %q for v, %q for w", v, w)
		}
		return nil
	})
	serves := pid("v")
	n.stop(syscall.SIGKILL)
	before(t, n)
	if pid("v") != serves || pid("w") != serves {
		t.Errorf("process %s lives, and its files say %q and %q", serves, pid("v"), pid("w"))
	}
	n.start()
}

// before is what an agent does before it starts glusterd.
func before(t *testing.T, n *node) {
	t.Helper()
	p := runtime.Process{Name: "glusterd", Dir: n.l.Data, RunDir: n.l.Run}
	if err := (Glusterd{}).BeforeStart(p); err != nil {
		t.Fatal(err)
	}
}

// TestBeforeStart: pid files that nobody holds go, wherever glusterd has them; other files stay,
// and the first start has none.
func TestBeforeStart(t *testing.T) {
	t.Parallel()
	data, run := t.TempDir(), t.TempDir()
	gone := []string{
		filepath.Join(run, "vols", "v", "h1-a.pid"), filepath.Join(run, "shd", "v", "v-shd.pid"),
		filepath.Join(data, "state", "vols", "v", "rebalance", "1.pid"),
	}
	kept := []string{filepath.Join(run, "cli.socket"), filepath.Join(data, "bricks", "b", "x.pid")}
	for _, file := range slices.Concat(gone, kept) {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := (Glusterd{}).BeforeStart(runtime.Process{Name: "glusterd", Dir: data, RunDir: run}); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range slices.Concat(gone, kept) {
		if _, err := os.Lstat(file); (err == nil) != slices.Contains(kept, file) {
			t.Errorf("%s: %v", file, err)
		}
	}
	p := runtime.Process{Dir: filepath.Join(data, "missing"), RunDir: filepath.Join(run, "missing")}
	if err := (Glusterd{}).BeforeStart(p); err != nil {
		t.Errorf("the daemon's first start: %v", err)
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
	before(t, n)
	n.start()
	n.await("a brick that serves again", online)
}
