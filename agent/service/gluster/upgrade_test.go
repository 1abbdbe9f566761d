package gluster

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
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
