package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/backup"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// copyTimeout bounds how long a standby waits for a backup, which may have 2 GiB.
const copyTimeout = 15 * time.Minute

// copyBackup has another server take a backup and keeps it: with two servers, the standby's copy is all that is left when the
// other one is lost.
func (s *Server) copyBackup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, copyTimeout)
	defer cancel()
	dir := SnapshotDir(string(s.dir))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("while copying a backup: %w", err)
	}
	if err := errors.Join(backup.Prune(dir, s.backupKeep), backup.Room(dir, 0)); err != nil {
		return err
	}
	errs := []error{errors.New("no other server sent a backup")}
	for _, server := range s.others() {
		copied := filepath.Join(dir, ".copy")
		h, err := FetchBackup(ctx, &rest.Config{Host: "https://" + server, Transport: s.identity.loopback}, copied)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		return errors.Join(os.Rename(copied, filepath.Join(dir, backup.Name(*h))), atomicfile.SyncDir(dir), backup.Prune(dir, s.backupKeep))
	}
	return errors.Join(errs...)
}
