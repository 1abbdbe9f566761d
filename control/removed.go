package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// removedDir holds the data of seats that were lost, below the data directory: one directory for each generation.
const removedDir = "etcd.removed"

// keepRemoved is of how many generations the data of a lost seat is kept. One is as large as a database, up to some GiB.
const keepRemoved = 3

const generationPrefix = "generation-"

// setAside moves the data of a seat that is lost out of the way, and keeps it: of a generation before a restore it may hold what the
// backup did not. Of one generation the last one is kept, which has seen all that those before it had; but one that was never filled,
// whatever its member has written by then, is not worth the place of what was.
func (d dataDir) setAside(generation int64, filled bool) error {
	if _, err := os.Stat(d.etcd()); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	all := d.file(removedDir)
	old := filepath.Join(all, generationPrefix+strconv.FormatInt(generation, 10))
	if filled && d.hasLog() {
		if err := os.RemoveAll(old); err != nil {
			return fmt.Errorf("while making room for the data of the lost seat: %w", err)
		}
	} else if _, err := os.Stat(old); err == nil {
		return errors.Join(os.RemoveAll(d.etcd()), atomicfile.SyncDir(string(d)))
	}
	err := os.Mkdir(all, 0o700)
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	if err := errors.Join(err, os.Rename(d.etcd(), old), atomicfile.SyncDir(all), atomicfile.SyncDir(string(d))); err != nil {
		return fmt.Errorf("while moving the data of the lost seat aside: %w", err)
	}
	return d.pruneRemoved()
}

// pruneRemoved removes the data of the oldest generations.
func (d dataDir) pruneRemoved() error {
	entries, err := os.ReadDir(d.file(removedDir))
	if err != nil {
		return fmt.Errorf("while looking for the data of lost seats: %w", err)
	}
	var generations []int64
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), generationPrefix)
		if g, err := strconv.ParseInt(number, 10, 64); ok && err == nil {
			generations = append(generations, g)
		}
	}
	slices.Sort(generations)
	for _, g := range generations[:max(0, len(generations)-keepRemoved)] {
		if err := os.RemoveAll(filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(g, 10))); err != nil {
			return fmt.Errorf("while removing the data of a lost seat: %w", err)
		}
	}
	return nil
}
