package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// OSD makes object storage daemons on their devices.
type OSD struct{}

var (
	_ service.ServiceAgent = OSD{}
	_ service.Starter      = OSD{}
	_ service.Confined     = OSD{}
)

// Needs is all devices: without privileges, a container opens no block device.
func (OSD) Needs(*service.Local) runtime.Needs { return runtime.Needs{Privileged: true, Devices: true} }

// Name is ceph-osd.
func (OSD) Name() string { return "ceph-osd" }

// BeforeStart has the kernel let many of them do their I/O.
func (OSD) BeforeStart(runtime.Process) error {
	allowAIO(fileAIO)
	return nil
}

// Initialize checks that ceph-osd is there, and that the kernel lets many of them do their I/O, also while one is made.
func (OSD) Initialize(context.Context, *service.Host) error {
	allowAIO(fileAIO)
	return tool.Require("ceph-osd", "ceph-osd")
}

// ConfigureLocalService makes the OSD on its device, unless that was done before. The device is looked at first: it must be
// empty, or carry the label of this very OSD. Anything else is left untouched.
func (OSD) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	if err := configureOSD(ctx, l); err != nil {
		return err
	}
	for _, x := range l.Daemon.Spec.Devices {
		if err := errors.Join(gate.Done(l, x.ID), gate.Done(l, x.Of)); err != nil {
			return err
		}
	}
	return nil
}

func configureOSD(ctx context.Context, l *service.Local) error {
	dir := filepath.Join(l.Data, directoryName)
	if err := takeOverOSD(ctx, l); err != nil {
		return err
	}
	if err := setEarlierAside(l, dir); err != nil {
		return err
	}
	l, err := unlock(ctx, l, deviceBlock, !complete(dir) && l.Parameters[api.ParameterForeign] == "")
	if err != nil {
		return err
	}
	device, err := blockDevice(l)
	if err != nil {
		return err
	}
	label, err := ownLabel(l, device)
	if err != nil {
		return err
	}
	var fresh []*api.Device
	if label == nil {
		if complete(dir) || l.Parameters[api.ParameterForeign] != "" {
			return fmt.Errorf("device %s (%s) has no label, and osd.%s was made on it before: it was not touched. Put the right disk back, "+
				"or replace the OSD if its data is lost", device.ID, device.Path, l.Daemon.Spec.ID)
		}
		if err := gate.Free(l, device); err != nil {
			return err
		}
		fresh = inClear(l, deviceBlock, device)
	}
	if err := atomicfile.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("while making the directory of osd.%s: %w", l.Daemon.Spec.ID, err)
	}
	if err := linkDevice(filepath.Join(dir, "block"), stablePath(device)); err != nil {
		return err
	}
	more, err := linkParts(ctx, l, dir, label != nil && label.MkfsDone())
	if err != nil {
		return err
	}
	if class := l.Parameters[paramClass]; class != "" { // ceph-osd reads it when it puts itself into CRUSH
		if err := keepFile(filepath.Join(dir, fileClass), class+"\n", 0o600); err != nil {
			return fmt.Errorf("while writing the device class of osd.%s: %w", l.Daemon.Spec.ID, err)
		}
	}
	if label != nil && label.MkfsDone() && complete(dir) {
		return nil
	}
	if label != nil && label.MkfsDone() {
		if err := restoreFiles(dir, label.OSDUUID); err != nil {
			return fmt.Errorf("while writing the directory of osd.%s: %w", l.Daemon.Spec.ID, err)
		}
	}
	return makeOSD(ctx, l, dir, append(fresh, more...))
}

// keepFile writes a file unless it is there with this content.
func keepFile(path, content string, perm os.FileMode) error {
	if have, err := os.ReadFile(path); err == nil && string(have) == content {
		return nil
	}
	return atomicfile.Write(path, []byte(content), perm)
}

