// Package heir tells the directory of a daemon from one that an earlier Daemon of the same name left, such as that of a host that was
// removed while it was away and joined again.
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

// ownerFile has the UID of the Daemon that a directory belongs to, and what it belongs to beside: the pool, for one.
const ownerFile = "owner"

// Inherit notes that the daemon's directory is its own from now on, and the system's that is named; empty where it has no identity.
func Inherit(l *service.Local, system string) error {
	path, want := filepath.Join(l.Data, ownerFile), string(l.Daemon.UID)+" "+system+"\n"
	if have, err := os.ReadFile(path); err == nil && string(have) == want {
		return nil
	}
	if err := atomicfile.Write(path, []byte(want), 0o644); err != nil {
		return fmt.Errorf("while noting whose the daemon's directory is: %w", err)
	}
	return nil
}

// Foreign says whether the directory was left by a Daemon of another system of the name, or by another Daemon while the driver says that
// its system knows nothing of this one (api.ParameterNewcomer): then nothing in it is of use. Without that word the directory is taken
// over, as after a restored backup.
func Foreign(l *service.Local, system string) (bool, error) {
	if _, err := os.Stat(l.Data); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	have, err := os.ReadFile(filepath.Join(l.Data, ownerFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, fmt.Errorf("while reading whose the daemon's directory is: %w", err)
	}
	uid, of, _ := strings.Cut(strings.TrimSpace(string(have)), " ")
	switch {
	case uid == string(l.Daemon.UID):
		return false, nil
	case of != "" && of != system:
		return true, nil
	case uid == "" && ran(&l.Daemon.Status):
		return false, nil // an earlier Holdfast prepared it, which noted no owner
	}
	return l.Daemon.Spec.Parameters[api.ParameterNewcomer] != "", nil
}

// ran says whether a Daemon's process was ever started. The status is of the Daemon with this UID, so its directory is its own.
func ran(s *api.DaemonStatus) bool {
	switch s.State {
	case api.DaemonRunning, api.DaemonBackOff, api.DaemonStopping, api.DaemonStopped, api.DaemonPrepared:
		return true
	}
	return s.PID != 0 || s.Started != nil || s.Restarts > 0 || s.LastExit != nil || s.Report != ""
}
