package tool

import (
	"os"
	"os/exec"
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
