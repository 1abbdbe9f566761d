package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/version"
)

// BackupPath is where a server takes a backup and sends it, to administrators alone.
const BackupPath = "/holdfast/v1/backup"

// The schedule of backups where Config has none.
const (
	defaultBackupEvery = time.Hour
	defaultBackupKeep  = 24
)

// firstBackup is how long after its start a server takes its first backup: bringing up has the disk to itself.
const firstBackup = time.Minute

// SnapshotDir is where the scheduled backups lie below a server's data directory.
func SnapshotDir(dataDir string) string { return filepath.Join(dataDir, "snapshots") }

// LastBackup is when the newest backup in a server's data directory was taken; zero when there is none.
func LastBackup(dataDir string) (time.Time, error) {
	paths, err := backup.List(SnapshotDir(dataDir))
	if err != nil || len(paths) == 0 {
		return time.Time{}, err
	}
	return backup.TimeOf(paths[len(paths)-1]), nil
}

// keepBackups takes backups on the schedule, until ctx ends. Each server that holds the data takes its own: none of them
// depends on another one.
func (s *Server) keepBackups(ctx context.Context, every time.Duration, keep int) {
	failed := false
	wait := firstBackup
	for {
		timer := time.NewTimer(min(wait, every))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		wait = every
		_, err := s.takeBackup(ctx, keep)
		if err != nil && ctx.Err() == nil && !failed {
			s.log.Error("the scheduled backup of the control plane failed; it is tried again", "error", err)
		}
		if failed = err != nil; failed {
			wait = min(every, time.Minute)
		}
	}
}

// takeBackup takes a backup, and returns its path below the data directory.
func (s *Server) takeBackup(ctx context.Context, keep int) (string, error) {
	s.backups.Lock()
	defer s.backups.Unlock()
	member := s.current()
	if member == nil {
		return "", errors.New("this server holds no data: ask another one for a backup")
	}
	dir := SnapshotDir(string(s.dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("while taking a backup: %w", err)
	}
	if err := errors.Join(backup.Prune(dir, keep-1), backup.Room(dir, member.DatabaseSize()), ctx.Err()); err != nil {
		return "", err
	}
	database, whole := filepath.Join(dir, ".etcd.db"), filepath.Join(dir, ".backup")
	defer os.Remove(database)
	if err := member.Snapshot(database); err != nil {
		return "", err
	}
	h, err := s.writeBackup(member, whole, database)
	if err != nil {
		return "", err
	}
	if _, err := backup.Verify(whole, ""); err != nil {
		return "", err
	}
	path := filepath.Join(dir, backup.Name(*h))
	if err := os.Rename(whole, path); err != nil {
		return "", fmt.Errorf("while taking a backup: %w", err)
	}
	return path, atomicfile.SyncDir(dir)
}

func (s *Server) writeBackup(member *etcd.Member, path, database string) (*backup.Header, error) {
	revision, err := etcd.Revision(database)
	if err != nil {
		return nil, err
	}
	h := &backup.Header{
		Authority: s.identity.signer().Fingerprint(), ClusterID: member.ClusterID(), Revision: revision,
		Time: time.Now().UTC().Truncate(time.Second), Server: s.settings.Name, Version: version.Version,
	}
	names, files, err := s.dir.sharedKeys()
	if err != nil {
		return nil, err
	}
	files[backup.Database] = database
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("while taking a backup: %w", err)
	}
	err = backup.Write(f, *h, append(names, backup.Database), files)
	return h, errors.Join(err, f.Sync(), f.Close())
}

// sharedKeys lists the files in pki/ that all servers share: all but the pairs that each server makes for itself.
func (d dataDir) sharedKeys() (names []string, files map[string]string, err error) {
	entries, err := os.ReadDir(d.pki())
	if err != nil {
		return nil, nil, fmt.Errorf("while looking for the keys of the control plane: %w", err)
	}
	files = map[string]string{}
	for _, e := range entries {
		stem, _, _ := strings.Cut(e.Name(), ".")
		if !e.Type().IsRegular() || slices.Contains([]string{"server", "etcd", "admin", ""}, stem) {
			continue
		}
		name := backup.PKI + e.Name()
		names, files[name] = append(names, name), filepath.Join(d.pki(), e.Name())
	}
	return names, files, nil
}

// serveBackup takes a backup and sends it. Only a POST does: viewers may GET every path.
func (s *Server) serveBackup(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "a backup is taken with POST", http.StatusMethodNotAllowed)
		return
	}
	path, err := s.takeBackup(r.Context(), s.backupKeep)
	if err == nil {
		err = sendFile(w, path)
	}
	if err != nil && !errors.Is(err, fs.ErrClosed) {
		s.log.Warn("a backup was asked for and could not be sent", "error", err)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// sendFile sends a file. An error is returned only while nothing was sent: later the receiver sees by the length.
func sendFile(w http.ResponseWriter, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/x-tar")
	w.Header().Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	_, _ = io.Copy(w, f)
	return nil
}
