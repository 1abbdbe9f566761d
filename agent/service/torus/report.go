package torus

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Report tells who the peer is, and what Torus says of the cluster where that is asked for.
func (t *Torusd) Report(ctx context.Context, l *service.Local) (string, error) {
	etcd := l.Parameters[torus.ParamEtcd]
	out, err := ctl(ctx, etcd, "list-peers", "--csv")
	if err != nil {
		return "", fmt.Errorf("torusctl list-peers: %w", err)
	}
	peers, moving, err := torus.ParsePeers(out)
	if err != nil {
		return "", err
	}
	r := torus.Report{Generation: l.Daemon.Generation}
	if r.UUID, err = ownUUID(l, peers); err != nil {
		return "", err
	}
	if r.Started, r.Settled, err = t.settled(l, peers); err != nil {
		return "", err
	}
	if l.Parameters[torus.ParamReport] == torus.DepthCluster {
		if r.Cluster, err = cluster(ctx, etcd); err != nil {
			return "", err
		}
		r.Cluster.Peers = peers
		r.Cluster.Moving, r.Cluster.Back = t.moving(l.Data, r.Cluster)
		r.Cluster.Moving = r.Cluster.Moving || moving
	}
	return r.Text()
}

// ownUUID finds the peer by its address, and keeps what it found for the time in which Torus does not hear it.
func ownUUID(l *service.Local, peers []torus.Peer) (string, error) {
	kept, err := readUUID(l)
	if err != nil {
		return "", err
	}
	for _, p := range peers {
		if p.Address == l.Parameters[torus.ParamPeer] && p.UUID != kept {
			return p.UUID, atomicfile.Write(filepath.Join(l.Data, uuidFile), []byte(p.UUID+"\n"), 0o644)
		}
	}
	return kept, nil
}

// cluster asks for all but the peers, with commands that every release of torusctl has.
func cluster(ctx context.Context, etcd string) (*torus.Cluster, error) {
	c := &torus.Cluster{}
	out, err := ctl(ctx, etcd, "ring", "get")
	if err != nil {
		return nil, fmt.Errorf("torusctl ring get: %w", err)
	}
	if c.Replication, err = torus.ParseReplication(out); err != nil {
		return nil, err
	}
	if out, err = ctl(ctx, etcd, "volume", "list", "--csv"); err != nil {
		return nil, fmt.Errorf("torusctl volume list: %w", err)
	}
	c.Volumes, err = torus.ParseVolumes(out)
	return c, err
}
