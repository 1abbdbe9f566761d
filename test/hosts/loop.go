package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// maxLoops ends the search for a free loop device.
const maxLoops = 4096

// attachLoop attaches a file to the first free loop device other than the one named, and returns the device.
func attachLoop(file, not string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("while attaching a disk: %w", err)
	}
	defer f.Close()
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("while attaching a disk (does this kernel have loop devices?): %w", err)
	}
	defer control.Close()
	for n := range maxLoops {
		loop := fmt.Sprintf("/dev/loop%d", n)
		if loop == not || attachedFile(loop) != "" {
			continue
		}
		if err := unix.IoctlSetInt(int(control.Fd()), unix.LOOP_CTL_ADD, n); err != nil && !errors.Is(err, unix.EEXIST) {
			return "", fmt.Errorf("while making %s: %w", loop, err)
		}
		err := configureLoop(loop, f)
		if errors.Is(err, unix.EBUSY) { // somebody else was quicker
			continue
		}
		if err != nil {
			return "", fmt.Errorf("while attaching %s to %s: %w", file, loop, err)
		}
		return loop, nil
	}
	return "", errors.New("while attaching a disk: no loop device is free")
}

func configureLoop(loop string, f *os.File) error {
	d, err := os.OpenFile(loop, os.O_RDWR, 0)
	for end := time.Now().Add(2 * time.Second); inTheMaking(err) && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		d, err = os.OpenFile(loop, os.O_RDWR, 0)
	}
	if err != nil {
		return err
	}
	defer d.Close()
	config := unix.LoopConfig{Fd: uint32(f.Fd())}
	// Partitions are shown, as of any disk.
	config.Info.Flags = unix.LO_FLAGS_PARTSCAN
	copy(config.Info.File_name[:], filepath.Base(f.Name()))
	return unix.IoctlLoopConfigure(int(d.Fd()), &config)
}

// inTheMaking says whether a device could not be opened because it is being made: /dev shows it a moment after the kernel knows its number, and it
// can be opened a moment after that. Another lab may have asked for it.
func inTheMaking(err error) bool { return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENXIO) }

// detachLoop detaches the file from the loop device, and waits until the kernel has let go of it: a short look of another
// program may still be under way.
func detachLoop(loop, file string) error {
	d, err := os.OpenFile(loop, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	err = unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0)
	d.Close()
	if err != nil && !errors.Is(err, unix.ENXIO) {
		return err
	}
	for end := time.Now().Add(2 * time.Second); attachedFile(loop) == file; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return fmt.Errorf("it is still in use (open, mounted or held) and goes when its last user closes it: %w", unix.EBUSY)
		}
	}
	return nil
}

// attachedFile is the file behind a loop device, or "".
func attachedFile(loop string) string {
	data, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(loop), "loop/backing_file"))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.TrimSpace(string(data)), " (deleted)")
}

// loops maps the loop devices whose files lie below dir to these files.
func loops(dir string) map[string]string {
	out := map[string]string{}
	names, _ := filepath.Glob("/sys/block/loop*")
	for _, name := range names {
		loop := "/dev/" + filepath.Base(name)
		if file := attachedFile(loop); strings.HasPrefix(file, dir+"/") {
			out[loop] = file
		}
	}
	return out
}

// findLoop returns the loop device of a file, or "".
func findLoop(file string) string {
	for loop, f := range loops(filepath.Dir(file)) {
		if f == file {
			return loop
		}
	}
	return ""
}
