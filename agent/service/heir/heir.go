// Package heir tells the directory of a daemon from one that an earlier Daemon of the same name
// left, such as that of a host that was removed while it was away and joined again.
package heir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// ownerFile has the UID of the Daemon that a directory belongs to, and what it belongs to beside:
// the pool, for one.
const ownerFile = "owner"

// Inherit notes that the daemon's directory is its own from now on, and the system's that is named;
// empty where it has no identity.
func Inherit(l *service.Local, system string) error {
	return note(l, string(l.Daemon.UID)+" "+system+"\n")
}

// found makes the daemon's directory.
func found(l *service.Local, system string) error {
	if err := atomicfile.MkdirAll(l.Data, 0o700); err != nil {
		return fmt.Errorf("while making the daemon's directory: %w", err)
	}
	return Inherit(l, system)
}

func note(l *service.Local, owner string) error {
	path := filepath.Join(l.Data, ownerFile)
	if have, err := os.ReadFile(path); err == nil && string(have) == owner {
		return nil
	}
	if err := atomicfile.Write(path, []byte(owner), 0o644); err != nil {
		return fmt.Errorf("while noting whose the daemon's directory is: %w", err)
	}
	return nil
}

// strange is written as the owner of a directory that an earlier Holdfast prepared for a Daemon
// that is gone: what is told of the new one meanwhile is no sign that the directory is its own.
const strange = "unknown"

// Foreign says whether the directory was left by a Daemon of another system of the name, or by
// another Daemon while the driver says that its system knows nothing of this one
// (api.ParameterNewcomer): then nothing in it is of use. Without that word the directory is taken
// over, as after a restored backup. An earlier Holdfast noted no owner: Foreign notes whose the
// directory is, so that a later look says the same. Where there is none, Foreign makes it and notes
// that it is this Daemon's: what an attempt to prepare it leaves there must not pass for an earlier
// daemon's in the next attempt.
func Foreign(l *service.Local, system string) (bool, error) {
	if _, err := os.Stat(l.Data); errors.Is(err, fs.ErrNotExist) {
		return false, found(l, system)
	}
	have, err := os.ReadFile(filepath.Join(l.Data, ownerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("while reading whose the daemon's directory is: %w", err)
	}
	uid, of, _ := strings.Cut(strings.TrimSpace(string(have)), " ")
	newcomer := l.Daemon.Spec.Parameters[api.ParameterNewcomer] != ""
	switch {
	case uid == string(l.Daemon.UID) && uid != "":
		return false, nil
	case of != "" && of != system:
		return true, nil
	case uid == "" && newcomer && ran(&l.Daemon.Status):
		return false, Inherit(l, system)
	case uid == "" && newcomer:
		return true, note(l, strange+"\n")
	}
	return newcomer, nil
}

// ran says whether the Daemon was ever prepared or its process started. The status is of the Daemon
// with this UID, so its directory is its own. Pending, Preparing and Failed alone do not say that
// anything was made.
func ran(s *api.DaemonStatus) bool {
	switch s.State {
	case api.DaemonRunning, api.DaemonBackOff, api.DaemonStopping, api.DaemonStopped, api.DaemonPrepared:
		return true
	default:
		return s.PID != 0 || s.Started != nil || s.Restarts > 0 || s.LastExit != nil || s.Report != "" || s.Version != ""
	}
}
