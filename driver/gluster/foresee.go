package gluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Foresee returns what the nodes will report when all comes out well. Of a new glusterd with directories nothing can be known: how
// much room is in them, its agent has to say.
func (Driver) Foresee(before, after *engine.View, commands []engine.Command) any {
	seen, _ := before.System.(*Observation)
	f := &foresight{before: before, after: after, reports: map[string]*glusterd.Report{}}
	for i := range after.Daemons {
		d := &after.Daemons[i]
		if d.Spec.Type != glusterd.Type {
			continue
		}
		if r := f.report(seen, d); r != nil {
			f.reports[d.Name] = r
		}
	}
	if len(f.reports) == 0 {
		return before.System
	}
	f.findPool(seen)
	for _, c := range commands {
		f.perform(c)
	}
	f.settle()
	var servers map[string]*ganesha.Report
	if seen != nil {
		servers = seen.NFS
	}
	return &Observation{Reports: f.reports, NFS: nfs.Foresee(servers, after, commands)}
}

// foresight is a GlusterFS that does as it is told.
type foresight struct {
	before  *engine.View
	after   *engine.View
	reports map[string]*glusterd.Report
	pool    *glusterd.Pool
	members map[string]bool // addresses
}

// report is what a daemon reported, or what a new one will.
func (f *foresight) report(seen *Observation, d *api.Daemon) *glusterd.Report {
	var r *glusterd.Report
	if seen != nil && seen.Reports[d.Name] != nil {
		r = copyReport(seen.Reports[d.Name])
	} else if d.Status.State == api.DaemonRunning && len(directories(d)) == 0 {
		r = &glusterd.Report{UUID: "of " + d.Name, Version: d.Status.Version}
	}
	if r == nil || d.Status.State != api.DaemonRunning {
		return r
	}
	r.Generation = d.Generation
	if r.Outdated && f.wasStopped(d.Name) {
		r.Outdated, r.Version = false, r.Installed
	}
	r.Stores = slices.DeleteFunc(r.Stores, func(s glusterd.Store) bool {
		return s.Device != "" && !hasDevice(d, s.Device) || s.Device == "" && !slices.Contains(directories(d), s.Name)
	})
	for _, device := range d.Spec.Devices {
		if !slices.ContainsFunc(r.Stores, func(s glusterd.Store) bool { return s.Device == device.ID }) {
			size := f.deviceSize(d.Spec.Host, device.ID)
			r.Stores = append(r.Stores, glusterd.Store{Name: device.Name, Device: device.ID, Path: "/" + device.Name, Size: size, Free: size})
		}
	}
	return r
}

// wasStopped says whether a daemon was stopped before.
func (f *foresight) wasStopped(name string) bool {
	return slices.ContainsFunc(f.before.Daemons, func(d api.Daemon) bool { return d.Name == name && d.Status.State == api.DaemonStopped })
}

func copyReport(r *glusterd.Report) *glusterd.Report {
	text, err := r.Text()
	if err != nil {
		return r
	}
	c, err := glusterd.Parse(text)
	if err != nil {
		return r
	}
	return c
}

func hasDevice(d *api.Daemon, id string) bool {
	return slices.ContainsFunc(d.Spec.Devices, func(x api.DaemonDevice) bool { return x.ID == id })
}

func (f *foresight) deviceSize(host, id string) int64 {
	for i := range f.after.Hosts {
		for _, d := range f.after.Hosts[i].Status.Devices {
			if f.after.Hosts[i].Name == host && d.ID == id {
				return d.Size.Value()
			}
		}
	}
	return 0
}

// findPool takes the pool from whoever reported on it before.
func (f *foresight) findPool(seen *Observation) {
	f.pool, f.members = &glusterd.Pool{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(f.reports)) {
		if seen == nil || seen.Reports[name] == nil || seen.Reports[name].Pool == nil {
			continue
		}
		f.pool = f.reports[name].Pool
		f.members[f.address(name)] = true
		for _, x := range f.reports[name].Peers {
			f.members[f.known(x)] = true
		}
		return
	}
}

