package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// removedDir holds the data of seats that were lost, below the data directory: one directory for each generation.
const removedDir = "etcd.removed"

// keepRemoved is of how many generations the data of a lost seat is kept. One is as large as a database, up to some GiB.
const keepRemoved = 3

const generationPrefix = "generation-"

// unread ends the name of a copy that lies beside that of its generation: which of them has more data is not known, because one of them cannot be read.
const unread = ".unread"

// discarded is where data lies that is being removed: a kill amid that must not leave a part of it where it would count.
func (d dataDir) discarded() string { return filepath.Join(d.file(removedDir), "discarded") }

// setAside moves the data of a seat that is lost out of the way, and keeps it: of a generation before a restore it may hold what the
// backup did not. Of one generation the copy with the most data is kept, by the word of its own log: a seat may have been filled, and taken away
// before its server could say so.
func (d dataDir) setAside(generation int64) error {
	if missing(d.etcd()) {
		return nil
	}
	to := filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(generation, 10))
	if !missing(to) {
		switch more, err := holdsMore(d.etcd(), to); {
		case err != nil:
			to += unread
		case !more:
			to = d.discarded()
		}
	}
	if err := d.moveDatabase(to); err != nil {
		return fmt.Errorf("while moving the data of the lost seat aside: %w", err)
	}
	if err := atomicfile.RemoveAll(d.discarded()); err != nil {
		return fmt.Errorf("while removing the data of the lost seat: %w", err)
	}
	return d.pruneRemoved()
}

// holdsMore says whether a copy of the database has all that another one has of the same generation, and more.
func holdsMore(dir, than string) (bool, error) {
	its, err := etcd.ReadPosition(dir)
	if err != nil {
		return false, err
	}
	others, err := etcd.ReadPosition(than)
	return its.Compare(others) > 0, err
}

// moveDatabase puts the database in the place of what may lie there, which is discarded: it is whole until then.
func (d dataDir) moveDatabase(to string) error {
	if err := atomicfile.MkdirAll(d.file(removedDir), 0o700); err != nil {
		return err
	}
	// What could not be removed the last time would be in the way.
	if err := atomicfile.RemoveAll(d.discarded()); err != nil {
		return err
	}
	if !missing(to) {
		if err := atomicfile.Rename(to, d.discarded()); err != nil {
			return err
		}
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
		number, ok := strings.CutPrefix(strings.TrimSuffix(e.Name(), unread), generationPrefix)
		if g, err := strconv.ParseInt(number, 10, 64); ok && err == nil {
			generations = append(generations, g)
		}
	}
	slices.Sort(generations)
	generations = slices.Compact(generations)
	for _, g := range generations[:max(0, len(generations)-keepRemoved)] {
		old := filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(g, 10))
		if err := errors.Join(atomicfile.RemoveAll(old), atomicfile.RemoveAll(old+unread)); err != nil {
			return fmt.Errorf("while removing the data of a lost seat: %w", err)
		}
	}
	return nil
}
