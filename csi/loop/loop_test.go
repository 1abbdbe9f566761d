package loop

import (
	"os"
	"path/filepath"
	"testing"
)

// A file has one device, however often it is attached, and none when it was detached.
func TestAttach(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("loop devices need root")
	}
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = Detach(t.Context(), file) })
	var devices []string
	for range 2 {
		device, err := Attach(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		devices = append(devices, device)
	}
	if devices[0] != devices[1] {
		t.Errorf("one file has the devices %v", devices)
	}
	if err := os.Truncate(file, 2<<20); err != nil {
		t.Fatal(err)
	}
	if err := Resize(devices[0]); err != nil {
		t.Error(err)
	}
	text, err := os.ReadFile("/sys/block/" + filepath.Base(devices[0]) + "/size")
	if err != nil || string(text) != "4096\n" {
		t.Errorf("the device has %q sectors, %v", text, err)
	}
	for range 2 {
		if err := Detach(t.Context(), file); err != nil {
			t.Error(err)
		}
	}
	if device, err := Find(file); err != nil || device != "" {
		t.Errorf("the file has %q, %v", device, err)
	}
}

// A file that does not answer any more is known by its name.
func TestFind_deadFile(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("loop devices need root")
	}
	file := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(file, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	device, err := Attach(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got, err := Find(file); err != nil || got != device {
		t.Errorf("got %q, %v, want %s", got, err, device)
	}
	if err := Detach(t.Context(), file); err != nil {
		t.Error(err)
	}
}
