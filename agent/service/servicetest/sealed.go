package servicetest

import (
	"context"
	"fmt"
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
		t.Log("not looked at: it mounts file systems, and what is mounted among sealed ones is seen by nobody else; without a disk, another subject shows it")
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
	for _, do := range []func(context.Context, *testing.T, *service.Local) error{s.bring, s.destroy} {
		if _, err := s.live(t, l, &life{}, func() (err error) {
			apart(func() {
				if err = seal(open); err == nil {
					err = do(t.Context(), t, l)
				}
			})
			return err
		}); err != nil {
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

// seal has the thread, and the programs that it starts, write to nothing but these directories, in a mount namespace of its own.
func seal(open []string) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
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
