package ceph

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// unitDir is where systemd has what a person enabled. What is enabled in /run is gone with the boot.
const unitDir = "/etc/systemd/system"

// ownUnit is the unit of Ceph's packages for a daemon.
func ownUnit(l *service.Local) string {
	return l.Daemon.Spec.Type + "@" + l.Daemon.Spec.ID + ".service"
}

// bootUnits are those that may start a daemon when its machine boots: its own, and for an OSD the one by which ceph-volume ('simple' for those that
// ceph-disk has made, 'lvm' for its own) finds its disk, enables its own unit until the next boot, and starts it. all is what runs on the host, and p
// of that what is taken over; nil where that has ended.
func bootUnits(l *service.Local, all []api.ForeignDaemon, p *api.ForeignDaemon) (names []string) {
	if !ofAnother(ownUnit(l), all, p) {
		names = append(names, ownUnit(l))
	}
	if uuid := l.Parameters[paramOSDUUID]; uuid != "" {
		for _, way := range []string{"simple", "lvm"} {
			names = append(names, fmt.Sprintf("ceph-volume@%s-%s-%s.service", way, l.Daemon.Spec.ID, uuid))
		}
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

// enabledUnits are those of the units that are enabled in a directory of systemd's.
func enabledUnits(dir string, names []string) (enabled []string, err error) {
	for _, name := range names {
		for _, kind := range []string{".wants", ".requires"} {
			links, err := filepath.Glob(filepath.Join(dir, "*"+kind, name))
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

// disable has nothing of Ceph's packages start a daemon when its machine boots. Its own unit is stopped already, and that of ceph-volume must not go on.
func disable(ctx context.Context, l *service.Local, units []string) error {
	if len(units) == 0 {
		return nil
	}
	if err := tool.Run(ctx, l.Data, "systemctl", append([]string{"disable", "--now"}, units...)...); err != nil {
		return fmt.Errorf("while keeping what Ceph's packages enabled from starting %s.%s at the next boot: %w", l.Daemon.Spec.Type, l.Daemon.Spec.ID, err)
	}
	return nil
}
