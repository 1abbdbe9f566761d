package ceph

import (
	"maps"
	"slices"
	"strconv"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/optioninfo"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
)

var _ engine.Planner = (*Driver)(nil)

// Foresee tells what Ceph will say when it has done what it was asked for and the daemons of the view after do their work. It is
// pure. Of a Ceph that was started before and does not answer, nothing is foreseen: which numbers of OSDs it has given, nobody
// knows.
func (d *Driver) Foresee(before, after *engine.View, commands []engine.Command) any {
	seen, _ := before.System.(*Observation)
	answered := seen != nil && seen.Reachable && seen.FSID == clusterFSID(before)
	if !answered && (seen != nil || startedBefore(before.Daemons)) || len(monset.Of(after.Daemons)) == 0 || after.Cluster.DeletionTimestamp != nil {
		return before.System
	}
	f := newForesight(seen, before, after)
	for _, cmd := range commands {
		if cmd.Daemon != "" {
			f.carriedOut(cmd)
			f.mirrorDone(cmd)
			continue
		}
		if v, known := verbs[cmd.Verb]; known {
			v.foresee(f, request{Command: cmd})
		}
	}
	f.mons()
	f.mgrs()
	foreseeOrch(f)
	f.mds()
	f.osds()
	f.poolPlaces()
	f.gateways()
	f.mirrors()
	f.stoppable()
	f.safe()
	f.restartable()
	f.NFS = nfs.Foresee(f.seen.NFS, after, commands)
	if !f.Reachable {
		return before.System
	}
	return f.Observation
}

// foresight is what Ceph will say, in the making: what it said last, changed by each command, and then by what the daemons do.
// Of a host whose agent is silent nobody knows what its daemons do: of them Ceph's last word counts.
type foresight struct {
	*Observation
	seen          *Observation // what Ceph said last; without anything in it where it was not there
	before, after *engine.View
	hosts         map[string]*api.Host
}

func newForesight(seen *Observation, before, after *engine.View) *foresight {
	f := &foresight{seen: seen, before: before, after: after, hosts: after.HostsByName()}
	o := &Observation{FSID: clusterFSID(after), Health: healthOK, Foreseen: true}
	if seen == nil {
		f.seen = &Observation{Monmap: names(monset.Of(after.Daemons)), Entities: map[string]bool{}}
		firstEntities(after, f.seen.Entities)
	}
	o.Version, o.Monmap, o.ActiveMgr = f.seen.Version, slices.Clone(f.seen.Monmap), f.seen.ActiveMgr
	o.Pools, o.BackfillFull, o.PGsWanted, o.BytesTotal = f.seen.Pools, f.seen.BackfillFull, f.seen.PGsWanted, f.seen.BytesTotal
	o.Entities, o.OSDs, o.Destroyed = map[string]bool{}, map[int]OSD{}, map[int]string{}
	maps.Copy(o.Destroyed, f.seen.Destroyed)
	maps.Copy(o.Entities, f.seen.Entities)
	maps.Copy(o.OSDs, f.seen.OSDs)
	if x := f.seen.Drain; x != nil {
		o.Drain = &DrainFacts{Safe: maps.Clone(x.Safe), Rules: x.Rules, Places: maps.Clone(x.Places), Usage: maps.Clone(x.Usage), Stored: x.Stored, Buckets: maps.Clone(x.Buckets)}
	}
	o.Lacked = seen != nil && (seen.Lacked || !seen.Foreseen && seen.PGsClean < seen.PGsWanted)
	f.Observation = o
	o.Crush, o.Rules = f.crushBuckets(), f.seen.Rules
	o.PoolFacts, o.Clients, o.FS = f.poolFacts(), f.clients(), f.fsFacts()
	o.Gateways, o.Certificates = gatewaysSaid(f.seen.Gateways), f.seen.Certificates
	o.Config, o.Mirrors = f.configFacts(), mirrorsSaid(f.seen.Mirrors)
	o.Defaults, o.Orch = f.defaultFacts(seen == nil), f.seen.Orch
	return f
}

func names(members []member) []string {
	ids := make([]string, len(members))
	for i, m := range members {
		ids[i] = m.ID
	}
	return ids
}

// Unanswered says why the mons have not answered, though one of them ran before. It is pure.
func (d *Driver) Unanswered(view *engine.View) string {
	switch o, _ := view.System.(*Observation); {
	case o == nil && startedBefore(view.Daemons):
		return "no mon answers"
	case o == nil:
		return ""
	case !o.Reachable:
		return o.Error
	case o.FSID != clusterFSID(view):
		return "mons of another cluster (fsid " + o.FSID + ") answer"
	}
	return ""
}

// startedBefore says whether a mon ran already.
func startedBefore(daemons []api.Daemon) bool {
	return slices.ContainsFunc(daemons, func(d api.Daemon) bool {
		return d.Spec.Type == TypeMon && (d.Status.Started != nil || d.Status.State == api.DaemonRunning)
	})
}

