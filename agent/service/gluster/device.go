package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/heir"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// mountRoot is where the file systems of a daemon's devices are mounted.
func mountRoot(l *service.Local) string { return filepath.Join(l.Data, "mnt") }

// mountPoint is where a device of the daemon is mounted.
func mountPoint(l *service.Local, name string) string { return filepath.Join(mountRoot(l), name) }

// brickRoot is where the bricks of a mounted device lie. It does not exist while the device is not mounted.
func brickRoot(mount string) string { return filepath.Join(mount, "bricks") }

// ConfigureDevices makes the file systems of the daemon's devices and mounts them, and gives up those of devices that the daemon
// had and has no more. Directories are to a daemon what devices are, and are claimed here as well. Each device is looked at first: it must be empty, or carry the file system that was made for this pool.
// Anything else is left untouched.
func (Glusterd) ConfigureDevices(ctx context.Context, l *service.Local) error {
	if err := heir.Inherit(l, l.Parameters[glusterd.ParamPool]); err != nil {
		return err
	}
	table, err := readFstab(filepath.Join(l.Data, glusterd.FileFstab))
	if err != nil {
		return fmt.Errorf("while reading which file systems there are: %w", err)
	}
	errs := []error{gate.Forget(l), giveUp(ctx, l, table), claimDirectories(l)}
	for _, want := range l.Daemon.Spec.Devices {
		dev, ok := l.Devices[want.Name]
		if !ok {
			continue // the agent has said so
		}
		if err := configureDevice(ctx, l, table, want.Name, &dev); err != nil {
			errs = append(errs, about(&dev, err))
		}
	}
	return errors.Join(append(errs, forgetNotes(l, table))...)
}

// DevicesKept says whether the file systems of the daemon's devices are still mounted, and as large
// as the devices: somebody may have unmounted one, or made a device larger.
func (Glusterd) DevicesKept(l *service.Local) bool {
	return !slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool {
		mount := mountPoint(l, d.Name)
		if dev, err := mountedDevice(mount); err != nil || dev == 0 {
			return err == nil
		}
		more, err := grown(mount)
		return err == nil && more
	})
}

// about says what device an error is about.
func about(dev *api.Device, err error) error {
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return err // it says so
	}
	return fmt.Errorf("device %s (%s): %w", dev.ID, dev.Path, err)
}

func configureDevice(ctx context.Context, l *service.Local, table *fstab, name string, dev *api.Device) error {
	line := fstabLine{uuid: uuidOf(l.Parameters[glusterd.ParamPool], dev.ID), dir: mountPoint(l, name)}
	mounted, err := mountedDevice(line.dir)
	if err != nil {
		return err
	}
	if mounted == 0 {
		if err := makeFilesystem(ctx, l, table, line.uuid, dev); err != nil {
			return err
		}
		if err := gate.Done(l, dev.ID); err != nil {
			return err
		}
	}
	if err := table.add(line); err != nil {
		return err
	}
	// It may have been about to be given up, and will have bricks that must stay.
	if err := dropNote(wipeNote(l, line.uuid)); err != nil {
		return err
	}
	if err := mount(ctx, line, dev.Path, mounted); err != nil {
		return err
	}
	return errors.Join(atomicfile.MkdirAll(brickRoot(line.dir), 0o755), grow(ctx, line.dir))
}

// makeFilesystem makes the file system, unless it is there.
func makeFilesystem(ctx context.Context, l *service.Local, table *fstab, uuid string, dev *api.Device) error {
	sb, err := readSuperblock(dev.Path)
	switch {
	case err != nil:
		return err
	case sb != nil && sb.uuid == uuid && !sb.unfinished:
		return nil
	case sb != nil && sb.uuid == uuid:
		// An mkfs that was cut off: nothing was ever stored on it; or a wipe: nothing was to stay.
		return mkfs(ctx, l, uuid, dev)
	case sb == nil && table.has(uuid) && !noted(l, uuid):
		return errors.New("it has no file system, and bricks were made on it before: it was not touched. Put the right disk back, or replace " +
			"the device in the StorageNode if its data is lost")
	}
	return gate.Make(ctx, l, []*api.Device{dev}, func() error { return mkfs(ctx, l, uuid, dev) })
}

