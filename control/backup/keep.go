package backup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// suffix ends the names of scheduled backups; their names begin with the time, so that they sort by it.
const suffix = ".backup"

// List returns the paths of the backups in a directory, the oldest first. A missing directory holds none.
func List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("while looking for backups: %w", err)
	}
	var paths []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !strings.HasPrefix(e.Name(), ".") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	slices.Sort(paths)
	return paths, nil
}

// Name is the file name of a scheduled backup.
func Name(h Header) string {
	return fmt.Sprintf("%s-r%d%s", h.Time.UTC().Format("20060102T150405Z"), h.Revision, suffix)
}

// TimeOf is when a scheduled backup was taken, as its name says; zero when it does not.
func TimeOf(path string) time.Time {
	text, _, _ := strings.Cut(filepath.Base(path), "-")
	at, err := time.Parse("20060102T150405Z", text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Prune removes the oldest backups, so that keep remain. What a crash left of one that was not finished goes, too.
func Prune(dir string, keep int) error {
	paths, err := List(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, path := range paths[:max(0, len(paths)-keep)] {
		errs = append(errs, os.Remove(path))
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	for _, path := range left {
		errs = append(errs, os.Remove(path))
	}
	if err := errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("while removing old backups: %w", err)
	}
	return nil
}

// reserve is what a scheduled backup leaves free on the disk, in bytes: etcd needs the room more.
const reserve = 512 << 20

// Room says why there is no room in a directory for a backup of a database of this size, in bytes. The snapshot and the backup
// made of it lie there at the same time.
func Room(dir string, size int64) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return fmt.Errorf("while asking how much room there is in %s: %w", dir, err)
	}
	free := int64(stat.Bavail) * stat.Bsize
	if need := 2*size + reserve; free < need {
		return fmt.Errorf("no backup is taken: %d MiB are free in %s, and %d MiB are needed, so that etcd has room: make room there",
			free>>20, dir, need>>20)
	}
	return nil
}
