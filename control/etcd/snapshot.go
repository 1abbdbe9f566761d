package etcd

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"

	"go.etcd.io/etcd/etcdutl/v3/snapshot"
	"go.etcd.io/etcd/server/v3/storage/backend"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// revisionBump is what a restore adds to the revision of a snapshot, so that no revision is used twice: what was written after
// the snapshot was taken would need years of writing to reach it. etcd's own documentation proposes the same number.
const revisionBump = 1_000_000_000

// ClusterID is the id of the etcd cluster, in hex. A restore makes a new one.
func (m *Member) ClusterID() string {
	return strconv.FormatUint(uint64(m.etcd.Server.Cluster().ID()), 16)
}

// DatabaseSize is the size of the database file in bytes.
func (m *Member) DatabaseSize() int64 { return m.etcd.Server.Backend().Size() }

// Snapshot writes the database as it is now to a new file, which only its owner can read, with etcd's own checksum at its
// end, and puts it on stable storage.
func (m *Member) Snapshot(path string) error { return saveSnapshot(m.etcd.Server.Backend(), path) }

func saveSnapshot(database backend.Backend, path string) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("while taking a snapshot of etcd: %w", err)
	}
	defer func() {
		// A member that learns that it was removed closes its database, whoever uses it.
		if ended := recover(); ended != nil {
			err = fmt.Errorf("while taking a snapshot of etcd: the member ended: %v", ended)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(path) // What is left of it says by itself that it is not whole.
		}
	}()
	snap := database.Snapshot()
	defer snap.Close()
	sum := sha256.New()
	if _, err := snap.WriteTo(io.MultiWriter(f, sum)); err != nil {
		return fmt.Errorf("while taking a snapshot of etcd: %w", err)
	}
	if _, err := f.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("while taking a snapshot of etcd: %w", err)
	}
	return f.Sync()
}

// Revision checks each page of a snapshot and returns its revision. It reads all of it.
func Revision(path string) (int64, error) {
	fatal := make(chan error, 1)
	logger := newLogger(slog.New(slog.DiscardHandler), fatal)
	status, err := shielded(fatal, func() (snapshot.Status, error) { return snapshot.NewV3(logger).Status(path) })
	if err != nil {
		return 0, fmt.Errorf("the snapshot %s of etcd is damaged: %w", path, err)
	}
	return status.Revision, nil
}

// Restore makes the database of a new cluster, of which the member is the only one, from a snapshot. Nothing may be in c.Dir.
// token makes the id of the cluster its own: members of another life of it are not listened to.
func Restore(path, token string, c Config) error {
	peer := PeerURL(c.Address, c.PeerPort)
	fatal := make(chan error, 1)
	config := snapshot.RestoreConfig{
		SnapshotPath: path, Name: c.Name, OutputDataDir: c.Dir,
		PeerURLs: []string{peer}, InitialCluster: c.Name + "=" + peer, InitialClusterToken: token,
		RevisionBump: revisionBump, MarkCompacted: true,
	}
	_, err := shielded(fatal, func() (any, error) { return nil, snapshot.NewV3(newLogger(c.Log, fatal)).Restore(config) })
	if err != nil {
		return fmt.Errorf("while restoring etcd: %w", err)
	}
	return syncTree(filepath.Dir(c.Dir), c.Dir)
}

// syncTree puts all that is in a tree of directories on stable storage, and its name in the directory that it lies in: etcd does so with what it
// writes to files, not with all their names.
func syncTree(parent, tree string) error {
	err := filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return atomicfile.SyncDir(path) // a file is synced like a directory
	})
	if err != nil {
		return fmt.Errorf("while syncing the restored database: %w", err)
	}
	return atomicfile.SyncDir(parent)
}
