package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsspec"
	"github.com/holdfast-storage/holdfast/engine"
)

// fsPlan is a Filesystem while it is planned.
type fsPlan struct {
	*api.Filesystem
	// id is its number in Ceph that was recorded, and noted its pools; none where there was none, or its loss was accepted.
	id    int64
	noted []api.FilesystemPoolStatus
	// have is the filesystem in Ceph; nil when there is none, or nobody can tell. lost is what is gone of the one that was recorded.
	have *FS
	lost losses
	// lostGroups are subvolume groups that are gone.
	lostGroups losses
	// forgot says that its loss was accepted, forgotGroups that of groups.
	forgot       bool
	forgotGroups losses
	// pools are the metadata pool and then the data pools.
	pools   []*poolPlan
	service *service
	// refusals say why it cannot be as it is declared, waits what it waits for.
	refusals, waits objections
}

// line is what the filesystem's commands are about, and depend on.
func (x *fsPlan) line() string { return engine.ResourceObject(x.Filesystem) }

// declareFilesystems finds the MDS of each Filesystem. While more are at work than are wanted all of them stay, and those that stand by: which one ends its
// work is Ceph's to say, and takes a while.
func (p *planner) declareFilesystems() {
	for _, f := range engine.OfKind[*api.Filesystem](p.view.Resources) {
		x := &fsPlan{Filesystem: f, id: p.recorded(f.Status.ID), noted: f.Status.Pools}
		p.findFS(x)
		s := &service{
			crew: crew{
				daemonType: TypeMDS, noun: "MDS", field: "spec.activeMDS and spec.standbyMDS together", count: fsspec.ActiveMDS(f) + fsspec.StandbyMDS(f), least: fsspec.ActiveMDS(f),
				active: func(id string) bool { return p.fsKnown() && p.seen.FS.Serves(id) },
			},
			resource: f, placement: &api.Placement{HostSelection: f.Spec.Placement},
			there: func(id string) bool { return p.fsKnown() && p.seen.FS.Knows(id) },
			finish: func(d *api.Daemon, _ seat) {
				d.Spec.Command = append(d.Spec.Command, "--mds_join_fs="+f.Name)
				d.Spec.Parameters[api.ParameterReport] = "mounts"
			},
		}
		if x.have != nil {
			s.count = max(s.count, len(x.have.MDS), min(len(p.membersOf(&s.crew)), len(x.have.MDS)+fsspec.StandbyMDS(f)))
		}
		x.service = s
		p.filesystems = append(p.filesystems, x)
		p.serve(s)
	}
}

// fsKnown says whether Ceph was asked for its filesystems.
func (p *planner) fsKnown() bool { return p.reachable() && p.seen.FS != nil }

// planFilesystems finds how each Filesystem is to be, and refuses those that cannot be so.
func (p *planner) planFilesystems() {
	for _, x := range p.filesystems {
		p.shapeFS(x)
		p.findFSPools(x)
		for _, pool := range x.pools {
			p.judgePlace(pool)
		}
		if x.DeletionTimestamp != nil {
			p.endService(x)
			continue
		}
		p.checkFS(x)
		x.service.held = x.service.held || x.have == nil && len(x.refusals)+len(x.waits) > 0
		for _, o := range x.refusals {
			holdNew(x.pools)
			p.object(x.line(), o)
		}
		p.object(x.line(), x.waits...)
	}
}

// shapeFS makes the pools of a filesystem. One that is there already keeps the names that its metadata pool and its first data pool have.
func (p *planner) shapeFS(x *fsPlan) {
	if fsspec.IsExisting(x.Filesystem) {
		return
	}
	metadata, first := x.Name+"-metadata", x.Name+"-data"
	if x.have != nil && len(x.have.DataPools) > 0 {
		metadata, first = cmp.Or(p.poolName(x.have.MetadataPool), metadata), cmp.Or(p.poolName(x.have.DataPools[0]), first)
	}
	data := x.Spec.DataPools
	if len(data) == 0 {
		data = []api.FilesystemDataPool{{}}
	}
	p.addPool(x, metadata, x.Spec.MetadataPool)
	for i, d := range data {
		name := d.Name
		if i == 0 {
			name = cmp.Or(name, first)
		}
		p.addPool(x, name, d.FilesystemPool)
	}
}

