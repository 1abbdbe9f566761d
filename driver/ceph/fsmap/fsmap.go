// Package fsmap reads what Ceph answers of its filesystems and of the MDS. It is pure.
package fsmap

import "slices"

// Facts are what Ceph says of filesystems. Nobody writes to them.
type Facts struct {
	// Filesystems are Ceph's filesystems by their names.
	Filesystems map[string]FS
	// Standbys are the names of the MDS that stand by.
	Standbys []string
	// Groups are the subvolume groups of filesystems and the bytes that each may hold, zero for any number. They are
	// asked for where some are
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
	// Laggy is set while Ceph gets no sign of life from it, and has no other one to take over.
	Laggy bool
}

// mdsNotJoinable is CEPH_MDSMAP_NOT_JOINABLE (include/ceph_fs.h).
const mdsNotJoinable = 1

// Map is the part of 'fs dump' that matters here.
type Map struct {
	Epoch       int        `json:"epoch"`
	Standbys    []mdsInfo  `json:"standbys"`
	Filesystems []fsAnswer `json:"filesystems"`
}

type mdsInfo struct {
	Name  string `json:"name"`
	Rank  int    `json:"rank"`
	State string `json:"state"`
	// LaggySince is there as long as the MDS is laggy.
	LaggySince string `json:"laggy_since"`
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

// Facts are what the map says.
func (m *Map) Facts() *Facts {
	facts := &Facts{Filesystems: map[string]FS{}, Groups: map[string]map[string]int64{}}
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
			fs.MDS[x.Rank] = MDS{x.Name, x.State, x.LaggySince != ""}
		}
		facts.Filesystems[a.Map.Name] = fs
	}
	slices.Sort(facts.Standbys)
	return facts
}

// Active is the state of an MDS that serves.
const Active = "up:active"

// Knows says whether an MDS serves, or stands by. Of nil nothing is known.
func (x *Facts) Knows(id string) bool {
	return x != nil && (slices.Contains(x.Standbys, id) || x.Serves(id))
}

// Of is what is known of a file system; the zero value where nothing is.
func (x *Facts) Of(name string) FS {
	if x == nil {
		return FS{}
	}
	return x.Filesystems[name]
}

// Serves says whether an MDS has a rank.
func (x *Facts) Serves(id string) bool {
	for _, fs := range x.Filesystems {
		for _, m := range fs.MDS {
			if m.Name == id {
				return true
			}
		}
	}
	return false
}

// TakingOver says whether all ranks have an MDS, and one of them does not serve yet.
func (x *Facts) TakingOver() bool {
	begun := false
	for _, fs := range x.Filesystems {
		if len(fs.Down)+len(fs.Damaged) > 0 {
			return false
		}
		for _, m := range fs.MDS {
			begun = begun || m.State != Active
		}
	}
	return begun
}
