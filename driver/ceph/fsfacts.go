package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// FSFacts are what Ceph says of filesystems. Nobody writes to them.
type FSFacts struct {
	// Filesystems are Ceph's filesystems by their names.
	Filesystems map[string]FS
	// Standbys are the names of the MDS that stand by.
	Standbys []string
	// Groups are the subvolume groups of filesystems and the bytes that each may hold, zero for any number. They are asked for where some are
	// to be made; one is missing as long as the manager has not said it.
	Groups map[string]map[string]int64
}

// FS is a filesystem in Ceph's map.
type FS struct {
	ID                    int64
	MaxMDS, StandbyWanted int
	MetadataPool          int64
	DataPools             []int64
	// MDS are those that have a rank, by their ranks.
	MDS map[int]MDS
	// Down are ranks that nobody has, and Damaged those that nobody may have before they are repaired.
	Down, Damaged []int
	// Closed is set while no MDS may take a rank, as after 'ceph fs fail'.
	Closed bool
}

// MDS is a metadata server that has a rank.
type MDS struct {
	Name string
	// State is such as "up:active" or "up:replay".
	State string
}

const mdsActive = "up:active"

// mdsNotJoinable is CEPH_MDSMAP_NOT_JOINABLE (include/ceph_fs.h).
const mdsNotJoinable = 1

// fsMap is the part of 'fs dump' that matters here.
type fsMap struct {
	Epoch       int        `json:"epoch"`
	Standbys    []mdsInfo  `json:"standbys"`
	Filesystems []fsAnswer `json:"filesystems"`
}

type mdsInfo struct {
	Name  string `json:"name"`
	Rank  int    `json:"rank"`
	State string `json:"state"`
}

type fsAnswer struct {
	ID  int64 `json:"id"`
	Map struct {
		Name     string             `json:"fs_name"`
		MaxMDS   int                `json:"max_mds"`
		Wanted   int                `json:"standby_count_wanted"`
		Metadata int64              `json:"metadata_pool"`
		Data     []int64            `json:"data_pools"`
		Flags    int                `json:"flags"`
		Failed   []int              `json:"failed"`
		Damaged  []int              `json:"damaged"`
		Info     map[string]mdsInfo `json:"info"`
	} `json:"mdsmap"`
}

func (m *fsMap) facts() *FSFacts {
	facts := &FSFacts{Filesystems: map[string]FS{}, Groups: map[string]map[string]int64{}}
	for _, s := range m.Standbys {
		facts.Standbys = append(facts.Standbys, s.Name)
	}
	for _, a := range m.Filesystems {
		fs := FS{
			ID: a.ID, MaxMDS: a.Map.MaxMDS, StandbyWanted: a.Map.Wanted, MetadataPool: a.Map.Metadata, DataPools: a.Map.Data,
			MDS: map[int]MDS{}, Down: a.Map.Failed, Damaged: a.Map.Damaged,
			Closed: a.Map.Flags&mdsNotJoinable != 0,
		}
		for _, x := range a.Map.Info {
			if x.State == "up:standby-replay" {
				facts.Standbys = append(facts.Standbys, x.Name)
				continue
			}
			fs.MDS[x.Rank] = MDS{x.Name, x.State}
		}
		facts.Filesystems[a.Map.Name] = fs
	}
	slices.Sort(facts.Standbys)
	return facts
}

// fillFS asks for the map of filesystems when it has changed, where the cluster has Filesystems or MDS.
func (c *conn) fillFS(ctx context.Context, view *engine.View, status *statusAnswer, o *Observation) error {
	all := engine.OfKind[*api.Filesystem](view.Resources)
	if len(all) == 0 {
		return nil
	}
	if c.fs == nil || c.fs.Epoch < status.FSMap.Epoch {
		fs := &fsMap{}
		if err := c.ask(ctx, "fs dump", fs); err != nil {
			return err
		}
		c.fs = fs
	}
	o.FS = c.fs.facts()
	for _, f := range all {
		if o.MgrAvailable && wantsGroups(f) && o.FS.Filesystems[f.Name].MDS[0].State == mdsActive {
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
		return !slices.ContainsFunc(f.Status.SubvolumeGroups, func(have api.SubvolumeGroup) bool { return have.Name == g.Name && groupQuota(have) == groupQuota(g) })
	})
}

// groupQuota is how many bytes a group may hold; zero for any number.
func groupQuota(g api.SubvolumeGroup) int64 {
	if g.Quota == nil {
		return 0
	}
	return g.Quota.Value()
}

// groups asks the manager, which may need a moment, as it mounts the filesystem for it.
func (c *conn) groups(ctx context.Context, f *api.Filesystem) (map[string]int64, bool) {
	var all []struct {
		Name string `json:"name"`
	}
	if !c.askMgr(ctx, command{"prefix": "fs subvolumegroup ls", "vol_name": f.Name, "format": "json"}, &all) {
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
		if !c.askMgr(ctx, command{"prefix": "fs subvolumegroup info", "vol_name": f.Name, "group_name": g.Name, "format": "json"}, &info) {
			return nil, false
		}
		var bytes int64
		_, _ = fmt.Sscanf(string(info.Quota), "%d", &bytes) // a word stays 0
		groups[g.Name] = bytes
	}
	return groups, true
}
