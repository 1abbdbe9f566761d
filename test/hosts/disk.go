package hosts

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Disk is a virtual disk: a loop device on a sparse file. Other hosts of the lab can see the device, as all share one
// kernel; the device filter of each host's commands leaves it to its own.
type Disk struct {
	host *Host
	file string
	loop string // "/dev/loopN", "" while detached
	last string // the loop device that it had before it was detached
}

// Disk returns a disk of the host; the first one is number 0.
func (h *Host) Disk(number int) *Disk {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.disks[number]
}

// AddDisk puts another empty disk into the host. The size is in bytes.
func (h *Host) AddDisk(t T, size int64) *Disk {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	d, err := h.addDisk(size)
	if err != nil {
		t.Fatalf("hosts: %v", err)
	}
	return d
}

func (h *Host) addDisk(size int64) (*Disk, error) {
	d := &Disk{host: h, file: filepath.Join(h.Dir(), "disks", fmt.Sprintf("disk%d", len(h.disks)))}
	if err := d.create(size); err != nil {
		return nil, err
	}
	h.disks = append(h.disks, d)
	return d, h.saveDisks()
}

func (h *Host) saveDisks() error {
	return h.lab.update(func(s *state) {
		s.Hosts[h.number].Disks = nil
		for _, d := range h.disks {
			s.Hosts[h.number].Disks = append(s.Hosts[h.number].Disks, d.file)
		}
	})
}

// Path is where the kernel shows the disk now, such as /dev/loop3; "" while it is detached.
func (d *Disk) Path() string {
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	return d.loop
}

// ID is the disk's identity, as the inventory tells it.
func (d *Disk) ID() string {
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	return "file-" + d.file
}

// Detach pulls the disk. It must not be open: the kernel lets go of a loop device only when its last user has
// closed it, so a daemon that uses it must have ended, or the host's power be off.
func (d *Disk) Detach(t T) {
	t.Helper()
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	if err := d.remove(); err != nil {
		t.Fatalf("hosts: %v", err)
	}
}

// Attach puts the disk back. It always comes back under another name than it had.
func (d *Disk) Attach(t T) {
	t.Helper()
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	if d.loop != "" {
		t.Fatalf("hosts: disk %s of host %s is attached already", d.file, d.host.Name)
	}
	if err := d.insert(); err != nil {
		t.Fatalf("hosts: %v", err)
	}
}

// Discard makes the disk as new, with the identity that it has: the file below it is empty again. An agent is told as udevd would
// tell it.
func (d *Disk) Discard(ctx context.Context) error {
	path := d.Path()
	out, err := exec.CommandContext(ctx, "blkdiscard", "--force", path).CombinedOutput()
	if err != nil {
		return fmt.Errorf("while emptying the disk %s: %w: %s", path, err, out)
	}
	if err := os.WriteFile(filepath.Join("/sys/class/block", filepath.Base(path), "uevent"), []byte("change"), 0o200); err != nil {
		return fmt.Errorf("while telling of a change of %s: %w", path, err)
	}
	return nil
}

// Replace puts a new empty disk of the same size, with an identity of its own, into the place of this one.
func (d *Disk) Replace(t T) {
	t.Helper()
	d.host.mu.Lock()
	defer d.host.mu.Unlock()
	if err := d.replace(); err != nil {
		t.Fatalf("hosts: %v", err)
	}
}

func (d *Disk) replace() error {
	old := d.file
	info, err := os.Stat(old)
	if err != nil {
		return fmt.Errorf("while replacing a disk: %w", err)
	}
	if err := d.remove(); err != nil {
		return err
	}
	d.file = successor(old)
	if err := d.create(info.Size()); err != nil {
		return err
	}
	if err := d.host.saveDisks(); err != nil {
		return err
	}
	if err := os.Remove(old); err != nil {
		return fmt.Errorf("while throwing the old disk away: %w", err)
	}
	return nil
}

// successor names the disk that follows in the same place: disk0, disk0.2, disk0.3 …
func successor(file string) string {
	place, number, ok := strings.Cut(filepath.Base(file), ".")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		n = 1
	}
	return filepath.Join(filepath.Dir(file), fmt.Sprintf("%s.%d", place, n+1))
}

// create makes the disk's file and attaches it.
func (d *Disk) create(size int64) error {
	f, err := os.OpenFile(d.file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("while making a disk: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(size); err != nil {
		return fmt.Errorf("while making a disk: %w", err)
	}
	return d.insert()
}

func (d *Disk) insert() (err error) {
	d.loop, err = attachLoop(d.file, d.last)
	return err
}

func (d *Disk) remove() error {
	if d.loop == "" {
		return nil
	}
	if err := detachLoop(d.loop, d.file); err != nil {
		return fmt.Errorf("while detaching disk %s of host %s: %w", d.loop, d.host.Name, err)
	}
	d.last, d.loop = d.loop, ""
	return nil
}
