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
	// Overthrow allows a restore while other servers of the control plane have a quorum, which they give up for it.
	Overthrow bool
}

// Restored says what a restore did.
type Restored struct {
	Name, Address string
	// Time is when the backup was taken; zero for a restore from the data directory.
	Time     time.Time
	Revision int64
	// Kept is where the old data lies now; empty when there was none.
	Kept string
	// Unknown is set where the machine was no server, and no server of the backup had its address: hosts do not find it by themselves.
	Unknown bool
}

// From says what was restored.
func (r *Restored) From() string {
	if r.Time.IsZero() {
		return "its own data"
	}
	return "the backup of " + r.Time.Format(time.RFC3339)
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
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	if err := r.notOverthrowing(ctx, endpoints.Known(r.dir.host()), r.dir); err != nil {
		return nil, err
	}
	work := r.dir.restoreWork()
	if err := atomicfile.RemoveAll(work); err != nil {
		return nil, fmt.Errorf("while restoring: %w", err)
	}
	if err := atomicfile.MkdirAll(work, 0o700); err != nil {
		return nil, fmt.Errorf("while restoring: %w", err)
	}
	defer func() { _ = atomicfile.RemoveAll(work) }() // the next start does it, too
	if err := r.prepare(ctx, work); err != nil {
		return nil, err
	}
	if err := r.exchange(work); err != nil {
		return nil, fmt.Errorf("while restoring: %w", err)
	}
	return &r.done, nil
}

type restore struct {
	RestoreConfig
	dir      dataDir
	settings *settings
	// stored is what the server was before; nil where there was none.
	stored *settings
	// header is that of the backup; nil for a restore from the data directory.
	header *backup.Header
	done   Restored
}

// open looks at what there is. A restore that was cut off is taken back first.
func (r *restore) open(ctx context.Context) (err error) {
	if r.stored, err = r.dir.load(); err != nil {
		return err
	}
	if r.stored != nil && r.stored.Restoring != "" {
		if r.stored, err = r.dir.takeBack(r.stored); err != nil {
			return fmt.Errorf("while taking back a restore that was cut off: %w", err)
		}
	}
	if r.dir.isAgent(r.stored) {
		return fmt.Errorf("%w: the data directory %s holds the identity of an agent: choose another one with --data-dir", ErrRefused, r.dir)
	}
	if r.stored == nil && r.File == "" {
		return fmt.Errorf("%w: the data directory %s holds no server: name the backup to restore", ErrRefused, r.dir)
	}
	if r.settings, err = r.resolve(r.stored); err != nil || r.stored != nil {
		return err
	}
	return r.settings.checkAddress(ctx)
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
	if r.stored == nil {
		if err := r.newcomer(ctx, work, database); err != nil {
			return err
		}
	}
	r.done.Name, r.done.Address = r.settings.Name, r.settings.endpoint()
	if r.File == "" && r.done.Revision <= 1 {
		return fmt.Errorf("%w: the server %s was to become a member of etcd, but never received the data: restore a "+
			"backup, or choose a server that has the data", ErrRefused, r.settings.Name)
	}
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
			"to replace that control plane by the backup's, use --replace. If the backup is older than a 'holdfast "+
			"ca rotate', --replace takes it, and every host must join again", ErrRefused, r.File, h.Authority, r.dir,
			have)
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
