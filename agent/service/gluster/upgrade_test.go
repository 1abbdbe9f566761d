package gluster

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// A process runs an old program from the moment in which the file of its name is another one.
func TestReplaced(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "sleep")
	install := func() {
		t.Helper()
		if err := os.WriteFile(file+".new", text, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	install()
	cmd := exec.CommandContext(t.Context(), file, "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it is killed
	defer func() { _ = cmd.Process.Kill() }()
	if replaced(cmd.Process.Pid) {
		t.Error("it runs what is installed")
	}
	install()
	if !replaced(cmd.Process.Pid) {
		t.Error("it runs what was installed before")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if replaced(cmd.Process.Pid) {
		t.Error("nothing was put in the place of what was removed")
	}
	if replaced(0) {
		t.Error("there is no such process")
	}
}

// A program in a container was replaced when the container's file of its name is another one; what
// has that name on the host is no matter.
func TestReplaced_container(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("it needs root, to give a process a root directory of its own")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	root, host := t.TempDir(), filepath.Join(t.TempDir(), "sleep")
	inside := filepath.Join(root, host)
	install := func(file string) {
		t.Helper()
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file+".new", text, 0o700),
			os.Rename(file+".new", file))
		if err != nil {
			t.Fatal(err)
		}
	}
	install(host)
	install(inside)
	for _, dir := range []string{"usr", "lib", "lib64", "old"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-ec", `mount --rbind "$0" "$0"; cd "$0"
		for d in usr lib lib64; do mount --bind /$d $d; done
		pivot_root . old; cd /; exec "$1" 60`, root, host)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: unix.CLONE_NEWNS}
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }() // it is killed
	defer func() { _ = cmd.Process.Kill() }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if name, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", cmd.Process.Pid)); err == nil && name == host {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the process was not started in its container")
		}
	}
	if replaced(cmd.Process.Pid) {
		t.Error("it runs what is installed in its container")
	}
	install(host)
	if replaced(cmd.Process.Pid) {
		t.Error("something was installed on the host, which is no matter")
	}
	install(inside)
	if !replaced(cmd.Process.Pid) {
		t.Error("it runs what was installed in its container before")
	}
}

// A glusterd in a pod is out of date by the word of the runtime, which knows of another image.
func TestOutdated_image(t *testing.T) {
	l := &service.Local{Data: t.TempDir(), Run: t.TempDir()}
	for _, want := range []bool{false, true} {
		l.Outdated = want
		if got, err := outdated(l); err != nil || got != want {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
}

func TestDropOption(t *testing.T) {
	state := t.TempDir()
	info := filepath.Join(state, "vols", "v", "info")
	if err := os.MkdirAll(filepath.Dir(info), 0o700); err != nil {
		t.Fatal(err)
	}
	const before, after = "type=2\nnfs.disable=on\nversion=3\n", "type=2\nversion=3\n"
	if err := os.WriteFile(info, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct{ option, want string }{{"", before}, {"nfs.disable", after}, {"nfs.disable", after}} {
		if err := dropOption(state, step.option); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(info); err != nil || string(got) != step.want {
			t.Errorf("without %q: %q, %v", step.option, got, err)
		}
	}
	if err := dropOption(filepath.Join(state, "none"), "nfs.disable"); err != nil {
		t.Errorf("no volumes: %v", err)
	}
}
