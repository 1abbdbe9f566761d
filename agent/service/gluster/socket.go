package gluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// packageSocket is where GlusterFS's own programs look for glusterd. Some of them cannot be told otherwise: 'gluster volume heal' does
// not pass on what it was told itself (10.3).
var packageSocket = "/var/run/glusterd.socket" // another place in tests

func socketOf(l *service.Local) string { return filepath.Join(l.Run, "cli.socket") }

// showSocket has the programs find this glusterd, unless the package's own or another pool's is there: a person who is told to run
// gluster needs to know nothing else.
func showSocket(l *service.Local) error { return link(packageSocket, socketOf(l)) }

// hideSocket undoes it.
func hideSocket(l *service.Local) error {
	if to, err := os.Readlink(packageSocket); err != nil || to != socketOf(l) {
		return nil //nolint:nilerr // it is none of ours
	}
	return atomicfile.Remove(packageSocket)
}

// link makes a symbolic link in the place of nothing, or of one that leads nowhere.
func link(path, to string) error {
	if _, err := os.Lstat(path); err == nil {
		if have, err := os.Readlink(path); err != nil || have == to {
			return nil //nolint:nilerr // it is a socket of its own, or leads there already
		}
		if _, err := os.Stat(path); err == nil {
			return nil
		}
		if err := atomicfile.Remove(path); err != nil {
			return fmt.Errorf("while replacing a link that leads nowhere: %w", err)
		}
	}
	if err := atomicfile.Guarded(path, func() error { return os.Symlink(to, path) }); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("while linking glusterd's socket: %w", err)
	}
	return nil
}
