package ceph

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// kindCephx is the kind of Secrets with a key of Ceph's own.
const kindCephx = "cephx"

// The parameters of a SecretWant: the entity, and its capabilities as "caps mon" and so on.
const (
	paramEntity = "entity"
	paramCaps   = "caps "
)

// capsOf are the capabilities of an entity, by what they concern. Those of the daemons are what Ceph's own manual deployment
// gives them (Ceph docs, "Manual Deployment"; for OSDs, what 'osd new' sets).
func capsOf(entity string) map[string]string {
	kind, _, _ := strings.Cut(entity, ".")
	switch {
	case entity == entityMon:
		return map[string]string{"mon": "allow *"}
	case entity == entityAdmin:
		return map[string]string{"mds": "allow *", "mgr": "allow *", "mon": "allow *", "osd": "allow *"}
	case strings.HasPrefix(entity, rgw.EntityPrefix):
		return gatewayCaps(entity)
	case strings.HasPrefix(entity, rbdmirror.EntityPrefix):
		// Its agent also writes down where the other cluster is, and asks which daemons there are, neither of which the profile covers
		// ('rbd mirror pool peer bootstrap import', 'rbd mirror pool status').
		return map[string]string{
			"mgr": "profile rbd", "osd": "profile rbd",
			"mon": "profile rbd-mirror, allow command 'config-key set' with key prefix rbd/mirror/, allow command 'service dump', allow command 'service status'",
		}
	case entity == rbdmirror.PeerEntity:
		return map[string]string{"mon": "profile rbd-mirror-peer", "osd": "profile rbd"}
	case strings.HasPrefix(entity, nfsPrefix):
		return map[string]string{"mds": "allow rw", "mon": "allow r", "osd": "allow rw tag cephfs data=*"}
	case kind == "client":
		// Ceph imports no key without capabilities. These let a client reach the mons; what it may do is set afterwards.
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
		"mon": "allow r", "mgr": "allow rw", "osd": fmt.Sprintf("allow rwx pool=%s, allow rwx pool=%s", rgw.PoolMeta(store), rgw.PoolData(store)),
	}
}

// secretWant asks for the key of an entity.
func (p *planner) secretWant(entity string) engine.SecretWant {
	params := map[string]string{paramEntity: entity}
	for what, caps := range capsOf(entity) {
		params[paramCaps+what] = caps
	}
	return engine.SecretWant{
		Name: secretName(p.cluster.Name, entity), Kind: kindCephx, Params: params,
		Annotations: map[string]string{
			AnnotationEntity: entity, AnnotationFSID: p.fsid, AnnotationClusterUID: string(p.cluster.UID),
		},
	}
}

// MakeSecret makes a cephx key and the keyring file that holds it.
func (d *Driver) MakeSecret(want engine.SecretWant) (map[string][]byte, error) {
	if want.Kind == kindS3 {
		return makeUserKeys(want), nil
	}
	entity := want.Params[paramEntity]
	if want.Kind != kindCephx || entity == "" {
		return nil, fmt.Errorf("making secret %s: kind %q is not known to the driver for Ceph", want.Name, want.Kind)
	}
	key, err := newKey(time.Now()) //nolint:forbidigo // a key is made once, and by no plan
	if err != nil {
		return nil, fmt.Errorf("making secret %s: %w", want.Name, err)
	}
	caps := map[string]string{}
	for k, v := range want.Params {
		if what, ok := strings.CutPrefix(k, paramCaps); ok {
			caps[what] = v
		}
	}
	data := map[string][]byte{secretKey: []byte(key), secretKeyring: []byte(keyring(entity, key, caps))}
	if strings.HasPrefix(entity, "osd.") {
		data[api.KeyLUKS] = []byte(rand.Text() + rand.Text()) // for the devices of one that is encrypted: 260 bits
	}
	return data, nil
}

// keyring is a keyring file with one entity.
func keyring(entity, key string, caps map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[%s]\n\tkey = %s\n", entity, key)
	for _, what := range slices.Sorted(maps.Keys(caps)) {
		fmt.Fprintf(&b, "\tcaps %s = %q\n", what, caps[what])
	}
	return b.String()
}

// newKey makes a cephx key as CryptoKey::encode does (src/auth/Crypto.cc): type 1 (AES), the time of its making in seconds
// and nanoseconds, the length of the secret, and the secret; all little endian, in base64.
func newKey(now time.Time) (string, error) {
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
