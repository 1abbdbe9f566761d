package etcd

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
)

// Position is where the log of a member ends. Of two members of one cluster, the one with the later position has all of the other's that counts:
// by this order raft chooses its leaders.
type Position struct{ Term, Index uint64 }

// Compare is below zero where p is earlier.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Term, other.Term), cmp.Compare(p.Index, other.Index))
}

// ReadPosition reads the position of a database that no member runs on, and changes nothing. It is zero where no member has begun to run, and only
// where that is certain: what a disk that fails does not show is an error.
func ReadPosition(dir string) (Position, error) {
	log := filepath.Join(dir, "member", "wal")
	switch _, err := os.ReadDir(log); {
	case errors.Is(err, fs.ErrNotExist):
		return Position{}, neverFilled(filepath.Join(dir, "member", "snap", "db"))
	case err != nil:
		return Position{}, fmt.Errorf("while looking for the log of the database %s: %w", dir, err)
	}
	fatal := make(chan error, 1)
	p, err := shielded(fatal, func() (Position, error) { return endOf(log, fatal) })
	if err != nil {
		return Position{}, fmt.Errorf("while reading the log of the database %s: %w", dir, err)
	}
	return p, nil
}

// neverFilled says why the file of a database that has no log may hold something. etcd makes it before the log: a member has not begun to run where
// nothing was ever applied to it.
func neverFilled(path string) (err error) {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil
	}
	// The file is read as memory: where the disk fails, or the end of the file is gone, that is a fault.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("while reading %s, which has no log: %v", path, p)
		}
	}()
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: 5 * time.Second})
	if err != nil {
		return fmt.Errorf("while opening %s, which has no log: %w", path, err)
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		if meta := tx.Bucket(schema.Meta.Name()); meta != nil && meta.Get(schema.MetaConsistentIndexKeyName) != nil {
			return fmt.Errorf("%s was filled, and its log is missing", path)
		}
		return nil
	})
}

func endOf(dir string, fatal chan<- error) (Position, error) {
	logger := newLogger(slog.New(slog.DiscardHandler), fatal)
	start, err := lastSnapshot(logger, dir)
	if err != nil {
		return Position{}, err
	}
	w, err := wal.OpenForRead(logger, dir, start)
	if err != nil {
		return Position{}, err
	}
	defer w.Close()
	_, _, entries, err := w.ReadAll()
	if n := len(entries); n > 0 {
		return Position{entries[n-1].Term, entries[n-1].Index}, err
	}
	return Position{start.Term, start.Index}, err
}
