package gluster

import (
	"encoding/binary"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// limitAttribute begins the name of the attribute in which a brick keeps the limit on its volume. A number follows, which is another one
// each time that quota is turned on.
const limitAttribute = "trusted.glusterfs.quota.limit-set"

// limitOf is how many bytes the volume of a brick may hold, or 0. 'gluster volume quota V list' would tell it, too, but mounts the volume
// each time, and says that there is none where glusterd has directories of its own (10.3).
func limitOf(path string) int64 {
	name := lastLimit(path)
	if name == "" {
		return 0
	}
	var value [16]byte // the hard limit, and the share of it that is the soft one
	if n, err := unix.Getxattr(path, name, value[:]); err != nil || n < 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(value[:8]))
}

// lastLimit is the attribute of the last time that quota was turned on.
func lastLimit(path string) (last string) {
	names := make([]byte, 16<<10)
	n, err := unix.Listxattr(path, names)
	if err != nil {
		return ""
	}
	best := -1
	for name := range strings.SplitSeq(string(names[:n]), "\x00") {
		rest, ok := strings.CutPrefix(name, limitAttribute)
		number, _ := strconv.Atoi(strings.TrimPrefix(rest, ".")) // without a number it is the first
		if ok && number > best {
			best, last = number, name
		}
	}
	return last
}
