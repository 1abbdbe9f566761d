// Package loop makes block devices of files.
package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// control is the device that hands out the numbers of loop devices.
const control = "/dev/loop-control"

// tries bounds how often another process may take the device that was free.
const tries = 20

// Find returns the loop device of a file, or nothing. The kernel's own path of the file is of no
// use: it is that of the container that attached the file, and says nothing when that container has
// ended.
func Find(file string) (device string, err error) {
	backed, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	var st unix.Stat_t
	answers := unix.Stat(file, &st) == nil && st.Size > 0
	for _, path := range backed {
		device := "/dev/" + strings.Split(path, "/")[3]
		info, err := statusOf(device)
		if errors.Is(err, unix.ENOTCONN) && device == noted(file) {
			return device, nil
		}
		if err != nil {
			continue // it was detached meanwhile, or is that of another file that does not answer
		}
		// Of a file that does not answer any more, the name has to do that it was attached with.
		if answers && info.Device == st.Dev && info.Inode == st.Ino || !answers && nameIn(info) == nameFor(file) {
			return device, nil
		}
	}
	return "", nil
}

// Note is the file that names the loop device of a file. The kernel reads the file's attributes before it answers
// LOOP_GET_STATUS64, so it answers nothing after the process that shows the file has ended.
func Note(file string) string { return file + ".loop" }

// noted is the device that a file was given last.
func noted(file string) string {
	text, _ := os.ReadFile(Note(file)) // without it, there was none
	return string(text)
}

func statusOf(device string) (*unix.LoopInfo64, error) {
	d, err := os.Open(device)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return unix.IoctlLoopGetStatus64(int(d.Fd()))
}

// nameIn is the name that a device was given, nameFor the one for a file.
func nameIn(info *unix.LoopInfo64) string {
	return string(bytes.TrimRight(info.File_name[:], "\x00"))
}

func nameFor(file string) string {
	return file[:min(len(file), unix.LO_NAME_SIZE-1)]
}

// Attach makes a device of a file, with direct I/O, or finds the one that an earlier call made.
func Attach(ctx context.Context, file string) (device string, err error) {
	if device, err := Find(file); err != nil || device != "" {
		return device, err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for range tries {
		device, err = attach(f, file)
		if !errors.Is(err, unix.EBUSY) {
			return device, err
		}
		if err := ctx.Err(); err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("attaching %s: others took each loop device that was free", file)
}

// attach attaches to a device that is free now. Another process has taken it meanwhile: EBUSY.
func attach(f *os.File, name string) (string, error) {
	c, err := os.OpenFile(control, os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("while looking for a free loop device: %w", err)
	}
	defer c.Close()
	number, err := unix.IoctlRetInt(int(c.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", fmt.Errorf("while looking for a free loop device: %w", err)
	}
	device := fmt.Sprintf("/dev/loop%d", number)
	d, err := openMade(device, number)
	if err != nil {
		return "", err
	}
	defer d.Close()
	config := unix.LoopConfig{Fd: uint32(f.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_DIRECT_IO}}
	copy(config.Info.File_name[:], nameFor(name))
	if err := atomicfile.Write(Note(name), []byte(device), 0o600); err != nil {
		return "", fmt.Errorf("noting the device of %s: %w", name, err)
	}
	if err := unix.IoctlLoopConfigure(int(d.Fd()), &config); err != nil {
		return "", fmt.Errorf("attaching %s to %s: %w", name, device, err)
	}
	return device, nil
}

// openMade opens a loop device. In a container, nobody else makes the file of one that is new.
func openMade(device string, number int) (*os.File, error) {
	const major = 7
	err := unix.Mknod(device, unix.S_IFBLK|0o660, int(unix.Mkdev(major, uint32(number))))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("making %s: %w", device, err)
	}
	return os.OpenFile(device, os.O_RDWR, 0)
}

// Detach takes the device from a file, and waits until it is free. A file that has none is no error.
func Detach(ctx context.Context, file string) error {
	for {
		device, err := Find(file)
		if err != nil || device == "" {
			return err
		}
		if err := detach(device); err != nil && !errors.Is(err, unix.ENXIO) {
			return fmt.Errorf("detaching %s from %s: %w", file, device, err)
		}
		// The kernel detaches when the last user has closed the device.
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is still in use: %w", device, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func detach(device string) error {
	d, err := os.Open(device)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0)
}

// Resize has a device take the size that its file has now.
func Resize(device string) error {
	d, err := os.Open(device)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.IoctlSetInt(int(d.Fd()), unix.LOOP_SET_CAPACITY, 0); err != nil {
		return fmt.Errorf("growing %s: %w", device, err)
	}
	return nil
}