// known is the address of a peer's Daemon: the pool may know it by another name.
func (f *foresight) known(x glusterd.Peer) string {
	for name, r := range f.reports {
		if r.UUID == x.UUID && x.UUID != "" {
			return f.address(name)
		}
	}
	return x.Address
}

func (f *foresight) daemon(name string) *api.Daemon {
	for i := range f.after.Daemons {
		if f.after.Daemons[i].Name == name {
			return &f.after.Daemons[i]
		}
	}
	return nil
}

func (f *foresight) address(daemon string) string {
	if d := f.daemon(daemon); d != nil {
		return d.Spec.Parameters[glusterd.ParamAddress]
	}
	return ""
}

// up says whether the glusterd with an address runs.
func (f *foresight) up(address string) bool {
	return slices.ContainsFunc(f.after.Daemons, func(d api.Daemon) bool {
		return d.Spec.Parameters[glusterd.ParamAddress] == address && d.Status.State == api.DaemonRunning
	})
}

func (f *foresight) perform(c engine.Command) {
	i := slices.IndexFunc(f.pool.Volumes, func(v glusterd.Volume) bool { return v.Name == c.Object })
	switch c.Verb {
	case glusterd.VerbProbe:
		f.members[f.address(c.Daemon)], f.members[c.Object] = true, true
	case glusterd.VerbDetach:
		delete(f.members, c.Object)
	case glusterd.VerbCreate:
		f.create(c)
	case glusterd.VerbDropBrick:
		f.drop(c)
	case glusterd.VerbDelete:
		f.pool.Volumes = slices.DeleteFunc(f.pool.Volumes, func(v glusterd.Volume) bool { return v.Name == c.Object })
	case glusterd.VerbQuota:
		if i >= 0 {
			f.limit(&f.pool.Volumes[i], c.Params[glusterd.ParamLimit])
		}
	default:
		if i >= 0 {
			change(&f.pool.Volumes[i], c)
		}
	}
}

// limit has all bricks of a volume know its limit, or none.
func (f *foresight) limit(v *glusterd.Volume, text string) {
	v.Options[glusterd.OptionQuota] = map[bool]string{true: "on", false: "off"}[text != ""]
	limit, _ := strconv.ParseInt(text, 10, 64) // none is 0
	for _, r := range f.reports {
		for i := range r.Stores {
			for j := range r.Stores[i].Bricks {
				if b := &r.Stores[i].Bricks[j]; b.Volume == v.ID {
					b.Limit = limit
				}
			}
		}
	}
}

func (f *foresight) create(c engine.Command) {
	number := func(p string) (n int) {
		_, _ = fmt.Sscan(c.Params[p], &n) // one that is missing is 0
		return n
	}
	v := glusterd.Volume{
		Name: c.Object, ID: "of " + c.Object, State: glusterd.VolumeCreated, Options: map[string]string{},
		Replica: max(1, number(glusterd.ParamReplica)+number(glusterd.ParamArbiter)), Arbiter: number(glusterd.ParamArbiter),
		Disperse: number(glusterd.ParamDisperse), Redundancy: number(glusterd.ParamRedundancy),
	}
	v.Bricks = newBricks(c.Params[glusterd.ParamBricks])
	f.pool.Volumes = append(f.pool.Volumes, v)
}

func newBricks(names string) []glusterd.Brick {
	var bricks []glusterd.Brick
	for name := range strings.FieldsSeq(names) {
		address, path := glusterd.SplitBrick(name)
		bricks = append(bricks, glusterd.Brick{Address: address, Path: path})
	}
	return bricks
}