// restoreFiles writes what 'ceph-osd --mkfs' reads in the directory, and does not make anew, when it finds the OSD on the
// device complete: the directory was lost.
func restoreFiles(dir, uuid string) error {
	for name, content := range map[string]string{"type": "bluestore\n", "fsid": uuid + "\n"} {
		if err := atomicfile.Write(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func blockDevice(l *service.Local) (*api.Device, error) {
	device, ok := l.Devices[deviceBlock]
	if !ok || device.Path == "" {
		return nil, fmt.Errorf("the device of osd.%s is not there: plug it in again, or remove it from its StorageNode", l.Daemon.Spec.ID)
	}
	return &device, nil
}

// ownLabel returns the label of this OSD on its device, or nil when the device has none.
func ownLabel(l *service.Local, device *api.Device) (*bluestore.Label, error) {
	want := l.Parameters[paramOSDUUID]
	label, err := bluestore.ReadLabel(device.Path)
	switch {
	case err == nil && strings.EqualFold(label.OSDUUID, want):
		return label, checkOwn(l, device, label)
	case err == nil:
		return nil, fmt.Errorf("device %s holds another OSD (%s of the Ceph cluster %s): it was not touched. Wipe it if its data is not needed",
			device.ID, label.OSDUUID, label.ClusterFSID())
	case !errors.Is(err, bluestore.ErrNoLabel):
		return nil, fmt.Errorf("while looking at device %s: %w", device.ID, err)
	}
	return nil, nil //nolint:nilnil // an empty device has no label, and that is no error
}

// checkOwn looks closer at a device that carries this OSD's label: it may have been made for another cluster, or be in use.
func checkOwn(l *service.Local, device *api.Device, label *bluestore.Label) error {
	if part := label.Part(); part != "" {
		return fmt.Errorf("device %s holds the %s of OSD %s, and not its data: it was not touched", device.ID, part, label.OSDUUID)
	}
	id, named := label.OSDID()
	fsid := label.ClusterFSID()
	if named && strconv.Itoa(int(id)) != l.Daemon.Spec.ID || fsid != "" && fsid != l.Parameters[paramFSID] {
		return fmt.Errorf("device %s holds OSD %d of the Ceph cluster %s, not OSD %s of %s: it was not touched",
			device.ID, id, fsid, l.Daemon.Spec.ID, l.Parameters[paramFSID])
	}
	if len(device.MountPoints) > 0 || len(device.Holders) > 0 {
		return fmt.Errorf("device %s is in use (%s): it was not touched", device.ID, strings.Join(device.Reasons, "; "))
	}
	return nil
}

// stablePath is a name of the device that stays the same over a boot, if it has one that leads to it now. A place in the
// machine (by-path) is no such name: another disk may be put there.
func stablePath(device *api.Device) string {
	for _, l := range device.Links {
		if !strings.HasPrefix(l, "/dev/disk/by-id/") && !strings.HasPrefix(l, "/dev/disk/by-partuuid/") {
			continue
		}
		if real, err := filepath.EvalSymlinks(l); err == nil && real == device.Path {
			return l
		}
	}
	return device.Path
}

// linkDevice makes the link by which ceph-osd finds its device, anew at each start: the device's name may have changed.
func linkDevice(link, path string) error {
	if err := atomicfile.Symlink(path, link); err != nil {
		return fmt.Errorf("while linking %s: %w", path, err)
	}
	return nil
}

// complete says whether the OSD's directory is as ceph-osd leaves it when it has made the OSD.
func complete(dir string) bool {
	for _, name := range []string{"fsid", "whoami", "type", "ready"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// makeOSD has ceph-osd make the OSD. Run again after it was cut off, ceph-osd finishes what it
// began: the uuid is the same. It has no socket, which would stay when it is killed.
//
// The disks that it has parts of are held before its devices pass the gate, which opens them for
// itself alone.
func makeOSD(ctx context.Context, l *service.Local, dir string, fresh []*api.Device) error {
	disks, err := holdDisks(ctx, l)
	if err != nil {
		return err
	}
	defer disks.Done()
	err = gate.Make(ctx, l, fresh, func() error {
		return tool.RunWith(ctx, disks.Files, l.Data, "ceph-osd", "--mkfs", "-i", l.Daemon.Spec.ID, "--osd-uuid", l.Parameters[paramOSDUUID],
			"--osd-data", dir, "--no-mon-config", "--admin-socket=", "-c", filepath.Join(l.Data, fileConf), "--keyring", filepath.Join(l.Data, fileKeyring))
	})
	if err != nil {
		return err
	}
	if err := syncTree(dir); err != nil {
		return fmt.Errorf("while writing the directory of osd.%s to disk: %w", l.Daemon.Spec.ID, err)
	}
	return nil
}

// DestroyLocalService wipes the device if the Daemon's data shall be lost, and only if the label on it is this OSD's own. What it has on other
// disks goes with that, also when the OSD failed and another one takes its number: without its main device it is worth nothing.
func (OSD) DestroyLocalService(ctx context.Context, l *service.Local) error {
	if err := gate.Undo(ctx, l); err != nil {
		return err
	}
	wipes := l.Daemon.Spec.OnRemoval == api.DeletionWipe
	if !wipes && l.Parameters[paramDrain] != drainReplace {
		return nil
	}
	if err := unused(l); err != nil {
		return err
	}
	if wipes {
		if err := wipeBlock(ctx, l); err != nil {
			return err
		}
	}
	return errors.Join(freeParts(ctx, l), freeFound(ctx, l))
}

func wipeBlock(ctx context.Context, l *service.Local) error {
	device, ok := l.Devices[deviceBlock]
	if _, volume := lvm.Parse(device.ID); volume || !ok || device.Path == "" {
		return nil // see freeFound
	}
	if o := ownerOf(l, deviceBlock); encryptedFor(device.Path, o) {
		return wipeEncrypted(ctx, device.Path, o)
	}
	label, err := bluestore.ReadLabel(device.Path)
	if errors.Is(err, bluestore.ErrNoLabel) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while looking at device %s: %w", device.ID, err)
	}
	if !strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]) {
		return nil
	}
	return gate.Wipe(ctx, device.Path, nil)
}

// setEarlierAside moves the directory of an earlier OSD of the same number out of the way. A host
// that was removed while it was off has such a directory when it is back, and Ceph gives the number
// to the next OSD.
func setEarlierAside(l *service.Local, dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "fsid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading whose directory %s is: %w", dir, err)
	}
	was, want := strings.TrimSpace(string(have)), l.Parameters[paramOSDUUID]
	if was == "" || want == "" || strings.EqualFold(was, want) {
		return nil
	}
	aside := dir + ".of-" + filepath.Base(was)
	if err := errors.Join(atomicfile.RemoveAll(aside), atomicfile.Rename(dir, aside)); err != nil {
		return fmt.Errorf("while moving the directory of an earlier osd.%s aside: %w", l.Daemon.Spec.ID, err)
	}
	return nil
}
