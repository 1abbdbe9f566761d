package etcd

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/server/v3/etcdserver/api/snap"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"

	"github.com/holdfast-storage/holdfast/control/etcd/pages"
)

// Damage is why a member cannot run on what lies in a directory. Only another copy of the data helps.
type Damage struct {
	// File is the file or directory that is damaged, below that of the member.
	File string
	err  error
}

func (d *Damage) Error() string { return fmt.Sprintf("%s: %v", d.File, d.err) }
func (d *Damage) Unwrap() error { return d.err }

// The files of a member, below its directory.
const (
	databaseFile = "member/snap/db"
	logDir       = "member/wal"
	snapshotDir  = "member/snap"
)

// FindDamage checks the files of a member that does not run, and changes nothing: the database page by page, the
// log and the snapshots, and whether they belong together. It is nil where a member can start, and where the files
// cannot be read for a reason that is not theirs, which the start tells.
func FindDamage(dir string) *Damage {
	path := filepath.Join(dir, logDir)
	if entries, err := os.ReadDir(path); err != nil || len(entries) == 0 {
		// No member has begun to run, or its log is gone; what else is in the way the start tells.
		return found(logDir, neverFilled(filepath.Join(dir, databaseFile)))
	}
	applied, damage := checkDatabase(filepath.Join(dir, databaseFile))
	if damage != nil {
		return damage
	}
	fatal := make(chan error, 1)
	logger := newLogger(slog.New(slog.DiscardHandler), fatal)
	_, err := shielded(fatal, func() (any, error) { return nil, checkLog(dir, applied, logger) })
	if errors.As(err, &damage) {
		return damage
	}
	return found(logDir, err)
}

// found is the damage that an error means; nil where it does not mean any.
func found(file string, err error) *Damage {
	var number syscall.Errno
	if err == nil || errors.As(err, &number) && number != syscall.EIO && number != syscall.ENOENT {
		return nil //nolint:nilerr // no damage
	}
	return &Damage{file, err}
}

// checkDatabase returns up to which entry of the log the database has all.
func checkDatabase(path string) (applied uint64, damage *Damage) {
	err := pages.Check(path, func(bucket, key, value []byte) error {
		switch {
		case string(bucket) == string(schema.Key.Name()):
			return checkRevision(key, value)
		case string(bucket) == string(schema.Meta.Name()) && string(key) == string(schema.MetaConsistentIndexKeyName):
			if len(value) != 8 {
				return errors.New("its place in the log is bad")
			}
			applied = binary.BigEndian.Uint64(value)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // The log may have all.
	}
	return applied, found(databaseFile, err)
}

// checkRevision checks one version of a key: etcd ends where it cannot read one.
func checkRevision(key, value []byte) error {
	const size, deleted = 17, 18
	if len(key) != size && len(key) != deleted || key[8] != '_' {
		return errors.New("a version of a key has a bad name")
	}
	var kv mvccpb.KeyValue
	if err := kv.Unmarshal(value); err != nil {
		return fmt.Errorf("a version of a key cannot be read: %w", err)
	}
	main := int64(binary.BigEndian.Uint64(key)) //nolint:gosec // as etcd reads it
	if len(key) == size && len(kv.Key) > 0 && (kv.ModRevision != main || kv.CreateRevision > main || kv.Version < 1) {
		return errors.New("a version of a key contradicts its name")
	}
	return nil
}

// checkLog reads the log from the snapshot on that etcd would start with, and compares it with the database.
func checkLog(dir string, applied uint64, logger *zap.Logger) error {
	path := filepath.Join(dir, logDir)
	known, err := wal.ValidSnapshotEntries(logger, path)
	if err != nil {
		return err
	}
	start, bad := newestSnapshot(dir, known, logger)
	last, state, err := readLog(path, start, logger)
	switch {
	case err != nil && bad != nil:
		return bad // Without it too much of the log is needed.
	case err != nil:
		return err
	}
	if last < max(state.Commit, applied) {
		return &Damage{logDir, fmt.Errorf("it is cut off: it ends at entry %d, and entry %d was known to count",
			last, max(state.Commit, applied))}
	}
	return checkFilled(filepath.Join(dir, snapshotDir), start.Index, applied)
}

// readLog returns where the log ends, and what it knows to count.
func readLog(path string, start walpb.Snapshot, logger *zap.Logger) (last uint64, state raftpb.HardState, err error) {
	w, err := wal.OpenForRead(logger, path, start)
	if err != nil {
		return 0, state, err
	}
	defer w.Close()
	_, state, entries, err := w.ReadAll()
	if n := len(entries); n > 0 {
		return entries[n-1].Index, state, err
	}
	return start.Index, state, err
}

// newestSnapshot is that of which the file can be read, the beginning of the log where there is
// none; and the newest one that cannot be read.
func newestSnapshot(dir string, known []walpb.Snapshot, logger *zap.Logger) (start walpb.Snapshot, bad *Damage) {
	for i := len(known) - 1; i >= 0 && known[i].Index > 0; i-- {
		file := fmt.Sprintf("%s/%016x-%016x.snap", snapshotDir, known[i].Term, known[i].Index)
		s, err := snap.Read(logger, filepath.Join(dir, file))
		if err == nil && s.Metadata.Index == known[i].Index {
			return known[i], bad
		}
		if bad == nil {
			bad = &Damage{file, fmt.Errorf("it cannot be read: %w", cmp.Or(err, errors.New("it is another one")))}
		}
	}
	return walpb.Snapshot{}, bad
}

// checkFilled checks that the database has what came before the log, or that the leader sent a copy that has.
func checkFilled(dir string, from, applied uint64) error {
	if applied >= from {
		return nil
	}
	path := filepath.Join(dir, fmt.Sprintf("%016x.snap.db", from))
	if _, err := os.Stat(path); err != nil {
		return &Damage{databaseFile, fmt.Errorf("it is older than the log: it has all up to entry %d, and the log begins "+
			"at %d", applied, from)}
	}
	if err := pages.Check(path, nil); err != nil {
		return &Damage{filepath.Join(snapshotDir, filepath.Base(path)), err}
	}
	return nil
}