// firstEntities are those that the mons of a new Ceph begin with. A manager that is added later gets its key by a command.
func firstEntities(after *engine.View, entities map[string]bool) {
	for i := range after.Daemons {
		d := &after.Daemons[i]
		if d.Spec.Type != TypeMon {
			continue
		}
		for _, f := range d.Spec.Files {
			for _, s := range f.Sources {
				if f.Path == FileKeyring && s.Secret != nil {
					entities[entityOf(after, s.Secret.Name)] = true
				}
			}
		}
	}
}

// entityOf is the entity that a Secret is the key of.
func entityOf(view *engine.View, secret string) string {
	for _, s := range view.Secrets {
		if s.Name == secret {
			return s.Annotations[AnnotationEntity]
		}
	}
	return ""
}

// daemonsOf are the daemons of a type as they will be.
func (f *foresight) daemonsOf(daemonType string) []*api.Daemon {
	var all []*api.Daemon
	for i := range f.after.Daemons {
		if d := &f.after.Daemons[i]; d.Spec.Type == daemonType {
			all = append(all, d)
		}
	}
	return all
}

// runs says whether a daemon will run; seen is whether Ceph had it last.
func (f *foresight) runs(d *api.Daemon, seen bool) bool {
	if h := f.hosts[d.Spec.Host]; h == nil || !h.AgentHeard() {
		return seen
	}
	return d.Status.State == api.DaemonRunning
}

// mons has those in the quorum that run. One that was added lets itself in; one that was in the map once does not get in again.
func (f *foresight) mons() {
	for _, d := range f.daemonsOf(TypeMon) {
		if !f.runs(d, slices.Contains(f.seen.Quorum, d.Spec.ID)) {
			continue
		}
		if !slices.Contains(f.Monmap, d.Spec.ID) && !drains(d) {
			f.Monmap = append(f.Monmap, d.Spec.ID)
		}
		if slices.Contains(f.Monmap, d.Spec.ID) {
			f.Quorum = append(f.Quorum, d.Spec.ID)
		}
	}
	slices.Sort(f.Monmap)
	slices.Sort(f.Quorum)
	f.Reachable = len(f.Quorum) > len(f.Monmap)/2
	f.release()
}

// release follows the lowest of the mons in the quorum, as soon as that changes. The options that the policies of a spec come to in a newer one are there.
func (f *foresight) release() {
	was, is := f.lowestRelease(f.before.Daemons, f.seen.Quorum), f.lowestRelease(f.after.Daemons, f.Quorum)
	if was == "" || is == "" || was == is {
		return
	}
	f.Version = is
	if f.Config == nil || f.after.Cluster.Spec.Ceph == nil {
		return
	}
	f.Config.Options = maps.Clone(f.Config.Options)
	for name := range policyOptions(f.after.Cluster.Spec.Ceph, f.Version) {
		if _, known := f.Config.Options[name]; !known {
			f.Config.Options[name] = optioninfo.Info{}
		}
	}
}

// lowestRelease is that of the mons of a quorum; empty while one of them does not tell its own.
func (f *foresight) lowestRelease(daemons []api.Daemon, quorum []string) string {
	var releases []string
	for i := range daemons {
		if d := &daemons[i]; d.Spec.Type == TypeMon && slices.Contains(quorum, d.Spec.ID) {
			releases = append(releases, d.Status.Version)
		}
	}
	if len(releases) == 0 || slices.Contains(releases, "") {
		return ""
	}
	return slices.MinFunc(releases, compareReleases)
}

// mgrs has those present that run and whose keys are known. The one that was active stays so.
func (f *foresight) mgrs() {
	var present []string
	for _, d := range f.daemonsOf(TypeMgr) {
		if f.runs(d, f.had(d)) && f.Entities[label(d)] {
			present = append(present, d.Spec.ID)
		}
	}
	f.MgrAvailable, f.Standbys = len(present) > 0, max(0, len(present)-1)
	switch {
	case len(present) == 0:
		f.ActiveMgr = ""
	case !slices.Contains(present, f.ActiveMgr):
		f.ActiveMgr = present[0]
	}
}

// had says whether Ceph had the manager of a silent host. Of the standbys it tells only how many there are: where one is missing,
// it is that one.
func (f *foresight) had(d *api.Daemon) bool {
	if d.Spec.ID == f.seen.ActiveMgr {
		return true
	}
	running := 0
	for i := range f.before.Daemons {
		x := &f.before.Daemons[i]
		if x.Spec.Type == TypeMgr && x.Status.State == api.DaemonRunning && x.Spec.ID != f.seen.ActiveMgr {
			running++
		}
	}
	return f.seen.Standbys >= running
}

// osds has those up whose daemons run. One that comes up for the first time is in, and its data is well.
func (f *foresight) osds() {
	for _, d := range f.daemonsOf(TypeOSD) {
		id, err := strconv.Atoi(d.Spec.ID)
		known, ok := f.OSDs[id]
		if err != nil || !ok || known.UUID != d.Spec.Parameters[ParamOSDUUID] {
			continue
		}
		up := f.runs(d, known.Up)
		if up && !known.Up && f.neverRan(d.Name) {
			known.In = true
			f.crushStarts(label(d), crushHostOf(d))
			f.settled(id, crushHostOf(d))
		}
		known.Up = up
		f.OSDs[id] = known
	}
	f.pgs()
}

