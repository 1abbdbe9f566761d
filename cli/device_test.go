package cli

import (
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	"github.com/holdfast-storage/holdfast/cli/device"
)

// diskOf attaches a new file to a loop device, which alone is seen. It needs root.
func diskOf(t *testing.T, size int64) (path, id string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", file).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	path = strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", path).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	t.Setenv(inventory.FilterVariable, "file-"+file)
	return path, "file-" + file
}

func fillAt(t *testing.T, path string, at int64, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(text), at)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// sumOf is the checksum of all that a disk holds.
func sumOf(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		t.Fatal(err)
	}
	return string(sum.Sum(nil))
}

// TestDeviceFree runs what the reason of the device says.
func TestDeviceFree(t *testing.T) {
	for name, fill := range map[string]func(path string){
		"rows": func(path string) {
			rows := strings.Repeat("row 4711\n", 1<<20)
			for n := range 40 {
				fillAt(t, path, int64(n*len(rows)), rows)
			}
		},
		"a copy of a label": func(path string) { fillAt(t, path, 1<<30, "bluestore block device\n") },
		"a file system after wipefs": func(path string) {
			for _, args := range [][]string{{"mkfs.ext4", "-q", "-F", path}, {"wipefs", "-qa", path}} {
				if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
		},
	} {
		path, _ := diskOf(t, 3<<30)
		fill(path)
		d, err := device.At(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		_, told, ok := strings.Cut(d.Taken(), "'holdfast ")
		told, _, _ = strings.Cut(told, "'")
		if !ok {
			t.Fatalf("%s: no way out is told: %s", name, d.Taken())
		}
		for _, want := range []string{"is available\n", "is already available\n"} {
			if code, out := runHere(t, strings.Fields(told)...); code != exitOK || !strings.HasSuffix(out, want) {
				t.Errorf("%s: %d: %s", name, code, out)
			}
		}
	}
}

// What has a signature or is in use stays as it is, and so does a disk of another id.
func TestDeviceFree_refuses(t *testing.T) {
	path, id := diskOf(t, 100<<20)
	refused := func(name string, status int, want string, args ...string) {
		t.Helper()
		before := sumOf(t, path)
		if code, out := runHere(t, append([]string{"device", "free"}, args...)...); code != status || !strings.Contains(out, want) {
			t.Errorf("%s: %d: %s", name, code, out)
		}
		if sumOf(t, path) != before {
			t.Errorf("%s: the disk was written to", name)
		}
	}
	fillAt(t, path, 50<<20, "row 4711")
	refused("no id", exitUsage, "name the device with --id", path)
	refused("another id", exitRefused, "nothing was changed", path, "--id", "wwn-1")
	refused("no device", exitRefused, "device does not exist", "/dev/nosuch", "--id", id)
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	refused("in use", exitRefused, "is in use", path, "--id", id)
	f.Close()
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", path).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	refused("a file system", exitRefused, "has a file system: ext4", path, "--id", id)
}
