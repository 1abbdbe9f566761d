package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// Mon makes the stores of monitors.
type Mon struct{}

var _ service.ServiceAgent = Mon{}

// Name is ceph-mon.
func (Mon) Name() string { return "ceph-mon" }

// Initialize checks that ceph-mon is there.
func (Mon) Initialize(context.Context, *service.Host) error {
	return errors.Join(tool.Require("ceph-mon", "ceph-mon"), tool.Require("monmaptool", "ceph-common"))
}

var _ service.Keeper = Mon{}

// Kept says whether the monitor's store is there. RocksDB cannot be opened without the file CURRENT.
func (Mon) Kept(l *service.Local) bool {
	_, err := os.Stat(filepath.Join(l.Data, directoryName, "store.db", "CURRENT"))
	return !errors.Is(err, os.ErrNotExist)
}

// ConfigureLocalService makes the monitor's store. It is made beside its place and moved there when it is whole: a store in
// its place is never half made. One that was lost is made again to join the others: it gets everything from them, and could not
// form a quorum that knows nothing.
func (m Mon) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	if err := takeOverMon(ctx, l); err != nil {
		return err
	}
	if err := recoverStore(ctx, l); err != nil {
		return err
	}
	if m.Kept(l) {
		return nil
	}
	// What is there stays until it is sure that the store may be made anew: it may be a link to a filesystem that is mounted a moment later.
	monmap := filepath.Join(l.Data, "monmap")
	if err := makeMonmap(ctx, l, monmap); err != nil {
		return err
	}
	store := filepath.Join(l.Data, directoryName)
	if err := setAside(store); err != nil {
		return fmt.Errorf("while setting aside what is left of the store of mon.%s: %w", l.Daemon.Spec.ID, err)
	}
	fresh := store + ".new"
	if err := atomicfile.RemoveAll(fresh); err != nil {
		return fmt.Errorf("while removing a half-made store: %w", err)
	}
	err := tool.Run(ctx, l.Data, "ceph-mon", "--mkfs", "-i", l.Daemon.Spec.ID, "-c", filepath.Join(l.Data, fileConf),
		"--monmap", monmap, "--keyring", filepath.Join(l.Data, fileKeyring), "--mon-data", fresh)
	if err != nil {
		return err
	}
	if err := syncTree(fresh); err != nil {
		return fmt.Errorf("while writing the store of mon.%s to disk: %w", l.Daemon.Spec.ID, err)
	}
	if err := atomicfile.Rename(fresh, store); err != nil {
		return fmt.Errorf("while putting the store of mon.%s in its place: %w", l.Daemon.Spec.ID, err)
	}
	return nil
}

// setAside renames a directory that is not whole, if there is one. What is left of it may still help a person.
func setAside(dir string) error {
	err := atomicfile.Rename(dir, dir+".lost-"+time.Now().UTC().Format("20060102T150405.000Z"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// makeMonmap writes the map that a new monitor finds the others by. Once the cluster has had a quorum the monitor itself is not in
// it: such a store can join others, and never found a cluster. One that was lost is only made again while the others are a quorum:
// together with the rest it could else become one, and the newest of what was agreed on would be forgotten without a word.
func makeMonmap(ctx context.Context, l *service.Local, path string) error {
	members := strings.Fields(l.Parameters[paramMonmap])
	if len(members) == 0 {
		return fmt.Errorf("mon.%s has no parameter %s", l.Daemon.Spec.ID, paramMonmap)
	}
	if l.Parameters[paramFounded] != "" {
		others := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return strings.HasPrefix(m, l.Daemon.Spec.ID+"=") })
		if len(others) < len(members) && l.Parameters[paramRejoin] == "" {
			return fmt.Errorf("the store of mon.%s is lost: the agent makes a new one from the other mons when they "+
				"form a quorum; if they cannot, see 'holdfast ceph recover-mons --help'", l.Daemon.Spec.ID)
		}
		members = others
	}
	return writeMonmap(ctx, l, path, members)
}

// writeMonmap writes a map of these monitors, each as "a=[v2:10.0.0.1:3300,v1:10.0.0.1:6789]".
func writeMonmap(ctx context.Context, l *service.Local, path string, members []string) error {
	args := []string{"--create", "--clobber", "--fsid", l.Parameters[paramFSID]}
	for _, member := range members {
		name, addresses, _ := strings.Cut(member, "=")
		args = append(args, "--addv", name, addresses)
	}
	// Features of releases before 16 would only be spoken until the first election, and be turned on by it.
	args = append(args, "--set-min-mon-release", "16", path)
	return tool.Run(ctx, l.Data, "monmaptool", args...)
}

// DestroyLocalService removes the store of a monitor that was taken over, which lies where it was before, if its data shall be lost. All
// else lies in the daemon's directory. A directory on which a filesystem is mounted stays, empty.
func (Mon) DestroyLocalService(_ context.Context, l *service.Local) error {
	store := l.Parameters[paramStore]
	to, err := os.Readlink(filepath.Join(l.Data, directoryName))
	if l.Daemon.Spec.OnRemoval != api.DeletionWipe || store == "" || err != nil || to != store {
		return nil //nolint:nilerr // without a link there is nothing of it elsewhere
	}
	if err := unused(l); err != nil {
		return err
	}
	if err := atomicfile.RemoveAll(store); err != nil && !emptied(store, err) {
		return fmt.Errorf("while removing the store of mon.%s: %w", l.Daemon.Spec.ID, err)
	}
	return nil
}

// emptied says whether all that was in a directory is gone, and the directory itself is there for the filesystem alone that is mounted on it.
func emptied(dir string, err error) bool {
	if !errors.Is(err, unix.EBUSY) {
		return false
	}
	left, err := os.ReadDir(dir)
	return err == nil && len(left) == 0
}