func (p *planner) addPool(x *fsPlan, name string, t api.FilesystemPool) {
	pool := &api.Pool{}
	pool.Namespace, pool.Name, pool.DeletionTimestamp = x.Namespace, name, x.DeletionTimestamp
	pool.Spec = api.PoolSpec{
		Cluster: x.Spec.Cluster, Replicated: t.Replicated, ErasureCoded: t.ErasureCoded, FailureDomain: t.FailureDomain, DeviceClass: t.DeviceClass,
		Application: "cephfs", Quota: t.Quota, Compression: t.Compression, DeletionPolicy: x.Spec.DeletionPolicy,
	}
	plan := &poolPlan{Pool: pool, owner: x.Filesystem}
	for _, s := range x.noted {
		if s.Name == name {
			plan.id = p.recorded(s.ID)
			pool.Status.Served = s.Served || !x.Status.Served && engine.Served(x.Status.State)
		}
	}
	if pool.Status.State = x.Status.State; x.Status.Served && !pool.Status.Served {
		pool.Status.State = api.ResourceCreating // it is new, and the filesystem serves without it
	}
	x.pools = append(x.pools, plan)
}

// poolName is the name of a pool by its number; empty where there is none.
func (p *planner) poolName(id int64) string {
	if i := slices.IndexFunc(p.seen.Pools, func(x Pool) bool { return x.ID == id }); i >= 0 {
		return p.seen.Pools[i].Name
	}
	return ""
}

// allPools are the pools of all resources.
func (p *planner) allPools() []*poolPlan {
	all := slices.Clone(p.pools)
	for _, x := range p.filesystems {
		all = append(all, x.pools...)
	}
	return all
}

// checkFS says why a filesystem cannot be as it is declared, or what it waits for.
func (p *planner) checkFS(x *fsPlan) {
	if len(x.lost) > 0 {
		x.refusals.add(x.lost.refusal(x.Filesystem))
		return
	}
	x.refusals.add(x.service.refusal)
	for _, pool := range x.pools {
		p.checkOwner(x, pool)
		x.refusals = append(x.refusals, pool.refusals.of("pool "+pool.Name)...)
		x.waits = append(x.waits, pool.waits.of("pool "+pool.Name)...)
	}
	x.refusals = append(x.refusals, fsspec.Refusals(x.Filesystem)...)
	switch existing := fsspec.IsExisting(x.Filesystem); {
	case existing && x.have == nil && p.fsKnown():
		x.waits.add(fsspec.Await(x.Filesystem))
	case !existing && x.have != nil:
		var names []string
		for _, pool := range x.pools[1:] {
			names = append(names, pool.Name)
		}
		x.refusals = append(x.refusals, fsspec.Misfits(x.have.DataPools, p.poolName, names)...)
	}
}

// checkOwner refuses a pool that is somebody else's.
func (p *planner) checkOwner(x *fsPlan, pool *poolPlan) {
	for _, other := range p.allPools() {
		if other != pool && other.Name == pool.Name {
			pool.refuse(api.ReasonConflict, "%s has a pool of this name: choose another name",
				strings.Replace(other.line(), "/", " ", 1))
		}
	}
	if pool.have != nil && !x.promised(pool) && (x.have == nil || !slices.Contains(append(x.have.DataPools, x.have.MetadataPool), pool.have.ID)) {
		pool.refuse(api.ReasonConflict,
			"Ceph has a pool of this name that was not made for this filesystem: choose another name, or delete it")
	}
}

// promised says whether a pool was written down to be made for the filesystem.
func (x *fsPlan) promised(pool *poolPlan) bool {
	return slices.ContainsFunc(x.noted, func(s api.FilesystemPoolStatus) bool {
		return s.Name == pool.Name && (s.ID == 0 || s.ID == pool.have.ID)
	})
}

