package ceph

import (
	"os"
	"strconv"
	"strings"
)

const (
	fileAIO = "/proc/sys/fs/aio-max-nr"
	// aioRequests is what Ceph's packages set by /usr/lib/sysctl.d/30-ceph-osd.conf, which counts from the next boot only, and nowhere without
	// a boot that reads it. An OSD takes 1,024 of them three to five times; with the kernel's 65,536 about the fifteenth of a host, or one that
	// is being made, fails.
	aioRequests = 1 << 20
)

// allowAIO has the kernel allow as many requests of asynchronous I/O at a time as the OSDs of a large host take. Where the file may not be
// written, as in a container, nothing is said: it may be enough, and ceph-osd names the file when it is not.
func allowAIO(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return
	}
	if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && n < aioRequests {
		_ = os.WriteFile(file, []byte(strconv.Itoa(aioRequests)), 0)
	}
}
