package control

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// parts are what a restore exchanges, in this order.
var parts = []string{"pki", "etcd"}

// restoreWork is where a restore prepares what it puts in the place of the old data.
func (d dataDir) restoreWork() string { return d.file("restore.tmp") }

// exchange moves the old data aside and the new data in. In between server.json says that a restore is under way, and the
// server does not start.
func (r *restore) exchange(work string) error {
	made := slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return missing(filepath.Join(work, part)) })
	mark, err := r.begin(made)
	if err != nil {
		return err
	}
	for _, part := range made {
		if !slices.Contains(mark.New, part) {
			if err := atomicfile.Rename(r.dir.file(part), filepath.Join(r.dir.file(mark.Restoring), part)); err != nil {
				return err
			}
		}
		if err := atomicfile.Rename(filepath.Join(work, part), r.dir.file(part)); err != nil {
			return err
		}
	}
	if r.done.Kept = r.dir.file(mark.Restoring); atomicfile.Remove(r.done.Kept) == nil {
		r.done.Kept = "" // Nothing was there to keep: a directory that holds something stays.
	}
	// A standby may be the one that is restored.
	r.settings.Existing, r.settings.Seat, r.settings.Rejoining = "", seatHeld, false
	r.settings.Generation, r.settings.Unpresented = nextGeneration(time.Now(), r.settings.Generation, r.header), true
	r.settings.Restored = fmt.Sprintf("on %s from %s, revision %d", r.settings.Name, r.done.From(), r.done.Revision)
	return r.dir.save(r.settings)
}

// begin writes down what is to be taken back if the exchange of these parts is cut off.
func (r *restore) begin(made []string) (*settings, error) {
	mark := *r.settings
	if r.stored != nil {
		mark = *r.stored
	}
	mark.Restoring = "before-restore-" + time.Now().UTC().Format("20060102T150405.000Z")
	for _, name := range append(slices.Clone(made), settingsFile) {
		if missing(r.dir.file(name)) {
			mark.New = append(mark.New, name)
		}
	}
	if err := r.dir.save(&mark); err != nil {
		return nil, err
	}
	return &mark, atomicfile.MkdirAll(r.dir.file(mark.Restoring), 0o700)
}

func missing(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// takeBack undoes a restore that was cut off, and returns what the server was before; nil when there was none.
func (d dataDir) takeBack(s *settings) (*settings, error) {
	for _, part := range parts {
		if err := d.takeBackPart(s, part); err != nil {
			return nil, err
		}
	}
	_ = atomicfile.Remove(d.file(s.Restoring)) // it is empty now
	if slices.Contains(s.New, settingsFile) {
		return nil, atomicfile.Remove(d.file(settingsFile))
	}
	s.Restoring, s.New = "", nil
	return s, d.save(s)
}

func (d dataDir) takeBackPart(s *settings, part string) error {
	kept := filepath.Join(d.file(s.Restoring), part)
	isNew := slices.Contains(s.New, part)
	if !isNew && missing(kept) {
		return nil // It was not moved yet.
	}
	if err := atomicfile.RemoveAll(d.file(part)); err != nil || isNew {
		return err
	}
	return atomicfile.Rename(kept, d.file(part))
}
