package etcd

import (
	"cmp"
	"fmt"
	"log/slog"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/storage/wal"
)

// Position is where the log of a member ends. Of two members of one cluster, the one with the later position has all of the other's that counts:
// by this order raft chooses its leaders.
type Position struct{ Term, Index uint64 }

// Compare is below zero where p is earlier.
func (p Position) Compare(other Position) int {
	return cmp.Or(cmp.Compare(p.Term, other.Term), cmp.Compare(p.Index, other.Index))
}

// ReadPosition reads the position of a database that no member runs on, and changes nothing. It is zero where no member has begun to run.
func ReadPosition(dir string) (Position, error) {
	log := filepath.Join(dir, "member", "wal")
	if !wal.Exist(log) {
		return Position{}, nil
	}
	fatal := make(chan error, 1)
	p, err := shielded(fatal, func() (Position, error) { return endOf(log, fatal) })
	if err != nil {
		return Position{}, fmt.Errorf("while reading the log of the database %s: %w", dir, err)
	}
	return p, nil
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