// change is what a command makes of a volume.
func change(v *glusterd.Volume, c engine.Command) {
	switch c.Verb {
	case glusterd.VerbStart:
		v.State = glusterd.VolumeStarted
	case glusterd.VerbStop:
		v.State = glusterd.VolumeStopped
	case glusterd.VerbSet:
		if v.Options == nil { // a report leaves out what is empty
			v.Options = map[string]string{}
		}
		maps.Copy(v.Options, c.Params)
	case glusterd.VerbReset:
		for name := range c.Params {
			delete(v.Options, name)
		}
	case glusterd.VerbAddBrick:
		v.Bricks = append(v.Bricks, newBricks(c.Params[glusterd.ParamBricks])...)
	case glusterd.VerbRebalance:
		v.Task = &glusterd.Task{Kind: glusterd.TaskRebalance, ID: "to come", State: glusterd.TaskCompleted}
	case glusterd.VerbRemoveStart:
		v.Task = &glusterd.Task{Kind: glusterd.TaskRemoveBrick, ID: "to come", State: glusterd.TaskCompleted, Bricks: strings.Fields(c.Params[glusterd.ParamBricks])}
	case glusterd.VerbRemoveStop:
		v.Task = nil
	case glusterd.VerbRemoveCommit:
		gone := strings.Fields(c.Params[glusterd.ParamBricks])
		v.Bricks = slices.DeleteFunc(v.Bricks, func(b glusterd.Brick) bool { return slices.Contains(gone, b.Name()) })
		v.Task = nil
	case glusterd.VerbReplace:
		if b := v.Brick(c.Params[glusterd.ParamOld]); b != nil {
			*b = newBricks(c.Params[glusterd.ParamNew])[0]
		}
	}
}

func (f *foresight) drop(c engine.Command) {
	r := f.reports[c.Daemon]
	if r == nil {
		return
	}
	for i := range r.Stores {
		s := &r.Stores[i]
		s.Bricks = slices.DeleteFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == c.Object })
	}
}

// settle has all nodes report what became of the pool: bricks of nodes that are up serve and are healed.
func (f *foresight) settle() {
	for i := range f.pool.Volumes {
		v := &f.pool.Volumes[i]
		v.Unknown = ""
		for j := range v.Bricks {
			f.settleBrick(v, &v.Bricks[j])
		}
	}
	for name, r := range f.reports {
		own := f.address(name)
		r.Peers = nil
		for _, address := range slices.Sorted(maps.Keys(f.members)) {
			if f.members[own] && address != own {
				r.Peers = append(r.Peers, glusterd.Peer{Address: address, UUID: f.uuid(address), Connected: f.up(address), State: glusterd.PeerInCluster})
			}
		}
		r.Pool = nil
		if f.daemon(name).Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool {
			r.Pool = f.pool
		}
	}
}

func (f *foresight) settleBrick(v *glusterd.Volume, b *glusterd.Brick) {
	b.State, b.Heal, b.UUID = glusterd.BrickUnknown, nil, f.uuid(b.Address)
	if v.State == glusterd.VolumeStarted && f.up(b.Address) {
		b.State = glusterd.BrickOnline
		if v.SetSize() > 1 {
			b.Heal = &glusterd.Heal{}
		}
	}
	for name, r := range f.reports {
		if f.address(name) == b.Address {
			keepStored(r, v.ID, b.Path)
		}
	}
}

// keepStored has a brick's directory in its store.
func keepStored(r *glusterd.Report, volume, path string) {
	for i := range r.Stores {
		s := &r.Stores[i]
		if strings.HasPrefix(path, s.Path+"/") && !slices.ContainsFunc(s.Bricks, func(b glusterd.StoredBrick) bool { return b.Path == path }) {
			s.Bricks = append(s.Bricks, glusterd.StoredBrick{Path: path, Volume: volume})
		}
	}
}

func (f *foresight) uuid(address string) string {
	for name, r := range f.reports {
		if f.address(name) == address {
			return r.UUID
		}
	}
	return ""
}
