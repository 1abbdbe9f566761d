// Package private looks for what others may read of the keys below a data directory, and closes it.
package private

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Exposed is something below a data directory that others than its owner may read or change, and
// that holds keys or leads to them.
type Exposed struct {
	Path string
	Mode fs.FileMode
	// Owner is the user that it belongs to, where that is neither root nor the one that runs
	// holdfast, and -1 otherwise.
	Owner int
}

// String says what is wrong with it.
func (e Exposed) String() string {
	if e.Owner >= 0 {
		return fmt.Sprintf("%s (mode %04o, of user %d)", e.Path, e.Mode.Perm(), e.Owner)
	}
	return fmt.Sprintf("%s (mode %04o)", e.Path, e.Mode.Perm())
}

// What holds keys below a data directory: directories with all that is in them, and what is closed
// by its own mode, as etcd's own files are.
var (
	privateTrees = []string{"pki", "host", "snapshots"}
	privateTops  = []string{"admin.kubeconfig", "server.json", "etcd", "etcd.removed", "restore.tmp", "before-restore-*"}
)

// Find looks for what others may read or change of the keys below a data directory. What is
// missing is not exposed.
func Find(dataDir string) ([]Exposed, error) {
	var found []Exposed
	var errs []error
	look := func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			var one *Exposed
			if one, err = exposed(path); one != nil {
				found = append(found, *one)
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
		return nil
	}
	for _, name := range privateTrees {
		root := filepath.Join(dataDir, name)
		if to, err := filepath.EvalSymlinks(root); err == nil {
			root = to // a link to a disk of its own
		}
		_ = filepath.WalkDir(root, look) // look returns no error
	}
	for _, pattern := range privateTops {
		paths, err := filepath.Glob(filepath.Join(dataDir, pattern))
		errs = append(errs, err)
		for _, path := range paths {
			_ = look(path, nil, nil)
		}
	}
	return found, errors.Join(errs...)
}

// exposed looks at one file or directory.
func exposed(path string) (*Exposed, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return nil, err
	}
	one := &Exposed{Path: path, Mode: info.Mode(), Owner: -1}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		one.Owner = int(stat.Uid)
	}
	if info.Mode().Perm()&0o077 == 0 && one.Owner < 0 {
		return nil, nil
	}
	return one, nil
}

// hide has nobody but its owner, who runs holdfast, read or change it.
func (e Exposed) hide() error {
	f, err := os.OpenFile(e.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if e.Owner >= 0 {
		if err := f.Chown(os.Geteuid(), -1); err != nil {
			return err
		}
	}
	return f.Chmod(e.Mode.Perm() &^ 0o077)
}

// Hide sets right what others may read or change of the keys below a data directory, and tells
// of it: whoever could read the authority's key before may have it. A file system that knows no
// modes is no reason not to start.
func Hide(dataDir string, log *slog.Logger) {
	found, err := Find(dataDir)
	if err != nil {
		log.Error("cannot check the file modes of this machine's private keys", "error", err)
	}
	for _, one := range found {
		if err := one.hide(); err != nil {
			log.Error("cannot restrict a private key to its owner: set its owner and mode by hand",
				"key", one.String(), "error", err)
		}
	}
	if len(found) > 0 {
		log.Warn("private keys of this machine were open to other users; their modes are restricted now: "+
			"if other users had access to the machine or to a copy of the directory, run 'holdfast ca rotate' on a server",
			"found", len(found), "first", found[0].String())
	}
}
