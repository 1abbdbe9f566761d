package ceph

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/lvm"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// freeVolumes gives back what the OSD has on logical volumes that somebody else made for it, as ceph-volume does, and their disks with the last of them.
// That of its data goes only where that shall be lost.
func freeVolumes(ctx context.Context, l *service.Local) error {
	for _, x := range l.Daemon.Spec.Devices {
		v, is := lvm.Parse(x.ID)
		if !is || x.Of != "" || x.Name == deviceBlock && l.Daemon.Spec.OnRemoval != api.DeletionWipe {
			continue
		}
		cleared, err := clearVolume(ctx, l, x.Name)
		if err == nil && cleared {
			err = v.Remove(ctx, l.Parameters[paramOSDUUID], filepath.Join(l.Data, "disks-of-"+x.Name+".json"))
		}
		if err != nil {
			return fmt.Errorf("while freeing the %s of osd.%s: %w", x.Name, l.Daemon.Spec.ID, err)
		}
	}
	return nil
}

// clearVolume wipes a volume with the OSD's own label, and says whether nothing is on it now. One that is gone is clear: what is left of its group may be
// to be removed yet.
func clearVolume(ctx context.Context, l *service.Local, name string) (bool, error) {
	device, there := l.Devices[name]
	if !there {
		return true, nil
	}
	label, err := bluestore.ReadLabel(device.Path)
	switch {
	case errors.Is(err, bluestore.ErrNoLabel):
		return device.Availability == api.DeviceAvailable, nil
	case err != nil:
		return false, err
	case !strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]):
		return false, nil
	}
	return true, wipe(ctx, device.Path, label.OSDUUID)
}
