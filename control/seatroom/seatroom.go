// Package seatroom says whether a disk has room for a member of etcd.
package seatroom

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// room is what must be free for a member of etcd to begin, in bytes: two files of its log, which are of
// 61 MiB from the first moment, and a database that grows.
const room = 512 << 20

// Check says why there is no room below a directory. That it cannot be found out is no reason.
func Check(dir string) error {
	var stat unix.Statfs_t
	if err := unix.Statfs(dir, &stat); err != nil {
		return nil //nolint:nilerr // said above
	}
	return check(dir, int64(stat.Bavail)*stat.Bsize)
}

func check(dir string, free int64) error {
	if free >= room {
		return nil
	}
	return fmt.Errorf("%d MiB are free in %s, and %d MiB are needed: free some space there",
		free>>20, dir, int64(room)>>20)
}
