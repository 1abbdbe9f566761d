package servicetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// testSealed has a daemon configured and destroyed where all file systems are for reading alone but its own places.
func testSealed(t *testing.T, s *Subject) {
	if s.Mounts {
		t.Log("not looked at: it mounts file systems, and what is mounted among sealed ones is seen by no other process; without a disk, another subject shows it")
		return
	}
	l := s.New(t)
	open := []string{l.Data, l.Run, l.Log}
	for _, path := range s.outside(l) {
		open = append(open, filepath.Dir(path))
	}
	if s.StandIns != nil {
		open = append(open, s.StandIns(l)...)
	}
	beside := filepath.Join(t.TempDir(), "beside")
	for _, do := range []func(context.Context, *testing.T, *service.Local) error{s.bring, s.destroy} {
		_, err := s.live(t, l, &life{}, func() (err error) {
			apart(func() {
				if err = sealTight(open, beside); err == nil {
					err = do(t.Context(), t, l)
				}
			})
			return err
		})
		switch {
		case errors.Is(err, errNoNamespace):
			t.Skipf("not looked at: it is not shown here that it writes to its own places alone: %v", err)
		case err != nil:
			t.Errorf("while nothing can be written to but its own places: %v", err)
		}
	}
}

// apart calls f in a goroutine whose thread ends with it. The first thread of a process never does, and what that sees is what the process is said to see.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		apart(f)
		runtime.UnlockOSThread()
	}()
	<-done
}

// errNoNamespace is that of a machine on which there are no mount namespaces for who runs the tests, as in many containers.
var errNoNamespace = errors.New("this machine allows no private mounts")

// sealTight seals, and fails where something beside can be written to still.
func sealTight(open []string, beside string) error {
	if err := seal(open); err != nil {
		return err
	}
	if err := os.WriteFile(beside, nil, 0o600); !errors.Is(err, unix.EROFS) {
		return fmt.Errorf("all but its own places was sealed, and to write to %s gave: %w", beside, cmp.Or(err, errWritten))
	}
	return nil
}

var errWritten = errors.New("no error")

// seal has the thread, and the programs that it starts, write to nothing but these directories, in a mount namespace of its own.
func seal(open []string) error {
	err := unix.Unshare(unix.CLONE_NEWNS)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("%w: %w", errNoNamespace, err)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for _, dir := range open {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
	}
	all, err := mountinfo.GetMounts(nil)
	if err != nil {
		return err
	}
	for _, m := range all {
		kernels := slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool { return m.Mountpoint == dir || strings.HasPrefix(m.Mountpoint, dir+"/") })
		if kernels || slices.Contains(open, m.Mountpoint) {
			continue
		}
		if err := unix.Mount("", m.Mountpoint, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("%s: %w", m.Mountpoint, err)
		}
	}
	return nil
}
