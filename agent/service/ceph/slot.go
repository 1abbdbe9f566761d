package ceph

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/partition"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

var _ service.DeviceMaker = OSD{}

// partTypes are the types of the partitions for an OSD's data, database and log, as ceph-disk has made them known.
var partTypes = map[string]string{
	deviceBlock: "cafecafe-9b03-4f30-b4c6-b4b80ceff106",
	deviceDB:    "30cd0809-c2b2-499c-8879-2d6b78529876",
	deviceWAL:   "5ce17fce-4087-4169-b7ff-056cc58473f9",
}

// MakeDevices makes the partitions for the OSD's data, database and log, or has the kernel show those that are there. Those of an OSD that was made
// before are never made: what was on them is lost, and the OSD with it.
func (OSD) MakeDevices(ctx context.Context, l *service.Local) error {
	made, err := madeBefore(ctx, l)
	if err != nil {
		return err
	}
	for _, x := range parts(l) {
		disk := diskOf(l, x)
		if disk == nil {
			return fmt.Errorf("disk %s, which holds the %s of osd.%s, is not on this host: put it back. If it is broken, what is on osd.%s is lost with it: "+
				"remove or replace the OSD", x.Of, x.Name, l.Daemon.Spec.ID, l.Daemon.Spec.ID)
		}
		if err := makePart(ctx, l, x, disk, made); err != nil {
			return err
		}
	}
	return nil
}

// madeBefore says whether the OSD was made already, by its directory or the label on its main device. Where that is a partition which is not to be seen
// yet the directory alone tells: of a database that is made in vain linkParts sees that it is empty.
func madeBefore(ctx context.Context, l *service.Local) (bool, error) {
	whole := complete(filepath.Join(l.Data, directoryName))
	if _, seen := l.Devices[deviceBlock]; !seen && slices.ContainsFunc(parts(l), func(x api.DaemonDevice) bool { return x.Name == deviceBlock }) {
		return whole, nil
	}
	device, err := blockDevice(l)
	if err != nil {
		return false, err
	}
	if encryptedFor(device.Path, ownerOf(l, deviceBlock)) { // else it is not touched yet
		if l, err = unlock(ctx, l, deviceBlock, false); err != nil {
			return false, err
		}
		device, err = blockDevice(l)
		if err != nil {
			return false, err
		}
	}
	label, err := ownLabel(l, device)
	return label != nil && label.MkfsDone() || whole, err
}

func makePart(ctx context.Context, l *service.Local, x api.DaemonDevice, disk *api.Device, made bool) error {
	s := &partition.Spec{Table: tableID(l, x.Of), Type: partTypes[x.Name], UUID: partUUID(x), Name: "ceph " + x.Name, Bytes: x.Bytes}
	if !made {
		return partition.Ensure(ctx, disk.Path, s, func(do func() error) error {
			return gate.Make(ctx, l, []*api.Device{disk}, do)
		})
	}
	found, err := partition.Show(ctx, disk.Path, s)
	if err == nil && !found {
		err = fmt.Errorf("disk %s (%s) does not have the %s of osd.%s, which was made before: nothing was touched. Put the right disk back, or remove "+
			"or replace the OSD if its data is lost", disk.ID, disk.Path, x.Name, l.Daemon.Spec.ID)
	}
	return err
}

// parts are the Daemon's devices that are partitions which Holdfast makes.
func parts(l *service.Local) []api.DaemonDevice {
	return slices.DeleteFunc(slices.Clone(l.Daemon.Spec.Devices), func(d api.DaemonDevice) bool { return d.Of == "" || partTypes[d.Name] == "" })
}

// diskOf is the disk of a partition, or nil where it is not on the host.
func diskOf(l *service.Local, x api.DaemonDevice) *api.Device {
	i := slices.IndexFunc(l.Inventory, func(d api.Device) bool { return d.ID == x.Of && d.Path != "" })
	if i < 0 {
		return nil
	}
	return &l.Inventory[i]
}

// holdDisks keeps the tables of the disks that the OSD has partitions on as they are until it is done.
func holdDisks(ctx context.Context, l *service.Local) (*partition.Held, error) {
	var paths []string
	for _, x := range parts(l) {
		if disk := diskOf(l, x); disk != nil {
			paths = append(paths, disk.Path)
		}
	}
	return partition.Hold(ctx, paths...)
}

