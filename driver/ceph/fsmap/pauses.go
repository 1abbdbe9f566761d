package fsmap

import (
	"errors"
	"syscall"
	"time"
)

// pause is longer than an idle mount of the mgr lasts: it lets go of one within two minutes (module
// volumes, mgr_util.CephfsConnectionPool), and keeps one that it is asked to use.
const pause = 130 * time.Second

// Pauses are the filesystems that the mgr is not asked about, and until when. Where MDS ended their
// work in order, the mgr keeps a mount that is worth nothing any more, for as long as it is asked
// (ESHUTDOWN).
type Pauses map[string]time.Time

// Over says whether the mgr may be asked about a filesystem.
func (p Pauses) Over(fs string, now time.Time) bool { return !now.Before(p[fs]) }

// Note keeps how the mgr answered.
func (p Pauses) Note(fs string, err error, now time.Time) {
	if errors.Is(err, syscall.ESHUTDOWN) {
		p[fs] = now.Add(pause)
	}
}
