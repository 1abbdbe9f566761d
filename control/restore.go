package control

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// ErrRefused is wrapped by errors of Restore that say that the request makes no sense; nothing was changed.
var ErrRefused = errors.New("refused")

// RestoreConfig says what to restore, and where.
type RestoreConfig struct {
	// Config says what the server shall be; what the data directory says counts where it is empty.
	Config
	// File is the backup. Without one, the data directory's own database is taken, which a server of a control plane that
	// lost its majority still has.
	File string
	// Replace allows a backup of another control plane than the one that the data directory belongs to.
	Replace bool
}

// Restored says what a restore did.
type Restored struct {
	Name, Address string
	// Time is when the backup was taken; zero for a restore from the data directory.
	Time     time.Time
	Revision int64
	// Kept is where the old data lies now; empty when there was none.
	Kept string
}

// Restore makes the server in a data directory, which does not run, the first and only one of its control plane, with the
// state of a backup. All is prepared beside the old data, which is then moved aside and kept; a restore that was cut off is
// done again from the start.
func Restore(ctx context.Context, c RestoreConfig) (*Restored, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	unlock, err := Lock(c.DataDir)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &restore{RestoreConfig: c, dir: dataDir(c.DataDir)}
	if err := r.open(); err != nil {
		return nil, err
	}
	work := r.dir.file("restore.tmp")
	if err := errors.Join(os.RemoveAll(work), os.Mkdir(work, 0o700)); err != nil {
		return nil, fmt.Errorf("while restoring: %w", err)
	}
	defer os.RemoveAll(work)
	if err := r.prepare(ctx, work); err != nil {
		return nil, err
	}
	return &r.done, r.exchange(work)
}

type restore struct {
	RestoreConfig
	dir      dataDir
	settings *settings
	isServer bool
	// header is that of the backup; nil for a restore from the data directory.
	header *backup.Header
	done   Restored
}

// open looks at what there is. A restore that was cut off is taken back first.
func (r *restore) open() error {
	stored, err := r.dir.load()
	if err != nil {
		return err
	}
	if stored == nil && endpoints.Exists(r.dir.host()) {
		return fmt.Errorf("%w: the data directory %s holds the identity of an agent: choose another one with --data-dir", ErrRefused, r.dir)
	}
	if stored == nil && r.File == "" {
		return fmt.Errorf("%w: the data directory %s holds no server: name the backup to restore", ErrRefused, r.dir)
	}
	if stored != nil && stored.Restoring != "" {
		if err := r.dir.takeBack(stored.Restoring); err != nil {
			return err
		}
	}
	r.isServer = stored != nil
	r.settings, err = r.resolve(stored)
	return err
}

// prepare makes the new database, and with a file the new keys, in the work directory.
func (r *restore) prepare(ctx context.Context, work string) error {
	token := "restored-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	config := etcd.Config{
		Dir: filepath.Join(work, "etcd"), Name: r.settings.Name, Address: r.settings.Address, PeerPort: r.settings.EtcdPeerPort,
		CertFile: pki.CertFile(r.dir.pki(), "etcd"), KeyFile: pki.KeyFile(r.dir.pki(), "etcd"), CAFile: r.dir.trustOrCA(),
		Log: r.Log,
	}
	database := filepath.Join(work, backup.Database)
	if err := r.source(ctx, work, database, config); err != nil {
		return err
	}
	var err error
	if r.done.Revision, err = etcd.Revision(database); err != nil {
		return err
	}
	r.done.Name, r.done.Address = r.settings.Name, r.settings.endpoint()
	return etcd.Restore(database, token, config)
}

func (r *restore) source(ctx context.Context, work, database string, config etcd.Config) error {
	if r.File == "" {
		if _, err := os.Stat(filepath.Join(r.dir.etcd(), "member")); err != nil {
			return fmt.Errorf("%w: the server %s holds no database: restore a backup: %w", ErrRefused, r.settings.Name, err)
		}
		return etcd.Salvage(ctx, r.dir.etcd(), database, config)
	}
	h, err := backup.Verify(r.File, work)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	r.header, r.done.Time = h, h.Time
	return r.sameControlPlane(h)
}

