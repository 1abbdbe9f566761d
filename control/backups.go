package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/holdfast-storage/holdfast/control/access"
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
// depends on another one. A standby copies one; see copyBackup.
func (s *Server) keepBackups(ctx context.Context, every time.Duration, take func(ctx context.Context) error) {
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
		err := take(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			s.log.Error("the scheduled backup of the control plane failed; retrying", "error", err)
		}
		if failed = err != nil; failed {
			wait = min(every, time.Minute)
		}
	}
}

// takeBackup takes a backup for the schedule, and then removes what is older than those that are kept. The last one that there is
// goes only when the next one is whole.
func (s *Server) takeBackup(ctx context.Context) error {
	keep := s.backupKeep
	s.backups.Lock()
	defer s.backups.Unlock()
	whole, h, err := s.makeBackup(ctx, max(keep-1, 1))
	if err != nil {
		return err
	}
	dir := filepath.Dir(whole)
	if err := os.Rename(whole, filepath.Join(dir, backup.Name(*h))); err != nil {
		return fmt.Errorf("while taking a backup: %w", err)
	}
	return errors.Join(atomicfile.SyncDir(dir), backup.Prune(dir, keep))
}

// openBackup takes a backup for somebody who asked. It has no name, and is gone when it is closed: whoever asks often must not
// push out those of the schedule, and whoever watches the schedule must not take it for one.
func (s *Server) openBackup(ctx context.Context) (*os.File, error) {
	s.backups.Lock()
	defer s.backups.Unlock()
	whole, _, err := s.makeBackup(ctx, s.backupKeep)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(whole)
	if err = errors.Join(err, os.Remove(whole)); err != nil {
		_ = f.Close() // What can fail has failed already.
		return nil, err
	}
	return f, nil
}

// makeBackup writes a backup below the data directory and verifies it. Before that it makes room: of the scheduled ones keep
// remain. s.backups is held.
func (s *Server) makeBackup(ctx context.Context, keep int) (path string, h *backup.Header, err error) {
	member := s.current()
	if member == nil {
		return "", nil, errors.New("this server has no data: ask another one for a backup")
	}
	dir := SnapshotDir(string(s.dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("while taking a backup: %w", err)
	}
	if err := errors.Join(backup.Prune(dir, keep), backup.Room(dir, member.DatabaseSize()), ctx.Err()); err != nil {
		return "", nil, err
	}
	database, whole := filepath.Join(dir, ".etcd.db"), filepath.Join(dir, ".backup")
	defer func() { _ = os.Remove(database) }() // the next one writes over it
	if err := member.Snapshot(database); err != nil {
		return "", nil, err
	}
	if h, err = s.writeBackup(member, whole, database); err != nil {
		return "", nil, err
	}
	_, err = backup.Verify(whole, "")
	return whole, h, err
}

func (s *Server) writeBackup(member *etcd.Member, path, database string) (*backup.Header, error) {
	revision, err := etcd.Revision(database)
	if err != nil {
		return nil, err
	}
	h := &backup.Header{
		Authority: s.identity.signer().Fingerprint(), ClusterID: member.ClusterID(), Revision: revision,
		Time: time.Now().UTC().Truncate(time.Second), Server: s.settings.Name, Version: version.Version,
		Generation: new(s.settings.Generation),
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
	if s.removedAsker(r) {
		http.Error(w, "this server was removed, and a backup contains the keys of the control plane: join it again with 'holdfast server --join TOKEN'",
			http.StatusForbidden)
		return
	}
	if err := s.sendBackup(w, r); err != nil {
		s.log.Warn("a backup was asked for and could not be sent", "error", err)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// removedAsker says whether a request comes from a server whose Host is gone: it would go on copying backups, with new keys in them. Where that cannot be
// looked up there is no quorum, and so nothing new.
func (s *Server) removedAsker(r *http.Request) bool {
	u, ok := request.UserFrom(r.Context())
	if !ok {
		return false
	}
	name, ok := access.ServerOf(u.GetName())
	if !ok {
		return false
	}
	gone, err := s.hostGone(r.Context(), name, "")
	return gone && err == nil
}

// sendBackup takes a backup and sends it. An error is returned only while nothing was sent: later the receiver sees by the length.
func (s *Server) sendBackup(w http.ResponseWriter, r *http.Request) error {
	f, err := s.openBackup(r.Context())
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
