package etcd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/storage/backend"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
)

// Salvage takes a snapshot of a database that no member runs on: all that the member has seen, also what is in its log alone.
// It works on a copy of the directory, made beside the snapshot, so that it may be repeated.
func Salvage(ctx context.Context, dir, path string, c Config) error {
	// The log may be of use, whatever is wrong with it. A damaged database would end the process.
	if damage := FindDamage(dir); damage != nil && filepath.Ext(damage.File) != ".snap" && damage.File != logDir {
		return fmt.Errorf("while reading the database %s: %w; use the data of another server, or restore a backup "+
			"with 'holdfast restore FILE'", dir, damage)
	}
	work := path + ".work"
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	defer os.RemoveAll(work)
	if err := copyTree(dir, work); err != nil {
		return fmt.Errorf("while copying the database %s: %w", dir, err)
	}
	fatal := make(chan error, 1)
	logger := newLogger(c.Log, fatal)
	counts, err := shielded(fatal, func() (uint64, error) { return commitAll(filepath.Join(work, "member", "wal"), logger) })
	if err != nil {
		return fmt.Errorf("while reading the log of the database %s: %w", dir, err)
	}
	done, err := shielded(fatal, func() (bool, error) {
		return saveApplied(filepath.Join(work, "member", "snap", "db"), path, counts, logger)
	})
	if done || err != nil {
		return err
	}
	if c.PeerPort, err = anyPort(ctx); err != nil {
		return err
	}
	if c.ClientPort, err = anyPort(ctx); err != nil {
		return err
	}
	c.Dir, c.Address, c.Existing = work, "127.0.0.1", ""
	config, err := c.embed(fatal)
	if err != nil {
		return err
	}
	config.ForceNewCluster = true
	// The copy knows the other members until it has removed them, and asks them meanwhile: those that run and have removed the member say so, and it
	// stops. No certificate of theirs is for this name, so that it talks to none.
	config.PeerTLSInfo.ServerName = "salvage.invalid"
	member, err := shielded(fatal, func() (*embed.Etcd, error) { return embed.StartEtcd(config) })
	if err != nil {
		return fmt.Errorf("while reading the database %s: %w", dir, err)
	}
	defer within(stopTimeout, member.Close)
	select {
	case <-member.Server.ReadyNotify():
	case err := <-member.Err():
		return fmt.Errorf("while reading the database %s: %w", dir, err)
	case err := <-fatal:
		return fmt.Errorf("while reading the database %s: %w", dir, err)
	case <-time.After(time.Minute):
		return fmt.Errorf("the database %s cannot be read: etcd was not ready within a minute", dir)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return saveSnapshot(member.Server.Backend(), path)
}

// saveApplied takes the snapshot of a database that holds more than counts of the log: the member's own removal. Nothing of the log is missing in it, and
// no member can be started on it any more: it would be the last one, and remove itself again.
func saveApplied(database, path string, counts uint64, logger *zap.Logger) (bool, error) {
	if _, err := os.Stat(database); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	config := backend.DefaultBackendConfig(logger)
	config.Path = database
	b := backend.New(config)
	defer b.Close()
	if applied, _ := schema.ReadConsistentIndex(b.ReadTx()); applied <= counts {
		return false, nil
	}
	return true, saveSnapshot(b, path)
}

// commitAll makes the whole log count, and returns its end. What was written last may have been answered for before it was noted that it counts, and
// etcd would drop it; a member that leads alone would have kept it.
func commitAll(dir string, logger *zap.Logger) (uint64, error) {
	start, err := lastSnapshot(logger, dir)
	if err != nil {
		return 0, err
	}
	w, err := wal.Open(logger, dir, start)
	if err != nil {
		return 0, err
	}
	metadata, state, entries, err := w.ReadAll()
	if err == nil && len(entries) > 0 {
		if state.Commit, err = counting(metadata, entries); err == nil {
			err = w.Save(state, nil)
		}
	}
	return max(state.Commit, start.Index), errors.Join(err, w.Close())
}

// counting is up to where a log counts: to its end, or to where the member itself is removed. After that nobody votes who could go on, and what it
// may have got yet others have.
func counting(metadata []byte, entries []raftpb.Entry) (uint64, error) {
	var self etcdserverpb.Metadata
	if err := self.Unmarshal(metadata); err != nil {
		return 0, fmt.Errorf("while reading whose log it is: %w", err)
	}
	for _, e := range entries {
		var change raftpb.ConfChange
		if e.Type != raftpb.EntryConfChange {
			continue
		}
		if err := change.Unmarshal(e.Data); err != nil {
			return 0, fmt.Errorf("while reading the change %d of the members: %w", e.Index, err)
		}
		if change.Type == raftpb.ConfChangeRemoveNode && change.NodeID == self.NodeID {
			return e.Index - 1, nil
		}
	}
	return entries[len(entries)-1].Index, nil
}

// lastSnapshot is where the part of a log begins that a member has to read.
func lastSnapshot(logger *zap.Logger, dir string) (walpb.Snapshot, error) {
	snapshots, err := wal.ValidSnapshotEntries(logger, dir)
	if err != nil {
		return walpb.Snapshot{}, err
	}
	if len(snapshots) == 0 {
		return walpb.Snapshot{}, errors.New("it has no beginning")
	}
	return snapshots[len(snapshots)-1], nil
}

// copyTree copies a directory; only the owner can read the copy. It need not survive a power cut.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.Mkdir(filepath.Join(to, relative), 0o700)
		}
		if !entry.Type().IsRegular() {
			return nil // the socket of a member that was killed
		}
		return copyFile(path, filepath.Join(to, relative))
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// anyPort is a port of loopback that is free now.
func anyPort(ctx context.Context) (int, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}
