package hosts

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Pull takes the disk away while it may be in use: from now on whoever reads it or writes to it gets an input/output error, the
// inventory does not see it any more, and the kernel lets go of it when its last user closes it. Replace puts another one in its
// place, Attach the same one.
func (d *Disk) Pull(t T) {
	t.Helper()
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	if err := pullLoop(d.loop); err != nil {
		t.Fatalf("hosts: while pulling disk %s of host %s: %v", d.loop, d.host.Name, err)
	}
	d.last, d.loop = d.loop, ""
}

// MoveTo carries a disk that was pulled or detached to another host, whose last disk it becomes: with its content, under another device name and
// another identity, as a loop device is known by its file. The numbers of the disks that follow it on its old host get one lower.
func (d *Disk) MoveTo(t T, to *Host) {
	t.Helper()
	from := d.host
	for _, h := range []*Host{from, to} {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	if err := d.move(from, to); err != nil {
		t.Fatalf("hosts: while moving a disk of host %s to %s: %v", from.Name, to.Name, err)
	}
}

func (d *Disk) move(from, to *Host) error {
	if d.loop != "" {
		return errors.New("it is attached")
	}
	file := filepath.Join(to.Dir(), "disks", from.Name+"-"+filepath.Base(d.file))
	if err := os.Rename(d.file, file); err != nil {
		return err
	}
	from.disks = slices.DeleteFunc(from.disks, func(x *Disk) bool { return x == d })
	d.host, d.file = to, file
	to.disks = append(to.disks, d)
	return errors.Join(from.saveDisks(), to.saveDisks(), d.insert())
}

// pullLoop has a loop device begin at the end of its file, so that nothing is left of it, and end with its last user.
func pullLoop(loop string) error {
	f, err := os.OpenFile(loop, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	file, err := os.Stat(attachedFile(loop))
	if err != nil {
		return err
	}
	info, err := unix.IoctlLoopGetStatus64(int(f.Fd()))
	if err != nil {
		return err
	}
	info.Offset = uint64(file.Size())
	if err := unix.IoctlLoopSetStatus64(int(f.Fd()), info); err != nil {
		return fmt.Errorf("while leaving nothing of it: %w", err)
	}
	return unix.IoctlSetInt(int(f.Fd()), unix.LOOP_CLR_FD, 0)
}
