package control

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

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

// firstBackup is how long after its start a server takes its first backup: bringing up has the disk
// to itself.
const firstBackup = time.Minute

// SnapshotDir is where the scheduled backups lie below a server's data directory.
func SnapshotDir(dataDir string) string { return filepath.Join(dataDir, "snapshots") }

// LastBackup is when the newest backup in a server's data directory was taken; zero when there is
// none.
func LastBackup(dataDir string) (time.Time, error) {
	paths, err := backup.List(SnapshotDir(dataDir))
	if err != nil || len(paths) == 0 {
		return time.Time{}, err
	}
	return backup.TimeOf(paths[len(paths)-1]), nil
}

// backups takes, copies and keeps the backups of one server. take and open may run at the same
// time; one copy runs at a time.
type backups struct {
	dir      dataDir
	settings *settings
	identity *identity
	log      *slog.Logger
	// keep is how many scheduled backups stay, and every is the time between two.
	keep  int
	every time.Duration
	// member returns the member of etcd that runs, or nil.
	member func() *etcd.Member
	// taking is held while a backup is taken.
	taking sync.Mutex
}

// schedule takes backups on the schedule, until ctx ends. Each server that holds the data takes its
// own: none of them depends on another one. A standby copies one; see copy.
func (b *backups) schedule(ctx context.Context, take func(ctx context.Context) error) {
	failed := false
	wait := firstBackup
	for {
		timer := time.NewTimer(min(wait, b.every))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		wait = b.every
		err := take(ctx)
		if err != nil && ctx.Err() == nil && !failed {
			b.log.Error("the scheduled backup of the control plane failed; retrying", "error", err)
		}
		if failed = err != nil; failed {
			wait = min(b.every, time.Minute)
		}
	}
}

// take takes a backup for the schedule, and then removes those that are older than the kept ones.
// The last backup goes only when the next one is whole.
func (b *backups) take(ctx context.Context) error {
	b.taking.Lock()
	defer b.taking.Unlock()
	whole, h, err := b.make(ctx, max(b.keep-1, 1))
	if err != nil {
		return err
	}
	dir := filepath.Dir(whole)
	if err := os.Rename(whole, filepath.Join(dir, backup.Name(*h))); err != nil {
		return fmt.Errorf("while taking a backup: %w", err)
	}
	return errors.Join(atomicfile.SyncDir(dir), backup.Prune(dir, b.keep))
}

// open takes a backup for a client that asked. It has no name, and is gone when it is closed: a
// client that asks often must not push out those of the schedule, and a reader of the schedule must
// not take it for one.
func (b *backups) open(ctx context.Context) (*os.File, error) {
	b.taking.Lock()
	defer b.taking.Unlock()
	whole, _, err := b.make(ctx, b.keep)
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

// make writes a backup below the data directory and verifies it. Before that it makes room: of the
// scheduled ones keep remain. b.taking is held.
func (b *backups) make(ctx context.Context, keep int) (path string, h *backup.Header, err error) {
	member := b.member()
	if member == nil {
		return "", nil, errors.New("this server has no data: ask another one for a backup")
	}
	dir := SnapshotDir(string(b.dir))
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
	if h, err = b.write(member, whole, database); err != nil {
		return "", nil, err
	}
	_, err = backup.Verify(whole, "")
	return whole, h, err
}

func (b *backups) write(member *etcd.Member, path, database string) (*backup.Header, error) {
	revision, err := etcd.Revision(database)
	if err != nil {
		return nil, err
	}
	h := &backup.Header{
		Authority: b.identity.signer().Fingerprint(), ClusterID: member.ClusterID(), Revision: revision,
		Time: time.Now().UTC().Truncate(time.Second), Server: b.settings.Name, Version: version.Version,
		Generation: new(b.settings.Generation),
	}
	names, files, err := b.dir.sharedKeys()
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

// sharedKeys lists the files in pki/ that all servers share: all but the pairs that each server
// makes for itself.
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

// backupHandler takes a backup and sends it. Only a POST does: viewers may GET every path.
type backupHandler struct {
	*backups
	// gone says whether the Host of a server is gone; see seatHandler.
	gone func(ctx context.Context, name, hostKey string) (bool, error)
}

func (h backupHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "a backup is taken with POST", http.StatusMethodNotAllowed)
		return
	}
	if h.askerRemoved(r) {
		http.Error(w, "this server was removed, and a backup contains the keys of the control plane: join it again with 'holdfast server --join TOKEN'",
			http.StatusForbidden)
		return
	}
	if err := h.send(w, r); err != nil {
		h.log.Warn("a backup was asked for and could not be sent", "error", err)
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	}
}

// askerRemoved says whether a request comes from a server whose Host is gone: it would continue to
// copy backups, with new keys in them. Where that cannot be looked up there is no quorum, and so
// nothing new.
func (h backupHandler) askerRemoved(r *http.Request) bool {
	u, ok := request.UserFrom(r.Context())
	if !ok {
		return false
	}
	name, ok := access.ServerOf(u.GetName())
	if !ok {
		return false
	}
	gone, err := h.gone(r.Context(), name, "")
	return gone && err == nil
}

// send takes a backup and sends it. An error is returned only while nothing was sent: later the
// receiver sees by the length.
func (h backupHandler) send(w http.ResponseWriter, r *http.Request) error {
	f, err := h.open(r.Context())
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

// copyTimeout bounds how long a standby waits for a backup, which may have 2 GiB.
const copyTimeout = 15 * time.Minute

// copy has one of the other servers take a backup, and keeps it: with two servers, the standby's
// copy is all that is left when the other one is lost. others are addresses as IP:port.
func (b *backups) copy(ctx context.Context, others []string) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	dir := SnapshotDir(string(b.dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("while copying a backup: %w", err)
	}
	if err := errors.Join(backup.Prune(dir, b.keep), backup.Room(dir, 0)); err != nil {
		return err
	}
	errs := []error{errors.New("no other server sent a backup")}
	for _, server := range others {
		copied := filepath.Join(dir, ".copy")
		h, err := FetchBackup(ctx, &rest.Config{Host: "https://" + server, Transport: b.identity.loopback}, copied)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return errors.Join(os.Rename(copied, filepath.Join(dir, backup.Name(*h))), atomicfile.SyncDir(dir), backup.Prune(dir, b.keep))
	}
	return errors.Join(errs...)
}
