package control

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
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

// keepRemoved is of how many generations the data of a former member is kept. One is as large as a
// database, up to some GiB.
const keepRemoved = 3

const generationPrefix = "generation-"

// unread ends the name of a copy that lies beside that of its generation: which of them has more data is not known, because one of them cannot be read.
// A number follows from the second one on.
const unread = ".unread"

// keepUnread is how many such copies there may be of one generation. None is discarded for another one: which has more is not known.
const keepUnread = 3

// discarded is where data lies that is being removed: a kill amid that must not leave a part of it where it would count.
func (d dataDir) discarded() string { return filepath.Join(d.file(removedDir), "discarded") }

// setAside moves the data of a seat that is lost out of the way, and keeps it: of a generation before a restore it may hold what the
// backup did not. Of one generation the copy with the most data is kept, by the word of its own log: a seat may have been filled, and taken away
// before its server could say so. What cannot be compared is kept beside it.
func (d dataDir) setAside(generation int64, log *slog.Logger) error {
	if missing(d.etcd()) {
		return nil
	}
	to, err := d.placeOfLost(generation, log)
	if err != nil {
		return err
	}
	if err := d.moveDatabase(to); err != nil {
		return fmt.Errorf("while moving the data of the former member aside: %w", err)
	}
	if err := atomicfile.RemoveAll(d.discarded()); err != nil {
		return fmt.Errorf("while removing the data of the former member: %w", err)
	}
	return d.pruneRemoved()
}

// places are where the copies of one generation may lie.
func (d dataDir) places(generation int64) []string {
	first := filepath.Join(d.file(removedDir), generationPrefix+strconv.FormatInt(generation, 10))
	places := []string{first, first + unread}
	for i := 2; i <= keepUnread; i++ {
		places = append(places, first+unread+"-"+strconv.Itoa(i))
	}
	return places
}

// placeOfLost chooses where the data of a former member is moved to: it takes the place of a copy
// that certainly has less, is discarded for one that certainly has as much, and otherwise gets a
// place of its own.
func (d dataDir) placeOfLost(generation int64, log *slog.Logger) (string, error) {
	its, unknown := etcd.ReadPosition(d.etcd())
	readable := unknown == nil
	less, free := "", ""
	for _, place := range d.places(generation) {
		if missing(place) {
			free = cmp.Or(free, place)
			continue
		}
		other, err := etcd.ReadPosition(place)
		unknown = errors.Join(unknown, err)
		switch {
		case !readable || err != nil:
		case its.Compare(other) <= 0:
			return d.discarded(), nil
		default:
			less = place
		}
	}
	to := cmp.Or(less, free)
	switch {
	case to == "":
		return "", fmt.Errorf("the data of the former member cannot be compared with the %d copies of its "+
			"generation in %s, so none is removed: remove the copies that you do not need: %w", keepUnread+1,
			d.file(removedDir), unknown)
	case unknown != nil:
		log.Warn("cannot compare the copies of the data of a former member; all of them are kept", "moved to", to, "error", unknown)
	}
	return to, nil
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
		return fmt.Errorf("while looking for the data of former members: %w", err)
	}
	var generations []int64
	for _, e := range entries {
		number, _, _ := strings.Cut(strings.TrimPrefix(e.Name(), generationPrefix), unread)
		g, err := strconv.ParseInt(number, 10, 64)
		if err == nil && slices.Contains(d.places(g), filepath.Join(d.file(removedDir), e.Name())) {
			generations = append(generations, g)
		}
	}
	slices.Sort(generations)
	generations = slices.Compact(generations)
	for _, g := range generations[:max(0, len(generations)-keepRemoved)] {
		for _, old := range d.places(g) {
			if err := atomicfile.RemoveAll(old); err != nil {
				return fmt.Errorf("while removing the data of a former member: %w", err)
			}
		}
	}
	return nil
}
