package cephfs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-storage/holdfast/csi/conn"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
)

// filesystem is one of the cluster.
type filesystem struct {
	// ID is the number of the filesystem, which stays when it is renamed.
	ID   int64
	Name string
	// Data are the numbers of the data pools. New files are in the first.
	Data []int64
	// Active is set while an MDS serves the root.
	Active bool
}

// fsMap is the part of 'fs dump' that matters here.
type fsMap struct {
	Filesystems []struct {
		ID  int64
		Map struct {
			Name string  `json:"fs_name"`
			Data []int64 `json:"data_pools"`
			Info map[string]struct {
				Rank  int
				State string
			}
		} `json:"mdsmap"`
	}
}

// find returns the first filesystem that is meant.
func find(
	ctx context.Context, c rados.Client, meant func(filesystem) bool,
) (f filesystem, found bool, err error) {
	out, err := c.Mon(ctx, map[string]any{"prefix": "fs dump", "format": "json"}, nil)
	if err != nil {
		return f, false, conn.Told(err)
	}
	var answer fsMap
	if err := json.Unmarshal(out, &answer); err != nil {
		return f, false, fmt.Errorf("reading the filesystems: %w", err)
	}
	for _, a := range answer.Filesystems {
		f := filesystem{ID: a.ID, Name: a.Map.Name, Data: a.Map.Data}
		for _, mds := range a.Map.Info {
			f.Active = f.Active || mds.Rank == 0 && mds.State == "up:active"
		}
		if meant(f) {
			return f, true, nil
		}
	}
	return f, false, nil
}

// isServed refuses a filesystem that no MDS serves: a command to the manager would hang.
func (f filesystem) isServed() error {
	if f.Active {
		return nil
	}
	return status.Errorf(codes.Unavailable,
		"filesystem %s has no active MDS; see the status of the Filesystem; the call is made again", f.Name)
}

// hasRoom refuses what is larger than what the pool for new files has left.
func (f filesystem) hasRoom(ctx context.Context, c rados.Client, bytes int64) error {
	p, found, err := conn.FindPool(ctx, c, func(p conn.Pool) bool { return slices.Index(f.Data, p.Number) == 0 })
	if err != nil {
		return err
	}
	if !found {
		return status.Errorf(codes.Unavailable,
			"filesystem %s has no data pool in the answer of Ceph; the call is made again", f.Name)
	}
	return p.HasRoom(bytes)
}