// sameControlPlane refuses to put the data of one control plane into the place of another one.
func (r *restore) sameControlPlane(h *backup.Header) error {
	authority, err := pki.OpenAuthority(r.dir.pki())
	if errors.Is(err, fs.ErrNotExist) || r.Replace {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading the authority: %w", err)
	}
	trusted, err := r.dir.trusted(authority)
	if err != nil {
		return err
	}
	known := func(cert *x509.Certificate) bool { return pki.Fingerprint(cert) == h.Authority }
	if have := authority.Fingerprint(); !slices.ContainsFunc(trusted, known) {
		return fmt.Errorf("%w: the backup %s is of another control plane (%.12s) than the data directory %s (%.12s): choose the right one; "+
			"to replace that control plane by the backup's, say so with --replace", ErrRefused, r.File, h.Authority, r.dir, have)
	}
	return nil
}

// trustOrCA is the file of authorities that etcd believes.
func (d dataDir) trustOrCA() string {
	path := filepath.Join(d.pki(), trustFile)
	if _, err := os.Stat(path); err != nil {
		return pki.CertFile(d.pki(), "ca")
	}
	return path
}

// exchange moves the old data aside and the new data in. In between server.json says that a restore is under way, and the
// server does not start.
func (r *restore) exchange(work string) error {
	keep := "before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
	r.settings.Restoring = keep
	if err := errors.Join(os.Mkdir(r.dir.file(keep), 0o700), r.dir.save(r.settings)); err != nil {
		return fmt.Errorf("while restoring: %w", err)
	}
	for _, part := range []string{"pki", "etcd"} {
		if err := exchangePart(r.dir, work, keep, part); err != nil {
			return fmt.Errorf("while restoring: %w", err)
		}
	}
	// A standby may be the one that is restored.
	r.settings.Restoring, r.settings.Existing, r.settings.Seat = "", "", seatHeld
	r.settings.Generation, r.settings.Unpresented = nextGeneration(time.Now(), r.settings.Generation, r.header), true
	if err := errors.Join(atomicfile.SyncDir(string(r.dir)), r.dir.save(r.settings)); err != nil {
		return fmt.Errorf("while restoring: %w", err)
	}
	if r.done.Kept = r.dir.file(keep); !r.isServer {
		_ = os.Remove(r.done.Kept) // Nothing was there to keep.
		r.done.Kept = ""
	}
	return nil
}

// nextGeneration counts for more than every generation that is known of: that of the data directory and that of the backup. It does so
// also where this machine's clock is behind: else the servers of an earlier life would put this one aside. A backup that does not say
// which one it is of was taken in one that had begun by then.
func nextGeneration(now time.Time, own int64, h *backup.Header) int64 {
	next := max(now.Unix(), own+1)
	switch {
	case h == nil:
	case h.Generation != nil:
		next = max(next, *h.Generation+1)
	default:
		next = max(next, h.Time.Unix()+1)
	}
	return next
}

func exchangePart(d dataDir, work, keep, part string) error {
	made := filepath.Join(work, part)
	if _, err := os.Stat(made); errors.Is(err, fs.ErrNotExist) {
		return nil // A restore from the data directory leaves the keys.
	}
	err := os.Rename(d.file(part), filepath.Join(d.file(keep), part))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.Join(os.Rename(made, d.file(part)), atomicfile.SyncDir(d.file(keep)), atomicfile.SyncDir(string(d)))
}

// takeBack puts what a cut-off restore moved aside back in its place.
func (d dataDir) takeBack(keep string) error {
	for _, part := range []string{"pki", "etcd"} {
		kept := filepath.Join(d.file(keep), part)
		if _, err := os.Stat(kept); err != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(d.file(part)), os.Rename(kept, d.file(part))); err != nil {
			return fmt.Errorf("while taking back a restore that was cut off: %w", err)
		}
	}
	return atomicfile.SyncDir(string(d))
}
