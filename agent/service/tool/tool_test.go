package tool

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// When an agent dies, the program that it started goes on and holds the lock: the next agent waits for its end.
func TestRun_waitsForAnOrphan(t *testing.T) {
	dir := t.TempDir()
	lock, err := lockDirectory(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	orphan := exec.Command("sh", "-c", "sleep 0.3; echo done > orphan")
	orphan.Dir, orphan.ExtraFiles = dir, []*os.File{lock}
	orphan.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	lock.Close()
	if err := Run(t.Context(), dir, "test", "-e", "orphan"); err != nil {
		t.Errorf("it did not wait: %v", err)
	}
	if err := orphan.Wait(); err != nil {
		t.Error(err)
	}
}

// A program inherits the locks of others, too.
func TestRunWith(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "held"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := RunWith(t.Context(), []*os.File{f}, dir, "sh", "-c", `test "$(readlink /proc/$$/fd/4)" = "`+f.Name()+`"`); err != nil {
		t.Error(err)
	}
}

// TestTail: what a program of Ceph failed of is told, though ten thousand lines come after it.
func TestTail(t *testing.T) {
	trace := strings.Repeat(" 12: (BlueStore::_mount()+0x190) [0x55abcf64aa20]\n", 100)
	failed := "2026-11-22T17:35:42.266Z 7f7a 1 bdev open\n" +
		"2026-11-22T17:35:42.266Z 7f7a -1 bdev(0x55 /d/block.wal) open failed: (11) Resource temporarily unavailable\n" +
		"BlueStore.cc: 5500: FAILED ceph_assert(db)\n" + trace +
		"   -3> 2026-11-22T17:35:42.266Z 7f7a -1 bdev(0x55 /d/block.wal) open failed: (11) Resource temporarily unavailable\n" + trace + "the end"
	tests := []struct {
		name, out string
		want      []string
	}{
		{"short", " no such file \n", []string{"no such file"}},
		{"long, without an error of Ceph", trace + "the end", []string{"…", "the end"}},
		{"long, with two", failed, []string{
			"bdev(0x55 /d/block.wal) open failed: (11) Resource temporarily unavailable\nBlueStore.cc: 5500: FAILED ceph_assert(db)\n…", "the end",
		}},
		{"many", strings.Repeat("x -1 "+strings.Repeat("e", 500)+"\n"+trace, 9), []string{"eee\n…"}},
	}
	for _, tt := range tests {
		got := tail([]byte(tt.out))
		for _, want := range tt.want {
			if !strings.Contains(got, want) || len(got) > outputKept+len("…") || strings.Count(got, "open failed") > 1 {
				t.Errorf("%s: %q lacks %q, or is too long (%d)", tt.name, got, want, len(got))
			}
		}
	}
}

// TestWatch: all programs pass the guard, and none does when it has ended.
func TestWatch(t *testing.T) {
	var seen []string
	end := Watch(func(cmd *exec.Cmd, run func() error) error {
		seen = append(seen, cmd.Args[0])
		return run()
	})
	if err := Run(t.Context(), t.TempDir(), "true"); err != nil {
		t.Error(err)
	}
	if out, err := Ask(exec.CommandContext(t.Context(), "echo", "x")); err != nil || string(out) != "x\n" {
		t.Errorf("%q, %v", out, err)
	}
	end()
	if err := Do(exec.CommandContext(t.Context(), "true")); err != nil || strings.Join(seen, " ") != "true echo" {
		t.Errorf("%v passed the guard, %v", seen, err)
	}
}
