package ceph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

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
	p, err := before(l)
	if err != nil {
		return err
	}
	used := map[string]string{} // where the Daemon's devices are in clear
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
			if open == "" && p != nil {
				return fmt.Errorf("device %s (%s) is not open, and osd.%s runs: it does not use it any more. Set "+
					"spec.mode of the cluster to Observed, delete its Daemon, and run 'holdfast ceph adopt' again",
					device.ID, path, l.Daemon.Spec.ID)
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
		used[x.Name] = path
	}
	if p == nil || p.Data == "" {
		return nil
	}
	return sameDevices(l, filepath.Join("/proc", strconv.Itoa(int(p.PID)), "root", p.Data), used) // as the process sees it
}

// sameDevices refuses to go on where the OSD has other devices by now, in its directory, than those that it was adopted with, as after 'ceph-volume lvm
// new-db' or 'migrate': on a database that it does not use any more it would go back to what was there then.
func sameDevices(l *service.Local, dir string, used map[string]string) error {
	for _, name := range []string{deviceBlock, deviceDB, deviceWAL} {
		is, err := os.Stat(filepath.Join(dir, name))
		switch {
		case errors.Is(err, os.ErrNotExist) && name != deviceBlock && used[name] == "":
			continue
		case errors.Is(err, os.ErrNotExist) && name != deviceBlock:
			return otherDevice(l, name, "no device", used[name])
		case err != nil:
			return fmt.Errorf("while looking which devices osd.%s has: %w", l.Daemon.Spec.ID, err)
		}
		was, err := os.Stat(used[name])
		if err != nil || deviceNumber(is) != deviceNumber(was) {
			return otherDevice(l, name, "another device", cmp.Or(used[name], "none"))
		}
	}
	return nil
}

func otherDevice(l *service.Local, name, is, was string) error {
	return fmt.Errorf("the %s of osd.%s is %s now, and was %s when it was adopted: set spec.mode of the cluster to "+
		"Observed, delete its Daemon, and run 'holdfast ceph adopt' again", name, l.Daemon.Spec.ID, is, was)
}

// deviceNumber is the number of a block device, or that of the file.
func deviceNumber(f os.FileInfo) [2]uint64 {
	st, ok := f.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return [2]uint64{}
	case f.Mode()&os.ModeDevice != 0:
		return [2]uint64{st.Rdev}
	}
	return [2]uint64{st.Dev, st.Ino}
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
		path, err := luks.Claim(ctx, device.Path, o, l.Keys[x.Name])
		if err != nil {
			return fmt.Errorf("while taking over the encryption of device %s: %w", device.ID, err)
		}
		if err := holdsPart(l, x.Name, &device, path); err != nil {
			return err
		}
	}
	return nil
}
