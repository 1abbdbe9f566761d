package hosts

import (
	"fmt"
	"os"

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
