package conn

import (
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// ParameterOvercommit is a parameter of a class. Set to "true", it has volumes be made that are larger
// than what their pool has left.
const ParameterOvercommit = "overcommit"

// Pool is one of a cluster.
type Pool struct {
	Number int64
	Name   string
	// Free is what Ceph can still write to it.
	Free int64
}

type poolStats struct {
	ID    int64
	Name  string
	Stats struct {
		MaxAvail   int64 `json:"max_avail"`
		QuotaBytes int64 `json:"quota_bytes"`
		Stored     int64
	}
}

// poolsOf lists the pools of a cluster.
func poolsOf(ctx context.Context, c rados.Client) ([]Pool, error) {
	out, err := c.Mon(ctx, map[string]any{"prefix": "df", "detail": "detail", "format": "json"}, nil)
	if err != nil {
		return nil, Told(err)
	}
	var answer struct{ Pools []poolStats }
	if err := json.Unmarshal(out, &answer); err != nil {
		return nil, fmt.Errorf("reading the pools: %w", err)
	}
	var all []Pool
	for _, p := range answer.Pools {
		free := p.Stats.MaxAvail
		if quota := p.Stats.QuotaBytes; quota > 0 {
			free = min(free, max(0, quota-p.Stats.Stored))
		}
		all = append(all, Pool{p.ID, p.Name, free})
	}
	return all, nil
}

// FindPool returns the first pool that is meant.
func FindPool(ctx context.Context, c rados.Client, meant func(Pool) bool) (p Pool, found bool, err error) {
	all, err := poolsOf(ctx, c)
	for _, p := range all {
		if meant(p) {
			return p, true, nil
		}
	}
	return Pool{}, false, err
}

// HasRoom refuses what is larger than what the pool has left.
func (p Pool) HasRoom(bytes int64) error {
	if bytes <= p.Free {
		return nil
	}
	return status.Errorf(codes.ResourceExhausted,
		"the volume needs %s and the pool %s has %s left; add storage, ask for less, "+
			"or set the parameter %s of the StorageClass to \"true\"",
		backend.Bytes(bytes), p.Name, backend.Bytes(p.Free), ParameterOvercommit)
}
