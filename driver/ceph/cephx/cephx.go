// Package cephx makes keys of Ceph, and says what the entities that have them may do.
package cephx

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// The entities that every cluster has, and what begins those of NFS servers: the host follows. No
// Client has a dot in its name.
const (
	Mon       = "mon."
	Admin     = "client.admin"
	NFSPrefix = "client.nfs."
)

// Caps are the capabilities of an entity, by what they concern. Those of the daemons are what Ceph's
// own manual deployment gives them (Ceph docs, "Manual Deployment"; for OSDs, what 'osd new' sets).
func Caps(entity string) map[string]string {
	kind, _, _ := strings.Cut(entity, ".")
	switch {
	case entity == Mon:
		return map[string]string{"mon": "allow *"}
	case entity == Admin:
		return map[string]string{"mds": "allow *", "mgr": "allow *", "mon": "allow *", "osd": "allow *"}
	case strings.HasPrefix(entity, rgw.EntityPrefix):
		return gatewayCaps(entity)
	case strings.HasPrefix(entity, rbdmirror.EntityPrefix):
		// Its agent also writes down where the other cluster is, and asks which daemons there are, neither
		// of which the profile covers ('rbd mirror pool peer bootstrap import', 'rbd mirror pool status').
		return map[string]string{
			"mgr": "profile rbd", "osd": "profile rbd",
			"mon": "profile rbd-mirror, allow command 'config-key set' with key prefix rbd/mirror/, " +
				"allow command 'service dump', allow command 'service status'",
		}
	case entity == rbdmirror.PeerEntity:
		return map[string]string{"mon": "profile rbd-mirror-peer", "osd": "profile rbd"}
	case strings.HasPrefix(entity, NFSPrefix):
		return map[string]string{"mds": "allow rw", "mon": "allow r", "osd": "allow rw tag cephfs data=*"}
	case kind == "client":
		// Ceph imports no key without capabilities. These let a client reach the mons; what it may do is
		// set afterwards.
		return map[string]string{"mon": "allow r"}
	case kind == "mgr":
		return map[string]string{"mds": "allow *", "mon": "allow profile mgr", "osd": "allow *"}
	case kind == "mds":
		return map[string]string{"mds": "allow *", "mgr": "allow profile mds", "mon": "allow profile mds", "osd": "allow *"}
	case kind == "osd":
		return map[string]string{"mgr": "allow profile osd", "mon": "allow profile osd", "osd": "allow *"}
	}
	return nil
}

// gatewayCaps let a gateway use the pools of its store, and be known to the managers. Its id begins with the store.
func gatewayCaps(entity string) map[string]string {
	id := strings.TrimPrefix(entity, rgw.EntityPrefix)
	store := id[:max(0, strings.LastIndexByte(id, '-'))]
	return map[string]string{
		"mon": "allow r", "mgr": "allow rw",
		"osd": fmt.Sprintf("allow rwx pool=%s, allow rwx pool=%s", rgw.PoolMeta(store), rgw.PoolData(store)),
	}
}

// Keyring is a keyring file with one entity.
func Keyring(entity, key string, caps map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n\tkey = %s\n", entity, key)
	for _, what := range slices.Sorted(maps.Keys(caps)) {
		fmt.Fprintf(&b, "\tcaps %s = %q\n", what, caps[what])
	}
	return b.String()
}

// NewKey makes a cephx key as CryptoKey::encode does (src/auth/Crypto.cc): type 1 (AES), the time of
// its making in seconds and nanoseconds, the length of the secret, and the secret; all little endian,
// in base64.
func NewKey(now time.Time) (string, error) {
	const typeAES, length = 1, 16
	b := binary.LittleEndian.AppendUint16(nil, typeAES)
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Unix()))
	b = binary.LittleEndian.AppendUint32(b, uint32(now.Nanosecond()))
	b = binary.LittleEndian.AppendUint16(b, length)
	secret := make([]byte, length)
	if _, err := rand.Read(secret); err != nil {
		return "", fmt.Errorf("reading random bytes: %w", err)
	}
	return base64.StdEncoding.EncodeToString(append(b, secret...)), nil
}

// CapsIn are the capabilities in a keyring file with one entity, by what they concern.
func CapsIn(keyring string) map[string]string {
	caps := map[string]string{}
	for line := range strings.Lines(keyring) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " = ")
		what, is := strings.CutPrefix(name, "caps ")
		if text, err := strconv.Unquote(value); is && err == nil {
			caps[what] = text
		}
	}
	return caps
}
