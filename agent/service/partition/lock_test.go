package partition

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestUse: a table is changed while nobody uses the disk, several use it at a time, and who waits with two disks waits for nobody who waits for it.
func TestUse(t *testing.T) {
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	first, err := Use(t.Context(), "/u/b", "/u/a", "/u/b")
	if err != nil {
		t.Fatal(err)
	}
	second, err := Use(t.Context(), "/u/a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := take(soon, "/u/a", everybody); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the table of a disk in use may be changed: %v", err)
	}
	second()
	waits := make(chan func())
	go func() {
		free, err := take(t.Context(), "/u/b", everybody)
		if err != nil {
			t.Error(err)
		}
		waits <- free
	}()
	first()
	(<-waits)()
	if free, err := take(t.Context(), "/u/a", everybody); err != nil {
		t.Error(err)
	} else {
		free()
	}
}

// A program that goes on when its agent has died keeps the table of the disk from being changed by the next one.
func TestHold(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(disk, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := Hold(t.Context(), disk, disk)
	if err != nil || len(h.Files) != 1 {
		t.Fatal(err, h)
	}
	orphan := exec.Command("sleep", "60")
	orphan.ExtraFiles = h.Files
	if err := orphan.Start(); err != nil {
		t.Fatal(err)
	}
	other, err := Hold(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	other.Done()
	h.Done() // as its death does
	soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := change(soon, disk); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the table may be changed while the program runs: %v", err)
	}
	if err := orphan.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = orphan.Wait() // it was killed
	_, free, err := change(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	free()
}

// TestSfdisk_holdsTheDisk: while sfdisk writes a table it has the lock of the disk, also when the agent dies meanwhile.
func TestSfdisk_holdsTheDisk(t *testing.T) {
	bin, disk := t.TempDir(), file(t, mib)
	script := "#!/bin/sh\nreadlink /proc/$$/fd/3 > " + bin + "/held\n"
	if err := os.WriteFile(filepath.Join(bin, "sfdisk"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	d, done, err := change(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	if err := sfdisk(t.Context(), d, "", "--delete", "1"); err != nil {
		t.Fatal(err)
	}
	if held, err := os.ReadFile(filepath.Join(bin, "held")); err != nil || strings.TrimSpace(string(held)) != disk {
		t.Errorf("%q, %v; want %s", held, err, disk)
	}
}
