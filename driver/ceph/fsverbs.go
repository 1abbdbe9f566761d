package ceph

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"syscall"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsspec"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
)

// The verbs of filesystems. The object is "filesystem/NAME".
const (
	verbFSNew       = "fs new"
	verbFSSet       = "fs set"
	verbFSAddPool   = "fs add_data_pool"
	verbFSRm        = "fs rm"
	verbGroupCreate = "fs subvolumegroup create"
	verbGroupResize = "fs subvolumegroup resize"
	verbMDSFail     = "mds fail" // of one that stands by
)

// The parameters of those commands.
const (
	paramMetadata = "metadata"
	paramData     = "data"
	paramGroup    = "group"
)

// The options of a filesystem that a Filesystem decides on.
const (
	optionMaxMDS  = "max_mds"
	optionStandby = "standby_count_wanted"
	optionDown    = "down" // the MDS end their work in order
)

// filesystem is the name of the filesystem that a command is about.
func (r request) filesystem() string { return strings.TrimPrefix(r.Object, "filesystem/") }

// fsNew makes a filesystem; one that is there already is left as it is.
func (c *conn) fsNew(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "fs_name": r.filesystem(), "metadata": r.Params[paramMetadata], "data": r.Params[paramData]})
}

func (c *conn) fsSet(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "fs_name": r.filesystem(), "var": r.Params[paramOption], "val": r.Params[paramValue]})
}

func (c *conn) fsAddPool(ctx context.Context, r request) error {
	return c.plain(ctx, r, command{"prefix": r.Verb, "fs_name": r.filesystem(), "pool": r.Params[paramData]})
}

func performMDSFail(c *conn, ctx context.Context, r request) error { //nolint:revive // as methods of conn
	return c.plain(ctx, r, command{"prefix": r.Verb, "role_or_gid": r.Params[paramID]})
}

// fsRm takes a filesystem from its MDS, and then away. One that is gone already, or has another name by now, is no error.
func (c *conn) fsRm(ctx context.Context, r request) error {
	var now fsmap.Map
	if err := c.ask(ctx, "fs dump", &now); err != nil {
		return wrapped(err, r)
	}
	if fs, there := now.Facts().Filesystems[r.filesystem()]; !there || strconv.FormatInt(fs.ID, 10) != r.Params[paramID] {
		return nil
	}
	err := c.plain(ctx, r, command{"prefix": "fs fail", "fs_name": r.filesystem()})
	if refused := (*rados.CommandError)(nil); errors.As(err, &refused) && refused.Errno == syscall.ENOENT {
		return nil
	}
	if err != nil {
		return err
	}
	return c.plain(ctx, r, command{"prefix": r.Verb, "fs_name": r.filesystem(), "yes_i_really_mean_it": true})
}

// groupCreate makes a subvolume group, or sets the quota of one that is there.
func (c *conn) groupCreate(ctx context.Context, r request) error {
	cmd := command{"prefix": r.Verb, "vol_name": r.filesystem(), "group_name": r.Params[paramGroup]}
	if n, err := strconv.ParseInt(r.Params[paramValue], 10, 64); err == nil && n > 0 {
		cmd["size"] = n
	}
	_, err := c.client.Mgr(ctx, cmd, nil)
	return wrapped(err, r)
}

// groupResize sets the quota of a group, or takes it away.
func (c *conn) groupResize(ctx context.Context, r request) error {
	size := r.Params[paramValue]
	if size == "0" {
		size = "inf"
	}
	_, err := c.client.Mgr(ctx, command{"prefix": r.Verb, "vol_name": r.filesystem(), "group_name": r.Params[paramGroup], "new_size": size}, nil)
	return wrapped(err, r)
}

// fsFacts are what Ceph says of filesystems, to be changed by commands. A Ceph that was never there has none of them yet.
func (f *foresight) fsFacts() *FSFacts {
	x := f.seen.FS
	if x == nil {
		if f.seen.Reachable || len(engine.OfKind[*api.Filesystem](f.after.Resources)) == 0 {
			return nil
		}
		x = &FSFacts{}
	}
	y := &FSFacts{Filesystems: map[string]FS{}, Groups: map[string]map[string]int64{}}
	maps.Copy(y.Filesystems, x.Filesystems)
	for fs, groups := range x.Groups {
		y.Groups[fs] = maps.Clone(groups)
	}
	return y
}