// writeFilesystems asks Ceph for what brings the filesystems to where they are wanted.
func (p *planner) writeFilesystems() {
	for _, x := range p.filesystems {
		if p.poolsKnown() && p.fsKnown() && x.DeletionTimestamp == nil && len(x.refusals)+len(x.waits) == 0 {
			p.bringFS(x)
		}
	}
}

func (p *planner) fsCommand(
	x *fsPlan, reason api.Reason, verb string, params map[string]string, format string, args ...any,
) {
	p.command(reason, verb, x.line(), params, fmt.Sprintf(format, args...))
	p.plan.Commands[len(p.plan.Commands)-1].Line = x.line()
}

func (p *planner) bringFS(x *fsPlan) {
	for _, pool := range x.pools {
		if pool.have != nil || x.written(pool) { // its name is written down first
			p.bringPool(pool)
		}
	}
	if !slices.ContainsFunc(x.pools, func(pool *poolPlan) bool { return pool.have == nil && !x.written(pool) }) {
		have := p.makeFS(x)
		p.bringMDS(x, have)
		p.bringGroups(x)
	}
}

// written says whether the name of a pool is written down.
func (x *fsPlan) written(pool *poolPlan) bool {
	return slices.ContainsFunc(x.noted, func(s api.FilesystemPoolStatus) bool { return s.Name == pool.Name })
}

// makeFS has the filesystem made, with all its data pools.
func (p *planner) makeFS(x *fsPlan) *FS {
	have := x.have
	if have == nil {
		p.fsCommand(x, api.ReasonDeclared, verbFSNew,
			map[string]string{paramMetadata: x.pools[0].Name, paramData: x.pools[1].Name}, "it is declared")
		have = &FS{MaxMDS: 1, StandbyWanted: 1}
	}
	for _, pool := range x.pools[min(2, len(x.pools)):] {
		if pool.have == nil || !slices.Contains(have.DataPools, pool.have.ID) {
			p.fsCommand(x, api.ReasonDeclared, verbFSAddPool, map[string]string{paramData: pool.Name}, "pool %s was declared",
				pool.Name)
		}
	}
	return have
}

// bringMDS tells Ceph how many are to work, and how many to stand by: no more than there are. While they are upgraded one works: those that do
// need to be of one release (Ceph docs, "Upgrading the MDS Cluster").
func (p *planner) bringMDS(x *fsPlan, have *FS) {
	seats := max(1, len(x.service.seats))
	active := min(fsspec.ActiveMDS(x.Filesystem), seats)
	if p.upgrading(x) {
		active = 1
	}
	standby := min(fsspec.StandbyMDS(x.Filesystem), seats-active)
	for _, o := range []struct {
		name       string
		have, want int
	}{{optionMaxMDS, have.MaxMDS, active}, {optionStandby, have.StandbyWanted, standby}} {
		if o.have != o.want {
			p.fsCommand(x, api.ReasonDeclared, verbFSSet,
				map[string]string{paramOption: o.name, paramValue: strconv.Itoa(o.want)}, "%s goes from %d to %d", o.name, o.have,
				o.want)
		}
	}
}

// bringGroups has the subvolume groups made that are not there, or have another quota.
func (p *planner) bringGroups(x *fsPlan) {
	groups, known := p.seen.FS.Groups[x.Name]
	if !known || x.have == nil {
		return
	}
	for _, g := range x.Spec.SubvolumeGroups {
		quota, there := groups[g.Name]
		if x.lostGroups.has(groupID(g.Name)) {
			continue
		}
		params := map[string]string{paramGroup: g.Name, paramValue: strconv.FormatInt(fsspec.Quota(g), 10)}
		switch {
		case !there:
			p.fsCommand(x, api.ReasonDeclared, verbGroupCreate, params, "subvolume group %s was declared", g.Name)
		case quota != fsspec.Quota(g):
			p.fsCommand(x, api.ReasonDeclared, verbGroupResize, params, "the quota of subvolume group %s goes from %s to %s",
				g.Name, quotaWord(quota), quotaWord(fsspec.Quota(g)))
		}
	}
}
