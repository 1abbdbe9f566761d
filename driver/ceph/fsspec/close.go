package fsspec

import "github.com/holdfast-storage/holdfast/driver/ceph/fsmap"

// Closing is how far a file system is that stays in Ceph while its MDS go. Without it Ceph reports
// a failed file system for ever (MDS_ALL_DOWN), and the next MDS wait for the clients of the last
// ones.
type Closing int

const (
	// Open says that MDS serve it, or should.
	Open Closing = iota
	// Stopping says that its MDS write their journals and end the sessions of clients ('ceph fs
	// set NAME down true'), and Ceph misses no standby.
	Stopping
	// Closed says that no MDS is needed.
	Closed
)

// ClosingOf says how far a file system is that a Filesystem leaves behind.
func ClosingOf(fs *fsmap.FS) Closing {
	if fs.MaxMDS > 0 || fs.StandbyWanted > 0 {
		return Open
	}
	if len(fs.Down)+len(fs.Damaged) > 0 {
		return Closed // Ceph stops no rank of a file system of which one is missing
	}
	for _, m := range fs.MDS {
		if !m.Laggy { // one that is hung writes nothing
			return Stopping
		}
	}
	return Closed
}
