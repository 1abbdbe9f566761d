package control

import (
	"fmt"
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

// discarded is where data lies that is being removed: a kill amid that must not leave a part of it where it would count.
func (d dataDir) discarded() string { return filepath.Join(d.file(removedDir), "discarded") }

// setAside moves the data of a seat that is lost out of the way, and keeps it: of a generation before a restore it may hold what the
// backup did not. Of one generation the last one is kept, which has seen all that those before it had; but one that was never filled,
// whatever its member has written by then, is not worth the place of what was.
func (d dataDir) setAside(generation int64, filled bool) error {
	if missing(d.etcd()) {
		return nil
	}
	old := filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(generation, 10))
	whole := filled && d.hasLog()
	if !whole && !missing(old) {
		old = d.discarded()
	}
	if err := d.moveDatabase(old); err != nil {
		return fmt.Errorf("while moving the data of the lost seat aside: %w", err)
	}
	if err := atomicfile.RemoveAll(d.discarded()); err != nil {
		return fmt.Errorf("while removing the data of the lost seat: %w", err)
	}
	return d.pruneRemoved()
}

// moveDatabase puts the database in the place of what may lie there.
func (d dataDir) moveDatabase(to string) error {
	if err := atomicfile.MkdirAll(d.file(removedDir), 0o700); err != nil {
		return err
	}
	if err := atomicfile.RemoveAll(to); err != nil {
		return err
	}
	return atomicfile.Rename(d.etcd(), to)
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
		if err := atomicfile.RemoveAll(filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(g, 10))); err != nil {
			return fmt.Errorf("while removing the data of a lost seat: %w", err)
		}
	}
	return nil
}
