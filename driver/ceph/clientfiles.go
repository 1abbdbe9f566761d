package ceph

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/engine"
)

// ClientFiles makes a ceph.conf and a keyring with which Ceph's own tools reach the view's cluster as client.admin. The
// keyring lies at keyringPath, which ceph.conf names.
func ClientFiles(ctx context.Context, view *engine.View, secrets engine.SecretReader, keyringPath string) (conf, keyring []byte, err error) {
	if len(monset.Of(view.Daemons)) == 0 {
		return nil, nil, errors.New("the cluster has no monitors yet")
	}
	cfg, err := configOf(ctx, view, secrets)
	if err != nil {
		return nil, nil, err
	}
	conf = fmt.Appendf(nil, "[global]\nfsid = %s\nmon_host = %s\nkeyring = %s\nlog_file = /dev/null\nadmin_socket =\n", cfg.FSID, cfg.MonHost, keyringPath)
	keyring = fmt.Appendf(nil, "[%s]\n\tkey = %s\n", cfg.Entity, cfg.Key)
	return conf, keyring, nil
}
