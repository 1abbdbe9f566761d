package ceph

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/luks"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

var (
	_ service.DeviceCloser = OSD{}
	_ service.Keeper       = OSD{}
)

// partNames are what the headers of encrypted devices call the parts of an OSD.
var partNames = map[string]string{deviceBlock: luks.PartData, deviceDB: "db", deviceWAL: "wal"}

// ownerOf is what the header of an encrypted device of the OSD says.
func ownerOf(l *service.Local, name string) luks.Owner {
	p := l.Daemon.Spec.Parameters
	return luks.Owner{Cluster: p[paramFSID], OSD: p[paramOSDUUID], Part: partNames[name]}
}

// encryptedFor says whether a device is encrypted for the OSD.
func encryptedFor(path string, o luks.Owner) bool {
	have, err := luks.OwnerOf(path)
	return err == nil && have == o
}

func encrypted(l *service.Local, name string) bool {
	return slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool { return d.Name == name && d.KeySecret != "" })
}

// unlock opens a device that is to be encrypted, and returns the place with the device as it is in clear. An empty one is encrypted first, if the OSD
// was not made before; anything that is not this OSD's is left untouched. A device that is not to be encrypted stays as it is.
func unlock(ctx context.Context, l *service.Local, name string, fresh bool) (*service.Local, error) {
	device, ok := l.Devices[name]
	if !ok || !encrypted(l, name) {
		return l, nil
	}
	if err := luks.Available(); err != nil {
		return nil, fmt.Errorf("cannot encrypt device %s on this host: %w", device.ID, err)
	}
	o := ownerOf(l, name)
	have, err := luks.OwnerOf(device.Path)
	switch {
	case errors.Is(err, luks.ErrNone) && !fresh:
		return nil, fmt.Errorf("device %s (%s) is not encrypted any more, and osd.%s had its %s on it: it was not touched. Put the right disk back, or remove or replace "+
			"the OSD if its data is lost", device.ID, device.Path, l.Daemon.Spec.ID, partNames[name])
	case errors.Is(err, luks.ErrNone):
		err = encrypt(ctx, l, &device, o, l.Keys[name])
	case err == nil && have == o && fresh:
		err = finish(ctx, device.Path, o, l.Keys[name])
	}
	if refused := (*gate.Refusal)(nil); errors.As(err, &refused) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("while encrypting device %s: %w", device.ID, err)
	}
	path, err := luks.Open(ctx, device.Path, o, l.Keys[name])
	if err != nil {
		return nil, errors.Join(otherKey(ctx, l, name), fmt.Errorf("while opening device %s: %w", device.ID, err))
	}
	clear := *l
	clear.Devices = maps.Clone(l.Devices)
	device.Path, device.Links, device.Holders, device.Reasons, device.Availability = path, nil, nil, nil, api.DeviceAvailable
	clear.Devices[name] = device
	return &clear, nil
}

// encrypt encrypts a device on which there is nothing. The disks that the OSD has parts of are held
// meanwhile: who changes a table has its disk for itself.
func encrypt(ctx context.Context, l *service.Local, device *api.Device, o luks.Owner, key []byte) error {
	disks, err := holdDisks(ctx, l)
	if err != nil {
		return err
	}
	defer disks.Done()
	return gate.Make(ctx, l, []*api.Device{device}, func() error { return luks.Format(ctx, device.Path, o, key) })
}

// otherKey says so where a device of the OSD is encrypted with another key than the OSD has: it has another number, and with it another Secret, than the
// OSD that was made on its disk before and of which this stayed.
func otherKey(ctx context.Context, l *service.Local, name string) error {
	device := l.Devices[name]
	have, err := luks.OwnerOf(device.Path)
	if err != nil || have != ownerOf(l, name) {
		return nil //nolint:nilerr // that is told already
	}
	if fits, err := luks.Fits(ctx, device.Path, l.Keys[name]); err != nil || fits {
		return nil //nolint:nilerr // so is that
	}
	secret := l.Daemon.Spec.Devices[slices.IndexFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool { return d.Name == name })].KeySecret
	return fmt.Errorf("device %s (%s) holds the %s of an earlier OSD (%s), encrypted with that OSD's key: the key "+
		"of osd.%s, in Secret %s, does not open it. Nothing was touched. If the data of the earlier OSD is not "+
		"needed, free the device with 'blkdiscard --force %s' on this host; if it is needed, copy the key from that "+
		"OSD's Secret into this one",
		device.ID, device.Path, partNames[name], have.OSD, l.Daemon.Spec.ID, secret, device.Path)
}

// finish encrypts a device anew where that was cut off before anybody could open it.
func finish(ctx context.Context, path string, o luks.Owner, key []byte) error {
	unfinished, err := luks.Unfinished(ctx, path)
	if err != nil || !unfinished {
		return err
	}
	return luks.Format(ctx, path, o, key)
}

// Kept says whether the OSD's encrypted devices are open, and its logical volumes active. After a boot none may be, and a runtime that remembers the
// process starts it without them.
func (OSD) Kept(l *service.Local) bool {
	if _, err := os.Lstat(filepath.Join(l.Data, directoryName, "block")); errors.Is(err, os.ErrNotExist) {
		return false // the next start makes the link anew
	}
	return !slices.ContainsFunc(l.Daemon.Spec.Devices, func(d api.DaemonDevice) bool {
		v, is := lvm.Parse(d.ID)
		return is && !v.Active() || d.KeySecret != "" && !luks.IsOpen(ownerOf(l, d.Name))
	})
}

// CloseDevices closes the OSD's encrypted devices.
func (OSD) CloseDevices(ctx context.Context, l *service.Local) error {
	var errs []error
	for _, x := range l.Daemon.Spec.Devices {
		if x.KeySecret != "" {
			errs = append(errs, luks.Close(ctx, ownerOf(l, x.Name)))
		}
	}
	return errors.Join(errs...)
}

// wipeEncrypted makes a device that is encrypted for the OSD look empty. What is on it is lost with its keys already.
func wipeEncrypted(ctx context.Context, path string, o luks.Owner) error {
	if err := luks.Close(ctx, o); err != nil {
		return err
	}
	if err := luks.Erase(ctx, path); err != nil {
		return err
	}
	return gate.Wipe(ctx, path, nil)
}