func partUUID(x api.DaemonDevice) string { return strings.TrimPrefix(x.ID, "partuuid-") }

// tableID is the identity of the partition table on a disk that is divided for OSDs of the cluster.
func tableID(l *service.Local, disk string) string {
	space, err := uuid.Parse(l.Parameters[paramFSID])
	if err != nil {
		space = uuid.NameSpaceOID
	}
	return uuid.NewSHA1(space, []byte("table/"+disk)).String()
}

// besides are the Daemon's devices other than its main one, whoever made them.
func besides(l *service.Local) []api.DaemonDevice {
	return slices.DeleteFunc(slices.Clone(l.Daemon.Spec.Devices), func(d api.DaemonDevice) bool { return d.Name == deviceBlock || partTypes[d.Name] == "" })
}

// linkParts makes the links by which ceph-osd finds its database and its log. made says that the
// OSD was made before: then each of them must have its label, or the OSD would begin without what
// it has stored. It returns those on which there is nothing yet.
func linkParts(ctx context.Context, l *service.Local, dir string, made bool) (fresh []*api.Device, err error) {
	for _, x := range besides(l) {
		l, err := unlock(ctx, l, x.Name, !made)
		if err != nil {
			return nil, err
		}
		device, ok := l.Devices[x.Name]
		if !ok {
			return nil, fmt.Errorf("the %s of osd.%s is not there", x.Name, l.Daemon.Spec.ID)
		}
		label, err := bluestore.ReadLabel(device.Path)
		switch {
		case err == nil && !strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]):
			return nil, fmt.Errorf("device %s holds the %s of another OSD (%s): it was not touched", device.ID, label.Part(), label.OSDUUID)
		case errors.Is(err, bluestore.ErrNoLabel) && made:
			return nil, fmt.Errorf("device %s (%s) has no label, and osd.%s had its %s there: nothing was touched. What is on the OSD is lost: remove or replace it",
				device.ID, device.Path, l.Daemon.Spec.ID, x.Name)
		case errors.Is(err, bluestore.ErrNoLabel):
			fresh = append(fresh, inClear(l, x.Name, &device)...)
		case err != nil:
			return nil, fmt.Errorf("while looking at device %s: %w", device.ID, err)
		}
		if err := linkDevice(filepath.Join(dir, x.Name), stablePath(&device)); err != nil {
			return nil, err
		}
	}
	return fresh, nil
}

// inClear is a device on which something is to be made, unless it is an encrypted one that is open:
// what it lies on has passed the gate when it was encrypted, and what it reads as is nothing that
// anybody wrote.
func inClear(l *service.Local, name string, device *api.Device) []*api.Device {
	if encrypted(l, name) {
		return nil
	}
	return []*api.Device{device}
}

// freeParts gives the partitions of the OSD back, and the disk with the last of them. That of its data goes only where that shall be lost.
func freeParts(ctx context.Context, l *service.Local) error {
	for _, x := range parts(l) {
		disk := diskOf(l, x)
		if disk == nil || x.Name == deviceBlock && l.Daemon.Spec.OnRemoval != api.DeletionWipe {
			continue // it is broken, or was taken along, or stays
		}
		if err := partition.Remove(ctx, disk.Path, tableID(l, x.Of), partUUID(x), func(path string) error { return clearPart(ctx, l, x, path) }); err != nil {
			return fmt.Errorf("while freeing the %s of osd.%s on disk %s: %w", x.Name, l.Daemon.Spec.ID, disk.ID, err)
		}
	}
	return nil
}

// clearPart wipes a partition that is this OSD's own.
func clearPart(ctx context.Context, l *service.Local, x api.DaemonDevice, path string) error {
	if o := ownerOf(l, x.Name); encryptedFor(path, o) {
		return wipeEncrypted(ctx, path, o)
	}
	label, err := bluestore.ReadLabel(path)
	if err == nil && !strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]) {
		return fmt.Errorf("%s holds a part of another OSD (%s): it was not touched", path, label.OSDUUID)
	}
	return gate.Wipe(ctx, path, nil)
}
