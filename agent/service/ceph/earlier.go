package ceph

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
)

// setEarlierAside moves the directory of an earlier OSD of the same number out of the way. A host that
// was removed while it was off has such a directory when it is back, and Ceph gives the number to the
// next OSD.
func setEarlierAside(l *service.Local, dir string) error {
	have, err := os.ReadFile(filepath.Join(dir, "fsid"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading whose directory %s is: %w", dir, err)
	}
	was, want := strings.TrimSpace(string(have)), l.Parameters[paramOSDUUID]
	if was == "" || want == "" || strings.EqualFold(was, want) {
		return nil
	}
	aside := dir + ".of-" + filepath.Base(was)
	if err := errors.Join(os.RemoveAll(aside), os.Rename(dir, aside)); err != nil {
		return fmt.Errorf("while moving the directory of an earlier osd.%s aside: %w", l.Daemon.Spec.ID, err)
	}
	return nil
}
