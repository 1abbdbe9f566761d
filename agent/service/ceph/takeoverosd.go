package ceph

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/luks"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// takeOverOSD ends the process of an OSD that somebody else has started. Devices that are encrypted are Holdfast's own from then on, so that they are
// opened, closed and wiped like others.
func takeOverOSD(ctx context.Context, l *service.Local) error {
	return takeOver(ctx, l, func() error { return adoptable(ctx, l) }, func() error { return claimDevices(ctx, l) })
}

// adoptable refuses devices that do not hold the OSD as whole: it would be made anew.
func adoptable(ctx context.Context, l *service.Local) error {
	if _, err := blockDevice(l); err != nil {
		return err
	}
	for _, x := range l.Daemon.Spec.Devices {
		device, ok := l.Devices[x.Name]
		if !ok {
			return fmt.Errorf("the %s of osd.%s is not there", x.Name, l.Daemon.Spec.ID)
		}
		path := device.Path
		if x.KeySecret != "" {
			open, err := luks.Claimable(ctx, path, ownerOf(l, x.Name), l.Keys[x.Name])
			if err != nil {
				return err
			}
			if open == "" { // it has ended before, and is looked at when it is opened
				continue
			}
			path = open
		} else if x.Name == deviceBlock {
			if _, err := ownLabel(l, &device); err != nil {
				return err
			}
		}
		if err := holdsPart(l, x.Name, &device, path); err != nil {
			return err
		}
	}
	return nil
}

// holdsPart checks that what is at a path is the OSD's own part of a name, and that its main part is whole.
func holdsPart(l *service.Local, name string, device *api.Device, path string) error {
	label, err := bluestore.ReadLabel(path)
	if err != nil && !errors.Is(err, bluestore.ErrNoLabel) {
		return err
	}
	main := name == deviceBlock
	if err == nil && strings.EqualFold(label.OSDUUID, l.Parameters[paramOSDUUID]) &&
		(main && label.Part() == "" && label.MkfsDone() || !main && label.Part() == partNames[name]) {
		return nil
	}
	what := ""
	if !main {
		what = "the " + partNames[name] + " of "
	}
	return fmt.Errorf("device %s (%s) does not hold %sosd.%s", device.ID, device.Path, what, l.Daemon.Spec.ID)
}

// claimDevices makes devices that are encrypted Holdfast's own. What is on one that was not open before is seen only now.
func claimDevices(ctx context.Context, l *service.Local) error {
	for _, x := range l.Daemon.Spec.Devices {
		if x.KeySecret == "" {
			continue
		}
		device, o := l.Devices[x.Name], ownerOf(l, x.Name)
		if err := luks.Claim(ctx, device.Path, o); err != nil {
			return fmt.Errorf("while taking over the encryption of device %s: %w", device.ID, err)
		}
		path, err := luks.Open(ctx, device.Path, o, l.Keys[x.Name])
		if err != nil {
			return fmt.Errorf("while opening device %s: %w", device.ID, err)
		}
		if err := holdsPart(l, x.Name, &device, path); err != nil {
			return err
		}
	}
	return nil
}
