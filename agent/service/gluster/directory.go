package gluster

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// claimFile lies in each directory that a pool has for its bricks, and holds the pool's identity.
const claimFile = ".holdfast-pool"

// volumeIDAttribute is the attribute by which GlusterFS knows the directory of a brick (16 bytes).
const volumeIDAttribute = "trusted.glusterfs.volume-id"

func directories(l *service.Local) []string {
	return strings.Fields(l.Parameters[glusterd.ParamDirectories])
}

// claimDirectories makes the directories for bricks and notes in each whose it is. One of another pool is left untouched.
func claimDirectories(l *service.Local) error {
	errs := []error{forgetClaims(l)}
	for _, dir := range directories(l) {
		err := dropNote(leftNote(l, dir))
		if err == nil {
			err = claimOnce(l, dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("directory %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// claimOnce claims a directory, and notes that it did. One that was claimed before and does not say so is another one: the file system
// that was mounted there is not, and bricks would be made below its empty mount point.
func claimOnce(l *service.Local, dir string) error {
	note := claimNote(l, dir)
	_, err := os.Lstat(note)
	if err == nil {
		if problem := misplaced(dir, l.Parameters[glusterd.ParamPool]); problem != "" {
			return errors.New(problem)
		}
		return nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := claim(dir, l.Parameters[glusterd.ParamPool]); err != nil {
		return err
	}
	return atomicfile.Write(note, []byte(dir), 0o600)
}

const claimNotePrefix = "claimed-"

// claimNote is a file that says that a directory was claimed for this daemon.
func claimNote(l *service.Local, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(l.Data, fmt.Sprintf("%s%x", claimNotePrefix, sum[:8]))
}

// forgetClaims drops the notes of directories that are not the daemon's any more: named again, they are claimed anew.
func forgetClaims(l *service.Local) error {
	files, err := os.ReadDir(l.Data)
	if err != nil {
		return fmt.Errorf("while looking for claimed directories: %w", err)
	}
	for _, f := range files {
		known := slices.ContainsFunc(directories(l), func(dir string) bool { return claimNote(l, dir) == filepath.Join(l.Data, f.Name()) })
		if !strings.HasPrefix(f.Name(), claimNotePrefix) || known {
			continue
		}
		if err := dropNote(filepath.Join(l.Data, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

// misplaced says that a directory is not the one that was claimed; nothing when it is. What cannot be read says so when it is measured.
func misplaced(dir, pool string) string {
	have, err := os.ReadFile(filepath.Join(dir, claimFile))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return fmt.Sprintf("%s was marked for this pool and has no mark (%s) now, so it was not touched: mount its file system again ('mount %s'). "+
			"If its data is lost, remove the directory from the StorageNode, wait until its bricks are elsewhere, and add it again", dir, claimFile, dir)
	}
	if err == nil && strings.TrimSpace(string(have)) != pool {
		return fmt.Sprintf("%s holds bricks of another pool now (%s): mount the file system that was there ('mount %s')", dir, strings.TrimSpace(string(have)), dir)
	}
	return ""
}

func claim(dir, pool string) error {
	if err := atomicfile.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path := filepath.Join(dir, claimFile)
	have, err := os.ReadFile(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return atomicfile.Write(path, []byte(pool+"\n"), 0o644)
	case err != nil:
		return err
	case strings.TrimSpace(string(have)) != pool:
		return fmt.Errorf("it holds bricks of another pool (%s): it was not touched. Name another directory, or remove %s if its "+
			"data is not needed", strings.TrimSpace(string(have)), path)
	}
	return nil
}

// leaveDirectories removes the bricks from the daemon's directories, where its data goes with it.
func leaveDirectories(l *service.Local) error {
	if l.Daemon.Spec.OnRemoval != api.DeletionWipe {
		return nil
	}
	var errs []error
	for _, dir := range directories(l) {
		if err := leave(dir, l.Parameters[glusterd.ParamPool], leftNote(l, dir)); err != nil {
			errs = append(errs, fmt.Errorf("directory %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// leftNote is a file that says that a directory was this daemon's, from before its claim is removed until the directory is: an empty one that was never
// claimed may be where somebody mounts something.
func leftNote(l *service.Local, dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return filepath.Join(l.Data, fmt.Sprintf("left-%x", sum[:8]))
}

// leave removes what GlusterFS made in a directory of this pool, and nothing else that may lie in it.
func leave(dir, pool, note string) error {
	have, err := os.ReadFile(filepath.Join(dir, claimFile))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return removeLeft(dir, note) // who was to do that may have been killed
	case err != nil:
		return err
	case strings.TrimSpace(string(have)) != pool:
		return nil
	}
	if err := removeBricks(dir); err != nil {
		return err
	}
	if err := atomicfile.Write(note, []byte(dir), 0o600); err != nil {
		return err
	}
	if err := atomicfile.Remove(filepath.Join(dir, claimFile)); err != nil {
		return err
	}
	return removeLeft(dir, note)
}

func removeBricks(dir string) error {
	bricks, err := storedBricks(dir)
	if err != nil {
		return err
	}
	for _, b := range bricks {
		if b.Volume == "" {
			continue
		}
		if err := atomicfile.RemoveAll(b.Path); err != nil {
			return fmt.Errorf("while removing a brick: %w", err)
		}
	}
	return nil
}

// removeLeft removes a directory that was this daemon's.
func removeLeft(dir, note string) error {
	if _, err := os.Lstat(note); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := removeEmpty(dir); err != nil {
		return err
	}
	return dropNote(note)
}

// removeEmpty removes a directory, unless it holds something or a file system is mounted on it.
func removeEmpty(dir string) error {
	if left, err := os.ReadDir(dir); errors.Is(err, os.ErrNotExist) || len(left) > 0 {
		return nil
	}
	if err := atomicfile.Remove(dir); err != nil && !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EBUSY) {
		return err
	}
	return nil
}

// wipeDevices wipes the devices that are there, and carry the file systems of this pool, where its data goes.
func wipeDevices(ctx context.Context, l *service.Local) error {
	if l.Daemon.Spec.OnRemoval != api.DeletionWipe {
		return nil
	}
	var errs []error
	for _, dev := range l.Devices {
		if err := wipe(ctx, dev.Path, uuidOf(l.Parameters[glusterd.ParamPool], dev.ID)); err != nil && !gone(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// storedBricks lists the directories in a store that could be bricks.
func storedBricks(dir string) ([]glusterd.StoredBrick, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []glusterd.StoredBrick
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "lost+found" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		out = append(out, glusterd.StoredBrick{Path: path, Volume: volumeID(path), Limit: limitOf(path)})
	}
	return out, nil
}

// volumeID is the identity of the volume that a directory is or was a brick of, or "".
func volumeID(path string) string {
	var id [16]byte
	if n, err := unix.Getxattr(path, volumeIDAttribute, id[:]); err != nil || n != len(id) {
		return ""
	}
	return uuidText(id[:])
}
