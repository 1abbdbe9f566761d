// Package atomicfile writes files so that a power cut leaves either the old or the new content, never a part of it.
package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write puts data into the file at path with exactly the permissions perm, in the place of what was there. When it returns
// nil, the content and the name are on stable storage. The directory must exist. On an error the old file, if any, is
// untouched. Concurrent writers of one path do no harm: one of them wins.
func Write(path string, data []byte, perm os.FileMode) error {
	return guarded(path, func() error { return write(path, data, perm) })
}

func write(path string, data []byte, perm os.FileMode) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return fmt.Errorf("while writing %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			// After a rename that failed to be synced there is nothing to remove.
			_ = os.Remove(f.Name())
			err = fmt.Errorf("while writing %s: %w", path, err)
		}
	}()
	if err := fill(f, data, perm); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return SyncDir(dir)
}

// Remove removes files of one directory, one after the other, for good. One that is gone is no error.
func Remove(paths ...string) error {
	for _, path := range paths {
		err := guarded(path, func() error { return os.Remove(path) })
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(paths) == 0 {
		return nil
	}
	if err := SyncDir(filepath.Dir(paths[0])); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil // nor is one whose directory is
}

// RemoveAll removes a directory and what is in it for good. One that is gone is no error.
func RemoveAll(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return guarded(dir, func() error { return errors.Join(os.RemoveAll(dir), SyncDir(filepath.Dir(dir))) })
}

// Rename gives a file or directory another name for good.
func Rename(old, path string) error {
	return guarded(old, func() error {
		if err := os.Rename(old, path); err != nil {
			return err
		}
		return errors.Join(SyncDir(filepath.Dir(old)), SyncDir(filepath.Dir(path)))
	})
}

// Symlink makes a link at path that leads to target, in the place of what was there. One that leads there already is left as it is.
func Symlink(target, path string) error {
	if have, err := os.Readlink(path); err == nil && have == target {
		return SyncDir(filepath.Dir(path)) // who made it may have died before that
	}
	return guarded(path, func() error {
		fresh := path + ".new"
		if err := os.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := os.Symlink(target, fresh); err != nil {
			return err
		}
		if err := os.Rename(fresh, path); err != nil {
			return err
		}
		return SyncDir(filepath.Dir(path))
	})
}

// MkdirAll makes a directory, with those that it lies in, for good. One that is there is left as it is.
func MkdirAll(dir string, perm os.FileMode) error {
	if isDir(dir) {
		return syncMade(dir)
	}
	return guarded(dir, func() error { return mkdirAll(dir, perm) })
}

// mkdirAll makes each directory only when the name of the one that it lies in is on stable storage, so that one that is there tells that much of all above it.
func mkdirAll(dir string, perm os.FileMode) error {
	if !isDir(dir) {
		if err := mkdirAll(filepath.Dir(dir), perm); err != nil {
			return err
		}
		if err := os.Mkdir(dir, perm); err != nil && !isDir(dir) {
			return err
		}
	}
	return syncMade(dir)
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// syncMade puts the name of a directory that is there on stable storage: who made it may have died before that. It does nothing where that was nobody like
// this process, which may not look there, or the kernel.
func syncMade(dir string) error {
	err := SyncDir(filepath.Dir(dir))
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EINVAL) {
		return nil
	}
	return err
}

// SyncDir puts the names in a directory on stable storage: what was created, renamed or removed in it stays so.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// fill writes, sets the permissions, syncs and closes. The permissions are set before the data is there, so that no moment
// exists at which somebody else could read a secret.
func fill(f *os.File, data []byte, perm os.FileMode) error {
	err := f.Chmod(perm)
	if err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
