package backend

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
)

// Handle is what a volume is known by for all its life. It has no addresses in it, because monitors
// move.
type Handle struct {
	// Backend is the name of the back end.
	Backend string
	// Cluster is the fsid of the storage cluster.
	Cluster string
	// Pool is what holds the volume in the cluster, by a number or name that stays.
	Pool string
	// Name is the volume's in its pool.
	Name string
}

// String is the CSI volume id.
func (h Handle) String() string {
	return strings.Join([]string{h.Backend, h.Cluster, h.Pool, h.Name}, "/")
}

// Parse reads a CSI volume id; ok is false for one that no version of the driver has made.
func Parse(id string) (h Handle, ok bool) {
	parts := strings.Split(id, "/")
	if len(parts) != 4 || len(id) > 128 {
		return Handle{}, false
	}
	for _, p := range parts {
		if !safe.MatchString(p) {
			return Handle{}, false
		}
	}
	return Handle{parts[0], parts[1], parts[2], parts[3]}, true
}

// safe are names that are safe in paths, in texts and in Ceph.
var safe = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// NameOf is the volume's name in its pool. It follows from the name that the request has, so that a
// request that is made again finds what the first one has made. It is the name itself, such as that
// of the PersistentVolume, where the name is safe and short.
func NameOf(requested string) string {
	if safe.MatchString(requested) {
		return requested
	}
	sum := sha256.Sum256([]byte(requested))
	return "csi-" + hex.EncodeToString(sum[:20])
}

// Dir is the name of a volume's directory on a node.
func Dir(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:8])
}

// Bytes writes a number of bytes for people.
func Bytes(n int64) string {
	const kib, gib = 10, 30
	switch {
	case n >= 1<<gib:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<gib))
	case n >= 1<<(2*kib):
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<(2*kib)))
	}
	return fmt.Sprintf("%d bytes", n)
}
