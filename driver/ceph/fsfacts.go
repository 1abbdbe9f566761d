package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsspec"
	"github.com/holdfast-storage/holdfast/engine"
)

// These are what Ceph says of filesystems.
type (
	FSFacts = fsmap.Facts
	FS      = fsmap.FS
	MDS     = fsmap.MDS
)

// fillFS asks for the map of filesystems when it has changed, where the cluster has Filesystems or MDS.
func (c *conn) fillFS(ctx context.Context, view *engine.View, status *statusAnswer, o *Observation) error {
	all := engine.OfKind[*api.Filesystem](view.Resources)
	if len(all) == 0 {
		return nil
	}
	if c.fs == nil || c.fs.Epoch < status.FSMap.Epoch {
		fs := &fsmap.Map{}
		if err := c.ask(ctx, "fs dump", fs); err != nil {
			return err
		}
		c.fs = fs
	}
	o.FS = c.fs.Facts()
	for _, f := range all {
		if o.MgrAvailable && wantsGroups(f) && c.pauses.Over(f.Name, c.now()) && o.FS.Filesystems[f.Name].MDS[0].State == fsmap.Active {
			if groups, ok := c.groups(ctx, f); ok {
				o.FS.Groups[f.Name] = groups
			}
		}
	}
	return nil
}

// wantsGroups says whether subvolume groups are to be made, or to have another quota, or are missed.
func wantsGroups(f *api.Filesystem) bool {
	if f.DeletionTimestamp == nil && (len(f.Status.LostSubvolumeGroups) > 0 || strings.Contains(f.Status.Lost, groupIDPrefix)) {
		return true
	}
	return f.DeletionTimestamp == nil && slices.ContainsFunc(f.Spec.SubvolumeGroups, func(g api.SubvolumeGroup) bool {
		return !slices.ContainsFunc(f.Status.SubvolumeGroups, func(have api.SubvolumeGroup) bool {
			return have.Name == g.Name && fsspec.Quota(have) == fsspec.Quota(g)
		})
	})
}

// groups asks the manager, which may need a moment, as it mounts the filesystem for it.
func (c *conn) groups(ctx context.Context, f *api.Filesystem) (map[string]int64, bool) {
	var all []struct {
		Name string `json:"name"`
	}
	if err := c.askMgr(ctx, command{"prefix": "fs subvolumegroup ls", "vol_name": f.Name, "format": "json"}, &all); err != nil {
		c.pauses.Note(f.Name, err, c.now())
		return nil, false
	}
	groups := map[string]int64{}
	for _, g := range all {
		if !slices.ContainsFunc(f.Spec.SubvolumeGroups, func(x api.SubvolumeGroup) bool { return x.Name == g.Name }) {
			continue
		}
		var info struct {
			Quota json.RawMessage `json:"bytes_quota"` // a number, or "infinite"
		}
		if c.askMgr(ctx, command{"prefix": "fs subvolumegroup info", "vol_name": f.Name, "group_name": g.Name, "format": "json"}, &info) != nil {
			return nil, false
		}
		var bytes int64
		_, _ = fmt.Sscanf(string(info.Quota), "%d", &bytes) // a word stays 0
		groups[g.Name] = bytes
	}
	return groups, true
}
