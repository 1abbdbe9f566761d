package control

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// seatRoom is what must be free for a member of etcd to begin, in bytes: two files of its log, which are of 61 MiB from the first moment,
// and a database that grows.
const seatRoom = 512 << 20

// roomForSeat says why there is no room for a member of etcd. That it cannot be found out is no reason.
func (d dataDir) roomForSeat() error {
	var stat unix.Statfs_t
	if err := unix.Statfs(string(d), &stat); err != nil {
		return nil //nolint:nilerr // said above
	}
	return roomIn(string(d), int64(stat.Bavail)*stat.Bsize)
}

func roomIn(dir string, free int64) error {
	if free >= seatRoom {
		return nil
	}
	return fmt.Errorf("%d MiB are free in %s, and %d MiB are needed: free some space there", free>>20, dir, int64(seatRoom)>>20)
}
