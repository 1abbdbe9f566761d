package ceph

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/gate"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// freeFound gives back what the OSD has on devices that somebody else made for it, as ceph-volume does: its database and its log, and its data on a logical
// volume where that shall be lost. Of a volume that ceph-volume has made the disk is free afterwards, when it was the last one there.
func freeFound(ctx context.Context, l *service.Local) error {
	var errs []error
	for _, x := range l.Daemon.Spec.Devices {
		v, volume := lvm.Parse(x.ID)
		if x.Of != "" || x.Name == deviceBlock && (!volume || l.Daemon.Spec.OnRemoval != api.DeletionWipe) {
			continue
		}
		_, there := l.Devices[x.Name]
		cleared, err := clearFound(ctx, l, x.Name)
		if err == nil && cleared && volume {
			err = v.Remove(ctx, l.Parameters[paramOSDUUID], there, filepath.Join(l.Data, "disks-of-"+x.Name+".json"))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("while freeing the %s of osd.%s: %w", x.Name, l.Daemon.Spec.ID, err))
		}
	}
	return errors.Join(errs...)
}

// clearFound wipes a device with the OSD's own label, and says whether nothing is on it now. A volume that is gone is clear: what is left of its group may
// be to be removed yet.
func clearFound(ctx context.Context, l *service.Local, name string) (bool, error) {
	device, there := l.Devices[name]
	if !there {
		return true, nil
	}
	if o := ownerOf(l, name); encryptedFor(device.Path, o) {
		return true, wipeEncrypted(ctx, device.Path, o)
	}
	label, err := bluestore.ReadLabel(device.Path)
	switch {
	case errors.Is(err, bluestore.ErrNoLabel):
		return device.Taken() == "", nil
	case err != nil:
		return false, err
	case !strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]):
		return false, nil
	}
	return true, gate.Wipe(ctx, device.Path, nil)
}
