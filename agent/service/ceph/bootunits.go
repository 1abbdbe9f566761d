package ceph

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
)

// unitDir is where systemd has what a person enabled. What is enabled in /run is gone with the boot.
const unitDir = "/etc/systemd/system"

// ownUnit is the unit of Ceph's packages for a daemon.
func ownUnit(l *service.Local) string {
	return l.Daemon.Spec.Type + "@" + l.Daemon.Spec.ID + ".service"
}

// enabledUnits are those that start a daemon when its machine boots: its own, and for an OSD the one by which ceph-volume ('simple' for those that
// ceph-disk has made, 'lvm' for its own) finds its disk, enables its own unit until the next boot, and starts it.
func enabledUnits(l *service.Local, dir string) ([]string, error) {
	names := []string{ownUnit(l)}
	if uuid := l.Parameters[paramOSDUUID]; uuid != "" {
		for _, way := range []string{"simple", "lvm"} {
			names = append(names, fmt.Sprintf("ceph-volume@%s-%s-%s.service", way, l.Daemon.Spec.ID, uuid))
		}
	}
	var enabled []string
	for _, name := range names {
		for _, kind := range []string{".wants", ".requires"} {
			links, err := filepath.Glob(filepath.Join(dir, "*"+kind, name))
			if err != nil {
				return nil, fmt.Errorf("while looking for what starts %s.%s at a boot: %w", l.Daemon.Spec.Type, l.Daemon.Spec.ID, err)
			}
			if len(links) > 0 && !slices.Contains(enabled, name) {
				enabled = append(enabled, name)
			}
		}
	}
	return enabled, nil
}

// disable has nothing of Ceph's packages start a daemon when its machine boots. Its own unit is stopped already, and that of ceph-volume must not go on.
func disable(ctx context.Context, l *service.Local, dir string) error {
	units, err := enabledUnits(l, dir)
	if err != nil || len(units) == 0 {
		return err
	}
	if err := tool.Run(ctx, l.Data, "systemctl", append([]string{"disable", "--now"}, units...)...); err != nil {
		return fmt.Errorf("while keeping what Ceph's packages enabled from starting %s.%s at the next boot: %w", l.Daemon.Spec.Type, l.Daemon.Spec.ID, err)
	}
	return nil
}
