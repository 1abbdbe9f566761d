package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// systemd is where a host has its systemd.
type systemd struct {
	units   string // the directory of what a person enabled; what is enabled in /run is gone with the boot
	running string // is there where it runs the machine (sd_booted(3))
}

var hostSystemd = systemd{units: "/etc/systemd/system", running: "/run/systemd/system"}

// ownUnit is the unit of Ceph's packages for a daemon.
func ownUnit(l *service.Local) string {
	return l.Daemon.Spec.Type + "@" + l.Daemon.Spec.ID + ".service"
}

// bootUnits are those that may start a daemon when its machine boots: for an OSD the one by which ceph-volume ('simple' for those that ceph-disk has
// made, 'lvm' for its own) finds its disk, enables its own unit until the next boot, and starts it; and its own. all is what runs on the host, and p
// of that what is taken over; nil where that has ended.
func bootUnits(l *service.Local, all []api.ForeignDaemon, p *api.ForeignDaemon) (names []string) {
	if uuid := l.Parameters[paramOSDUUID]; uuid != "" {
		for _, way := range []string{"simple", "lvm"} {
			names = append(names, fmt.Sprintf("ceph-volume@%s-%s-%s.service", way, l.Daemon.Spec.ID, uuid))
		}
	}
	if own := ownUnit(l); !ofAnother(own, all, p) {
		names = append(names, own)
	}
	return names
}

// ofAnother says whether a unit runs something else than p. The name of a unit of Ceph's packages has no cluster in it: which one it is for stands in
// /etc/default/ceph, and on a host with two of them the daemons with this id of the others were started in another way.
func ofAnother(unit string, all []api.ForeignDaemon, p *api.ForeignDaemon) bool {
	if p != nil && p.Unit == unit {
		return false
	}
	return slices.ContainsFunc(all, func(d api.ForeignDaemon) bool { return d.Unit == unit })
}

// enabled are those of the units that are started at a boot.
func (s systemd) enabled(names []string) (enabled []string, err error) {
	for _, name := range names {
		for _, kind := range []string{".wants", ".requires"} {
			links, err := filepath.Glob(filepath.Join(s.units, "*"+kind, name))
			if err != nil {
				return nil, fmt.Errorf("while looking whether %s is started at a boot: %w", name, err)
			}
			if len(links) > 0 && !slices.Contains(enabled, name) {
				enabled = append(enabled, name)
			}
		}
	}
	return enabled, nil
}

// disable has none of the units started when the machine boots. It needs no systemd that runs, and ends nothing.
func (s systemd) disable(ctx context.Context, l *service.Local, units []string) error {
	if len(units) == 0 {
		return nil
	}
	if err := tool.Run(ctx, l.Data, "systemctl", append([]string{"disable"}, units...)...); err != nil {
		return fmt.Errorf("while keeping what Ceph's packages enabled from starting %s.%s at the next boot: %w", l.Daemon.Spec.Type, l.Daemon.Spec.ID, err)
	}
	return nil
}

// sync puts on stable storage what was disabled: systemctl does not, and a daemon that is marked as taken over is not looked at again. A directory
// that is empty afterwards systemctl removes.
func (s systemd) sync() error {
	dirs := []string{s.units}
	for _, kind := range []string{"*.wants", "*.requires"} {
		found, err := filepath.Glob(filepath.Join(s.units, kind))
		if err != nil {
			return fmt.Errorf("while looking for what is started at a boot: %w", err)
		}
		dirs = append(dirs, found...)
	}
	for _, dir := range dirs {
		if err := atomicfile.SyncDir(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("while putting on stable storage what is not started at a boot any more: %w", err)
		}
	}
	return nil
}

// notLoaded is how 'systemctl stop' ends for a unit that systemd knows nothing of, as where its package was removed.
const notLoaded = 5

// stop ends the units where systemd runs the machine. They may be about to start the daemon again.
func (s systemd) stop(ctx context.Context, l *service.Local, units []string) error {
	if _, err := os.Stat(s.running); err != nil {
		return nil //nolint:nilerr // nothing runs any unit
	}
	for _, unit := range units {
		err := tool.Run(ctx, l.Data, "systemctl", "stop", unit)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notLoaded {
			continue
		}
		if err != nil {
			return fmt.Errorf("while ending the unit %s: %w", unit, err)
		}
	}
	return nil
}
