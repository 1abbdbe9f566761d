package ceph

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/cephx"
	"github.com/holdfast-storage/holdfast/engine"
)

// kindCephx is the kind of Secrets with a key of Ceph's own.
const kindCephx = "cephx"

// The parameters of a SecretWant: the entity, and its capabilities as "caps mon" and so on.
const (
	paramEntity = "entity"
	paramCaps   = "caps "
)

// secretWant asks for the key of an entity.
func (p *planner) secretWant(entity string) engine.SecretWant {
	params := map[string]string{paramEntity: entity}
	for what, caps := range cephx.Caps(entity) {
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
	key, err := cephx.NewKey(time.Now()) //nolint:forbidigo // a key is made once, and by no plan
	if err != nil {
		return nil, fmt.Errorf("making secret %s: %w", want.Name, err)
	}
	caps := map[string]string{}
	for k, v := range want.Params {
		if what, ok := strings.CutPrefix(k, paramCaps); ok {
			caps[what] = v
		}
	}
	data := map[string][]byte{secretKey: []byte(key), secretKeyring: []byte(cephx.Keyring(entity, key, caps))}
	if strings.HasPrefix(entity, "osd.") {
		data[api.KeyLUKS] = []byte(rand.Text() + rand.Text()) // for the devices of one that is encrypted: 260 bits
	}
	return data, nil
}
