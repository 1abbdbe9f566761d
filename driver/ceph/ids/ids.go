// Package ids makes the names and identities that a Ceph cluster and its daemons get. Equal
// arguments give equal results. It is pure.
package ids

import (
	"github.com/google/uuid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Letters names the i-th mon or mgr: a … z, then aa, ab …
func Letters(i int) string {
	if i >= 26 {
		return Letters(i/26-1) + Letters(i%26)
	}
	return string(rune('a' + i))
}

// FSID makes a cluster's fsid from the StorageCluster's UID, which is one already in every home
// that there is.
func FSID(c *api.StorageCluster) string {
	if id, err := uuid.Parse(string(c.UID)); err == nil {
		return id.String()
	}
	return uuid.NewSHA1(uuid.NameSpaceOID, []byte(c.UID)).String()
}

// OSD is the identity of the OSD on a device. It depends on nothing else, so that making the OSD
// again, after a crash at any point, makes the same OSD.
func OSD(fsid, host, device string) string {
	space, err := uuid.Parse(fsid)
	if err != nil {
		space = uuid.NewSHA1(uuid.NameSpaceOID, []byte(fsid))
	}
	return uuid.NewSHA1(space, []byte(host+"/"+device)).String()
}