func mkfs(ctx context.Context, l *service.Local, uuid string, dev *api.Device) error {
	return tool.Run(ctx, l.Data, "mkfs.xfs", "-q", "-f", "-i", "size=512", "-L", label, "-m", "uuid="+uuid, dev.Path)
}

// mountedDevice is the number of the device that is mounted at a place; 0 when none is.
func mountedDevice(dir string) (uint64, error) {
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil || len(infos) == 0 {
		return 0, err
	}
	last := infos[0]
	return unix.Mkdev(uint32(last.Major), uint32(last.Minor)), nil
}

// mount mounts a device, unless it is mounted.
func mount(ctx context.Context, line fstabLine, path string, mounted uint64) error {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return err
	}
	if mounted == st.Rdev {
		return nil
	}
	if mounted != 0 {
		return fmt.Errorf("the device was pulled, and its old path is still mounted at %s: end the processes that "+
			"use it and unmount it, or restart the host", line.dir)
	}
	if err := atomicfile.MkdirAll(line.dir, 0o755); err != nil {
		return err
	}
	err := tool.Run(ctx, filepath.Dir(line.dir), "mount", "-t", "xfs", "-o", mountOptions, path, line.dir)
	// After a boot the daemon's own command mounts it at the same time.
	if now, merr := mountedDevice(line.dir); merr == nil && now == st.Rdev {
		return nil
	}
	return err
}

// giveUp unmounts what lies on devices that the daemon has no more, and wipes it where the daemon's data goes with it. What is
// in use stays, and is said.
func giveUp(ctx context.Context, l *service.Local, table *fstab) error {
	var errs []error
	for _, line := range slices.Clone(table.lines) {
		if wants(l, line.dir) {
			continue
		}
		if err := release(ctx, l, line); err != nil {
			errs = append(errs, err)
			continue
		}
		errs = append(errs, table.remove(line))
	}
	return errors.Join(errs...)
}

func wants(l *service.Local, dir string) bool {
	return slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool { return mountPoint(l, d.Name) == dir })
}

// release unmounts a file system, wipes it if the daemon's data goes or there is none on it, and removes its mount point. It may be cut off anywhere and done
// again: what is to be wiped is noted while it can still be seen, and what was noted is looked at anew.
func release(ctx context.Context, l *service.Local, line fstabLine) error {
	if err := resumeWipe(ctx, l, line); err != nil {
		return err
	}
	infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(line.dir))
	if err != nil {
		return err
	}
	note := wipeNote(l, line.uuid)
	for _, m := range infos {
		if err := noteWipe(note, m.Source, dataGoes(l) || holdsNothing(line.dir)); err != nil {
			return fmt.Errorf("while recording the device to wipe: %w", err)
		}
		if err := unmount(ctx, l, line.dir, note); err != nil {
			return err
		}
		if err := wipeNoted(ctx, note, line.uuid); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(line.dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return atomicfile.Remove(line.dir)
}

func dataGoes(l *service.Local) bool { return l.Daemon.Spec.OnRemoval == api.DeletionWipe }

// unmount takes the note back where something uses the file system: it may be written to, and whether it is wiped is asked anew.
func unmount(ctx context.Context, l *service.Local, dir, note string) error {
	err := tool.Run(ctx, l.Data, "umount", dir)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("bricks on %s are still in use: %w", dir, err)
	if !busy(dir) {
		return err
	}
	return errors.Join(err, dropNote(note))
}

// holdsNothing says that a mounted file system holds what makeFilesystem and brickRoot made, and no brick or anything else: all bricks
// were moved away, and the device can be used for something new.
func holdsNothing(mount string) bool {
	files, err := os.ReadDir(mount)
	if err != nil || len(files) > 1 || len(files) == 1 && filepath.Join(mount, files[0].Name()) != brickRoot(mount) {
		return false
	}
	bricks, err := os.ReadDir(brickRoot(mount))
	return len(bricks) == 0 && (err == nil || errors.Is(err, os.ErrNotExist))
}

// gone says that a device is broken or not there any more: there is nothing to wipe.
func gone(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EIO)
}
