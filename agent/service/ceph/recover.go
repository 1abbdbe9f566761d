package ceph

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/monstore"
)

// fileRecovered holds the last order that was carried out on a mon's store.
const fileRecovered = "recovered"

// recovery is one order to make a mon's store of what is left.
type recovery struct {
	*service.Local
	monstore.Order
	store string
}

// before is where the store is kept as it was.
func (r *recovery) before() string { return r.store + ".before-" + r.Token }

// mapsDir is where OSDs of the host put the maps that they have, as the store of a mon.
func mapsDir(monData, token string) string { return filepath.Join(monData, "maps-"+token) }

// recoverStore carries out the order in a mon's Daemon, unless that was done. It may be cut off anywhere and done again.
func recoverStore(ctx context.Context, l *service.Local) error {
	text := l.Parameters[monstore.ParamRecover]
	if text == "" {
		return nil
	}
	order, err := monstore.ParseOrder(text)
	if err != nil {
		return err
	}
	done := filepath.Join(l.Data, fileRecovered)
	if have, err := os.ReadFile(done); err == nil && string(have) == order.String() {
		return nil
	}
	r := &recovery{l, order, filepath.Join(l.Data, directoryName)}
	if err := map[monstore.Way]func(context.Context) error{
		monstore.Alone: r.alone, monstore.FromOSDs: r.fromOSDs, monstore.Back: r.back,
	}[order.Way](ctx); err != nil {
		return fmt.Errorf("while recovering the store of mon.%s: %w", l.Daemon.Spec.ID, err)
	}
	return atomicfile.Write(done, []byte(order.String()), 0o600)
}

// alone takes the other mons out of the map in the mon's own store, of which a copy is kept (Ceph docs, "Recovering a Monitor's
// Broken monmap").
func (r *recovery) alone(ctx context.Context) error {
	if _, err := os.Stat(r.before()); errors.Is(err, os.ErrNotExist) {
		if err := cloneStore(r.store, r.before()); err != nil {
			return fmt.Errorf("while copying it: %w", err)
		}
	}
	monmap := filepath.Join(r.Data, "monmap.alone")
	if err := r.mon(ctx, r.store, "--extract-monmap", monmap); err != nil {
		return err
	}
	if err := r.onlyThis(ctx, monmap); err != nil {
		return err
	}
	if err := r.mon(ctx, r.store, "--inject-monmap", monmap); err != nil {
		return err
	}
	return syncTree(r.store)
}

// mon runs ceph-mon on a store without serving. A disk that is rather full matters when it serves.
func (r *recovery) mon(ctx context.Context, store string, args ...string) error {
	id := r.Daemon.Spec.ID
	all := append([]string{"-i", id, "-c", filepath.Join(r.Data, fileConf), "--mon-data", store, "--mon-data-avail-crit", "0"}, args...)
	return tool.Run(ctx, r.Data, "ceph-mon", all...)
}

// onlyThis takes all mons but this one out of a map.
func (r *recovery) onlyThis(ctx context.Context, monmap string) error {
	out, err := tool.Output(ctx, r.Data, "monmaptool", "--print", monmap)
	if err != nil {
		return err
	}
	var args []string
	here := false
	for line := range strings.Lines(string(out)) {
		// "0: [v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0] mon.a"
		_, name, ok := strings.Cut(strings.TrimSpace(line), "] mon.")
		switch {
		case !ok:
		case name == r.Daemon.Spec.ID:
			here = true
		default:
			args = append(args, "--rm", name)
		}
	}
	if !here {
		return fmt.Errorf("mon.%s is not in its own map", r.Daemon.Spec.ID)
	}
	if len(args) == 0 {
		return nil
	}
	return tool.Run(ctx, r.Data, "monmaptool", append(args, monmap)...)
}

// back puts the store back that was there before, if one was kept.
func (r *recovery) back(context.Context) error {
	if _, err := os.Stat(r.before()); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := setAside(r.store); err != nil {
		return err
	}
	return atomicfile.Rename(r.before(), r.store)
}

// cloneStore copies a directory with a RocksDB database that nobody has open. Its tables (*.sst) are never changed once they are
// written, so they are linked, where both are on one filesystem: the store of a mon that was taken over may be a link to another one.
func cloneStore(from, to string) error {
	fresh := to + ".new"
	if err := atomicfile.RemoveAll(fresh); err != nil {
		return err
	}
	from, err := filepath.EvalSymlinks(from)
	if err != nil {
		return err
	}
	err = filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		target := filepath.Join(fresh, relative)
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(target, 0o700)
		case filepath.Ext(path) == ".sst" && os.Link(path, target) == nil:
			return nil
		case entry.Type().IsRegular():
			return copyFile(path, target)
		}
		return nil
	})
	if err == nil {
		err = syncTree(fresh)
	}
	if err != nil {
		return err
	}
	return atomicfile.Rename(fresh, to)
}

func copyFile(from, to string) error {
	data, err := os.ReadFile(from) // RocksDB's log and manifest: some MB, and a table mostly 64
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o600)
}

var _ service.Performer = Mon{}

// Perform says what the store of the mon, which is stopped, is worth.
func (m Mon) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	if cmd.Verb != monstore.VerbLook {
		return "", fmt.Errorf("this agent has no command %q for a mon", cmd.Verb)
	}
	if !m.Kept(l) {
		return monstore.State{Problem: "it is gone"}.Encode(), nil
	}
	return look(ctx, l).Encode(), nil
}

// look reads the few keys that tell what a store is worth: Monitor.cc has "joined" written when a mon first was in a quorum, and
// "in_sync" while it gets everything from another one; Paxos.cc counts what was agreed on.
func look(ctx context.Context, l *service.Local) (s monstore.State) {
	version, err := storeValue(ctx, l, "paxos", "last_committed")
	if err != nil {
		return monstore.State{Problem: "it cannot be read: " + err.Error()}
	}
	if len(version) == 8 {
		s.Version = binary.LittleEndian.Uint64(version)
	}
	joined, err := storeValue(ctx, l, "monitor", "joined")
	if err != nil {
		return monstore.State{Problem: "it cannot be read: " + err.Error()}
	}
	syncing, err := storeValue(ctx, l, "mon_sync", "in_sync")
	if err != nil {
		return monstore.State{Problem: "it cannot be read: " + err.Error()}
	}
	s.Joined, s.Syncing = joined != nil, syncing != nil
	return s
}

// storeValue is the value of a key in a mon's store, or nil.
func storeValue(ctx context.Context, l *service.Local, prefix, key string) ([]byte, error) {
	file, db := filepath.Join(l.Data, "look.out"), filepath.Join(l.Data, directoryName, "store.db")
	err := tool.Run(ctx, l.Data, "ceph-kvstore-tool", "rocksdb", db, "get", prefix, key, "out", file)
	if err != nil && strings.Contains(err.Error(), "("+prefix+", "+key+") does not exist") {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, err := os.ReadFile(file)
	return value, errors.Join(err, atomicfile.Remove(file))
}
