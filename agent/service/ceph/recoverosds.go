package ceph

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// fromOSDs makes a store of the maps that OSDs gave and of the keys in the keyring (Ceph docs, "Recovery using OSDs"). It is made
// beside its place; what was there is kept.
func (r *recovery) fromOSDs(ctx context.Context) error {
	given := filepath.Join(mapsDir(r.Data, r.Token), "store.db")
	if _, err := os.Stat(filepath.Join(given, "CURRENT")); err != nil {
		return fmt.Errorf("no OSD of this host has given its maps: %w", err)
	}
	fresh, monmap := r.store+".new", filepath.Join(r.Data, "monmap")
	if err := atomicfile.RemoveAll(fresh); err != nil {
		return err
	}
	if err := writeMonmap(ctx, r.Local, monmap, []string{r.member()}); err != nil {
		return err
	}
	keyring := filepath.Join(r.Data, fileKeyring)
	if err := r.mon(ctx, fresh, "--mkfs", "--monmap", monmap, "--keyring", keyring); err != nil {
		return err
	}
	if err := atomicfile.RemoveAll(filepath.Join(fresh, "store.db")); err != nil {
		return err
	}
	if err := cloneStore(given, filepath.Join(fresh, "store.db")); err != nil {
		return err
	}
	if err := tool.Run(ctx, r.Data, "ceph-monstore-tool", fresh, "rebuild", "--", "--keyring", keyring, "--monmap", monmap); err != nil {
		return err
	}
	if err := syncTree(fresh); err != nil {
		return err
	}
	if err := r.setBefore(); err != nil {
		return err
	}
	return atomicfile.Rename(fresh, r.store)
}

// member is this mon as a map has it.
func (r *recovery) member() string {
	ip := r.Parameters[paramAddress]
	if strings.Contains(ip, ":") {
		ip = "[" + ip + "]"
	}
	return r.Daemon.Spec.ID + "=[v2:" + ip + ":3300,v1:" + ip + ":6789]"
}

// setBefore keeps the store that is there, if there is one and none was kept. What is there when one was kept already is of an earlier
// try.
func (r *recovery) setBefore() error {
	if _, err := os.Stat(r.before()); err == nil {
		return setAside(r.store)
	}
	if err := atomicfile.Rename(r.store, r.before()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
