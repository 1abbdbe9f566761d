package torus

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// DestroyLocalService removes, where the data goes with the daemon, what lies outside of the
// daemon's directory: the ring and the volumes in an etcd that the cluster was given, and the
// store.
func (*Torusd) DestroyLocalService(ctx context.Context, l *service.Local) error {
	if l.Daemon.Spec.OnRemoval != api.DeletionWipe {
		return nil
	}
	if err := wipeGiven(ctx, l); err != nil {
		return err
	}
	store := l.Parameters[torus.ParamStore]
	if filepath.Base(store) != l.Daemon.Name {
		return nil // only a directory that carries the daemon's own name was made by it
	}
	if err := atomicfile.RemoveAll(store); err != nil {
		return fmt.Errorf("while removing the store: %w", err)
	}
	return nil
}

// wipeGiven has the first of the etcd's addresses that answers forget the ring and the volumes. The
// whole cluster ends with this daemon: one that leaves alone keeps its data.
func wipeGiven(ctx context.Context, l *service.Local) error {
	given := l.Parameters[torus.ParamGiven]
	uuid, err := readUUID(l)
	if given == "" || uuid == "" || err != nil {
		return err
	}
	var faults []error
	for etcd := range strings.SplitSeq(given, ",") {
		err := wipe(ctx, etcd, uuid)
		if err == nil {
			return nil
		}
		faults = append(faults, err)
	}
	return fmt.Errorf("cannot remove the ring and the volumes from the etcd %s: start the etcd; if it is lost for good, "+
		"start an empty one at its address: %w", given, errors.Join(faults...))
}

// wipe removes all that an etcd has of a Torus, if the peer belongs to its ring: otherwise the etcd
// has those of a later Torus, or none any more.
func wipe(ctx context.Context, etcd, uuid string) error {
	out, err := ctl(ctx, etcd, "list-peers", "--csv")
	if f := (*failure)(nil); errors.As(err, &f) && torus.Forgotten(f.words) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("torusctl list-peers: %w", err)
	}
	peers, _, err := torus.ParsePeers(out)
	isMember := slices.ContainsFunc(peers, func(p torus.Peer) bool { return p.UUID == uuid && p.State != torus.PeerAvail })
	if err != nil || !isMember {
		return err
	}
	if _, err := ctl(ctx, etcd, "wipe", "--yes-i-am-sure"); err != nil {
		return fmt.Errorf("torusctl wipe: %w", err)
	}
	return nil
}