// foreseeFS changes a copy of the filesystem that a command is about.
func (f *foresight) foreseeFS(r request, change func(*FS)) {
	if f.FS == nil {
		return
	}
	if fs, known := f.FS.Filesystems[r.filesystem()]; known {
		change(&fs)
		f.FS.Filesystems[r.filesystem()] = fs
	}
}

func (f *foresight) poolID(name string) int64 {
	if i := slices.IndexFunc(f.Pools, func(p Pool) bool { return p.Name == name }); i >= 0 {
		return f.Pools[i].ID
	}
	return 0
}

func (f *foresight) fsNew(r request) {
	if f.FS == nil {
		return
	}
	id := int64(1)
	for _, fs := range f.FS.Filesystems {
		id = max(id, fs.ID+1)
	}
	if _, known := f.FS.Filesystems[r.filesystem()]; !known {
		f.FS.Filesystems[r.filesystem()] = FS{
			ID: id, MaxMDS: 1, StandbyWanted: 1, MetadataPool: f.poolID(r.Params[paramMetadata]), DataPools: []int64{f.poolID(r.Params[paramData])},
		}
	}
}

func (f *foresight) fsSet(r request) {
	n, _ := strconv.Atoi(r.Params[paramValue])
	f.foreseeFS(r, func(fs *FS) {
		switch r.Params[paramOption] {
		case optionMaxMDS:
			fs.MaxMDS = n
		case optionStandby:
			fs.StandbyWanted = n
		case optionDown:
			fs.MaxMDS = 0
		}
	})
}

func (f *foresight) fsAddPool(r request) {
	f.foreseeFS(r, func(fs *FS) { fs.DataPools = append(slices.Clone(fs.DataPools), f.poolID(r.Params[paramData])) })
}

func (f *foresight) fsRm(r request) {
	if f.FS != nil && strconv.FormatInt(f.FS.Filesystems[r.filesystem()].ID, 10) == r.Params[paramID] {
		delete(f.FS.Filesystems, r.filesystem())
	}
}

func (f *foresight) groupMade(r request) {
	if f.FS == nil {
		return
	}
	groups := f.FS.Groups[r.filesystem()]
	if groups == nil {
		groups = map[string]int64{}
		f.FS.Groups[r.filesystem()] = groups
	}
	groups[r.Params[paramGroup]], _ = strconv.ParseInt(r.Params[paramValue], 10, 64)
}

// mds has those serve that run and whose keys are known: those that have a rank keep it, and others take what is free.
func (f *foresight) mds() {
	if f.FS == nil {
		return
	}
	var free []string
	for _, d := range f.daemonsOf(TypeMDS) {
		if f.runs(d, f.seen.FS.Knows(d.Spec.ID)) && f.Entities[label(d)] {
			free = append(free, d.Spec.ID)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.FS.Filesystems)) {
		fs := f.FS.Filesystems[name]
		ranks := map[int]MDS{}
		for rank, m := range fs.MDS {
			if i := slices.Index(free, m.Name); i >= 0 && rank < fs.MaxMDS {
				ranks[rank] = MDS{Name: m.Name, State: fsmap.Active}
				free = slices.Delete(free, i, i+1)
			}
		}
		fs.Down = nil
		for rank := range fs.MaxMDS {
			if ranks[rank].Name == "" {
				free = f.takeRank(name, rank, ranks, free)
			}
			if ranks[rank].Name == "" && rank < len(f.seen.FS.Of(name).MDS) {
				fs.Down = append(fs.Down, rank)
			}
		}
		fs.MDS = ranks
		f.FS.Filesystems[name] = fs
		if groups := f.FS.Groups[name]; groups == nil && ranks[0].Name != "" {
			f.FS.Groups[name] = fsspec.GroupsMade(f.after.Resources, name)
		}
	}
	f.FS.Standbys = free
}

// takeRank gives a rank to one that stands by, one of the filesystem's own first.
func (f *foresight) takeRank(name string, rank int, ranks map[int]MDS, free []string) []string {
	i := max(slices.IndexFunc(free, (&crew{daemonType: TypeMDS, name: name}).ownsID), 0)
	if len(free) == 0 {
		return free
	}
	ranks[rank] = MDS{Name: free[i], State: fsmap.Active}
	return slices.Delete(free, i, i+1)
}