// neverRan says whether an OSD's daemon was at most prepared before.
func (f *foresight) neverRan(daemon string) bool {
	i := slices.IndexFunc(f.before.Daemons, func(d api.Daemon) bool { return d.Name == daemon })
	return i < 0 || f.before.Daemons[i].Status.Started == nil && !slices.Contains(
		[]api.DaemonState{api.DaemonRunning, api.DaemonStopped, api.DaemonStopping, api.DaemonFailed, api.DaemonBackOff}, f.before.Daemons[i].Status.State)
}

// settled gives an OSD that is new its place in CRUSH, and as much space as the smallest of the others has.
func (f *foresight) settled(id int, host string) {
	if f.Drain == nil {
		return
	}
	f.Drain.Buckets[host]++
	f.Drain.Places[id] = f.placeAmong(f.Drain.Places, id, host)
	var least int64
	for _, u := range f.Drain.Usage {
		if least == 0 || u.Total > 0 && u.Total < least {
			least = u.Total
		}
	}
	f.Drain.Usage[id] = Usage{Total: least}
}

// placeAmong is where an OSD of a host comes to be: beside the others of the host, else where CRUSH has the host, or on a new one below the root.
func (f *foresight) placeAmong(places map[int]Place, id int, host string) Place {
	place := Place{Weight: 1, Buckets: map[string]string{"host": host, "root": poolRoot}}
	if b, there := f.Crush[host]; there {
		maps.Copy(place.Buckets, b.In)
	}
	for _, other := range places {
		if other.Buckets["host"] == host {
			place = Place{Class: other.Class, Weight: 1, Buckets: maps.Clone(other.Buckets)}
			break
		}
	}
	place.Buckets["osd"] = osdName(id)
	return place
}

// pgs takes it that data is well where no OSD is missing that holds any: with one, some copies are not there.
func (f *foresight) pgs() {
	missing, up := false, false
	for id, o := range f.OSDs {
		weightless := f.Drain != nil && f.Drain.Places[id].Weight == 0
		missing = missing || o.In && !o.Up && !weightless
		up = up || o.Up
	}
	if up && f.MgrAvailable {
		f.PGsWanted, f.BytesTotal = max(1, f.PGsWanted), max(1, f.BytesTotal)
	}
	f.PGs, f.PGsActive = f.PGsWanted, f.PGsWanted
	if !missing {
		f.PGsClean = f.PGsWanted
	}
}

// stoppable keeps what Ceph said of hosts in maintenance as far as it still answers the question. An answer about more OSDs holds
// for fewer of them, if it was yes; and one about fewer for more, if it was no. What Ceph would say of anything else, it has to be
// asked when it is so far.
func (f *foresight) stoppable() {
	for i := range f.after.Hosts {
		h := &f.after.Hosts[i]
		if h.ModeOf() != api.HostMaintenance || !runsOSD(f.after.Daemons, h.Name) {
			continue
		}
		osds := downWithout(f.after.Daemons, f.OSDs, h.Name)
		said, asked := f.seen.Stoppable[h.Name]
		switch {
		case asked && said.OK && said.covers(osds):
		case asked && !said.OK && !said.Unknown && (StopAnswer{OSDs: osds}).covers(said.OSDs):
		default:
			said = StopAnswer{Unknown: true, Reason: "checked after the steps before it"}
		}
		said.OSDs = osds
		if f.Stoppable == nil {
			f.Stoppable = map[string]StopAnswer{}
		}
		f.Stoppable[h.Name] = said
	}
}

// safe takes it that the data of OSDs without weight moves away.
func (f *foresight) safe() {
	if f.Drain == nil {
		return
	}
	for id := range f.OSDs {
		f.Drain.Safe[id] = f.Drain.Places[id].Weight == 0 || !f.OSDs[id].In
	}
}

// restartable takes it that Ceph lets the next OSD stop that is to be started again: where no data lacks a copy, and each pool can be used with one less,
// it will. What it has said itself is kept as long as the question is the same. Of anything else it has to be asked when it is so far.
func (f *foresight) restartable() {
	if !f.Reachable {
		return
	}
	name, down := nextRestart(f.after, f.Observation)
	said, asked := f.seen.Restartable[name]
	switch {
	case name == "":
		return
	case asked && (!f.seen.Foreseen || !said.OK) && !said.Unknown && said.covers(down) && (StopAnswer{OSDs: down}).covers(said.OSDs):
	case f.spare():
		said = StopAnswer{OSDs: down, OK: true}
	default:
		return
	}
	f.Restartable = map[string]StopAnswer{name: said}
}

// spare says whether all data can be used without any one OSD: no two copies or pieces of an object are on the same.
func (f *foresight) spare() bool {
	return f.MgrAvailable && !f.Lacked && f.PGsClean == f.PGsWanted && !slices.ContainsFunc(f.Pools, func(p Pool) bool { return p.Size <= p.MinSize })
}
