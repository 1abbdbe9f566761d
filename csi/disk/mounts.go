package disk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"k8s.io/mount-utils"
	utilexec "k8s.io/utils/exec"
)

func executor() utilexec.Interface { return utilexec.New() }

// IsMounted says whether something is mounted at a path, also what does not answer any more.
func IsMounted(path string) (bool, error) {
	all, err := mount.ListProcMounts("/proc/self/mounts")
	if err != nil {
		return false, fmt.Errorf("reading the mounts: %w", err)
	}
	for _, m := range all {
		if m.Path == path {
			return true, nil
		}
	}
	return false, nil
}

// Bind shows at target what is mounted at source.
func Bind(source, target string, options []string) error {
	mounted, err := IsMounted(target)
	if err != nil || mounted {
		return err
	}
	if err := os.MkdirAll(target, 0o750); err != nil {
		return err
	}
	if err := mount.New("").Mount(source, target, "", append([]string{"bind"}, options...)); err != nil {
		return fmt.Errorf("showing %s at %s: %w", source, target, err)
	}
	return nil
}

// Unmount unmounts all that is mounted at a path. Nothing mounted is no error, and neither is a
// path that is not there.
func Unmount(path string) error {
	for {
		mounted, err := IsMounted(path)
		if err != nil || !mounted {
			return err
		}
		if err := unix.Unmount(path, unix.UMOUNT_NOFOLLOW); err != nil && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("unmounting %s: %w", path, err)
		}
	}
}

// Remove unmounts what is at a path, and removes the path.
func Remove(path string) error {
	if err := Unmount(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}
