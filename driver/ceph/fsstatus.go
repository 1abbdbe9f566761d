package ceph

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
	"github.com/holdfast-storage/holdfast/driver/ceph/fsspec"
	"github.com/holdfast-storage/holdfast/driver/ceph/health"
	"github.com/holdfast-storage/holdfast/driver/ceph/writes"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// putFilesystems writes the statuses of Filesystems, and lets those go that are gone.
func (p *planner) putFilesystems() {
	for _, x := range p.filesystems {
		next := x.DeepCopy()
		s := &next.Status
		s.ObservedGeneration = x.Generation
		if x.DeletionTimestamp != nil {
			if p.dropFS(x, s) {
				p.plan.LetGo(x.Filesystem)
				continue
			}
		} else {
			p.tellFS(x, s)
			p.setLost(next, p.fsKnown() && p.poolsKnown(), slices.Concat(x.lost, x.lostGroups))
			engine.Accept(next, x.refusals.texts(), p.now)
		}
		p.plan.PutResource(x.Filesystem, next)
	}
}

// tellFS says how a filesystem stands.
func (p *planner) tellFS(x *fsPlan, s *api.FilesystemStatus) {
	p.fsState(x).Put(&s.ResourceStatus)
	if s.ID = x.id; x.forgot {
		s.Pools, s.SubvolumeGroups = nil, nil
	}
	if len(x.refusals) > 0 && x.have == nil || !p.fsKnown() || !p.poolsKnown() {
		return
	}
	if len(x.refusals) == 0 && !p.plan.Refused {
		s.Pools = nil
		for _, pool := range x.pools {
			st := api.FilesystemPoolStatus{Name: pool.Name}
			if pool.have != nil {
				st.ID, st.Served = pool.have.ID, pool.Status.Served && pool.id != 0 || engine.Served(p.fsPoolState(x, pool).State)
			}
			s.Pools = append(s.Pools, st)
		}
	}
	if x.have == nil {
		return
	}
	if fsspec.IsExisting(x.Filesystem) {
		s.Pools = fsspec.Noted(x.have.MetadataPool, x.have.DataPools, p.poolName)
	}
	var active, standby []string
	for _, rank := range slices.Sorted(maps.Keys(x.have.MDS)) {
		active = append(active, x.have.MDS[rank].Name)
	}
	for _, seat := range x.service.seats {
		if slices.Contains(p.seen.FS.Standbys, seat.id) {
			standby = append(standby, seat.id)
		}
	}
	s.ID, s.Active, s.Standby = x.have.ID, strings.Join(active, ","), strings.Join(standby, ",")
	if mounts, more, known := p.mounts(x); known {
		s.Clients = int32(len(mounts) + more)
	}
	s.SubvolumeGroups, s.LostSubvolumeGroups = p.groupsMade(x), x.lostGroupNames()
}

// groupsMade are the groups that were made, each with the quota that it has, by the manager's word of now or of before.
func (p *planner) groupsMade(x *fsPlan) (made []api.SubvolumeGroup) {
	groups := p.seen.FS.Groups[x.Name]
	for _, g := range x.Spec.SubvolumeGroups {
		quota, there := groups[g.Name]
		had := slices.IndexFunc(x.Status.SubvolumeGroups, func(h api.SubvolumeGroup) bool { return h.Name == g.Name })
		switch {
		case x.forgot || slices.Concat(x.lostGroups, x.forgotGroups).has(groupID(g.Name)):
		case there && quota == fsspec.Quota(g):
			made = append(made, g)
		case had >= 0:
			made = append(made, x.Status.SubvolumeGroups[had])
		}
	}
	return made
}

// groupsLeft counts the groups that are not as they are declared yet. Those that are lost wait for a person.
func (p *planner) groupsLeft(x *fsPlan) (left int) {
	made := p.groupsMade(x)
	for _, g := range x.Spec.SubvolumeGroups {
		as := slices.ContainsFunc(made, func(h api.SubvolumeGroup) bool { return h.Name == g.Name && fsspec.Quota(h) == fsspec.Quota(g) })
		if !as && !x.lostGroups.has(groupID(g.Name)) {
			left++
		}
	}
	return left
}

// mounts are the clients that have a filesystem mounted, by the words of its MDS, and how many more there are. What a manager looks into by
// itself is no mount.
func (p *planner) mounts(x *fsPlan) (mounts []cephreport.Mount, more int, known bool) {
	if x.have == nil {
		return nil, 0, true
	}
	seen := map[cephreport.Mount]bool{}
	for _, m := range x.have.MDS {
		d := p.have[p.daemonOf(&x.service.crew, m.Name)]
		if d == nil || d.Status.State != api.DaemonRunning || p.hosts[d.Spec.Host] == nil || !p.hosts[d.Spec.Host].AgentHeard() {
			return nil, 0, false
		}
		r, err := cephreport.Parse(d.Status.Report)
		if err != nil || r == nil {
			return nil, 0, false
		}
		more = max(more, r.More)
		for _, mount := range r.Mounts {
			if mount.Path != "" || !p.ofManager(mount.Entity) {
				seen[mount] = true // a client has a session with each MDS that it works with
			}
		}
	}
	for mount := range seen {
		mounts = append(mounts, mount)
	}
	slices.SortFunc(mounts, func(a, b cephreport.Mount) int { return strings.Compare(a.String(), b.String()) })
	return mounts, more, true
}

func (p *planner) ofManager(id string) bool {
	return slices.ContainsFunc(p.mgrs.seats, func(s seat) bool { return s.id == id })
}

// ofGoneServer says whether a session is of an NFS server of ours that is gone, and its key with it: others may name theirs as we do. One that ended
// without unmounting keeps its session until its MDS has heard nothing of it for five minutes (Ceph: CephFS, session_autoclose).
func (p *planner) ofGoneServer(m cephreport.Mount) bool {
	entity := clientPrefix + m.Entity
	keyGone := p.seen.Entities != nil && !p.seen.Entities[entity]
	return strings.HasPrefix(entity, nfsPrefix) && keyGone && !p.nfsEntities()[entity]
}

// fsState says whether a filesystem can be used, and why not.
func (p *planner) fsState(x *fsPlan) writes.Word {
	word := func(state api.ResourceState, text string) writes.Word { return writes.Word{State: state, Text: text} }
	failure := p.failureOf(x.line()).Message
	known := p.fsKnown() && p.poolsKnown()
	switch problems := slices.Concat(x.refusals, x.waits).texts(); {
	case !known && x.id != 0:
		return word(api.ResourceOffline, "Ceph does not answer")
	case x.have == nil && len(x.lost) > 0:
		return word(api.ResourceOffline, strings.Join(problems, "; "))
	case x.have == nil && len(problems) > 0:
		return word(api.ResourcePending, strings.Join(problems, "; "))
	case !known:
		return word(api.ResourcePending, "Ceph does not answer yet")
	case x.have == nil && p.cluster.ModeOf() == api.ClusterObserved:
		return word(api.ResourcePending, "the cluster is in mode Observed: the filesystem does not exist and is not created")
	case x.have == nil && failure != "":
		return word(api.ResourcePending, failure)
	case x.have == nil:
		return word(api.ResourceCreating, "it is being created")
	}
	pools := poolParts(p, x.pools, func(pool *poolPlan) writes.Word { return p.fsPoolState(x, pool) })
	is := writes.JudgeFS(ranksOf(p, x)).WithPools(pools)
	if len(x.lostGroups) > 0 {
		is.State = writes.Worse(is.State, api.ResourceDegraded)
		is = is.Also(x.lostGroups.refusal(x.Filesystem).Message)
	}
	if left := p.groupsLeft(x); left > 0 && is.State == api.ResourceOnline {
		is.State = p.notYet(x)
		is = is.Also(words.Plural(left, "subvolume group") + " not made yet")
	}
	if is.State == api.ResourceCreating || is.State == api.ResourcePending {
		is.State = p.notYet(x)
	}
	return is.After(append(slices.Concat(x.refusals, x.waits).texts(), failure)...)
}

// notYet is the state of what is on its way: to those who use it already it is degraded.
func (p *planner) notYet(x *fsPlan) api.ResourceState {
	if neverServed(&x.Status.ResourceStatus) {
		return api.ResourceCreating
	}
	return api.ResourceDegraded
}

// ranksOf is what is known of the MDS of a filesystem that is there.
func ranksOf(p *planner, x *fsPlan) *writes.FS {
	f := &writes.FS{
		Name: x.Name, MaxMDS: x.have.MaxMDS, Closed: x.have.Closed, Damaged: x.have.Damaged, Down: x.have.Down,
		WantActive: fsspec.ActiveMDS(x.Filesystem), WantStandbys: fsspec.StandbyMDS(x.Filesystem), Fresh: neverServed(&x.Status.ResourceStatus),
	}
	for _, rank := range slices.Sorted(maps.Keys(x.have.MDS)) {
		switch m := x.have.MDS[rank]; {
		case m.Laggy:
			f.Hung = append(f.Hung, "mds."+m.Name)
		case m.State == fsmap.Active:
			f.Active = append(f.Active, "mds."+m.Name)
		case rank < x.have.MaxMDS:
			f.Busy = append(f.Busy, fmt.Sprintf("mds.%s is %s", m.Name, strings.TrimPrefix(m.State, "up:")))
		}
	}
	for _, seat := range x.service.seats {
		f.MDS = append(f.MDS, "mds."+seat.id)
		if slices.Contains(p.seen.FS.Standbys, seat.id) {
			f.Standbys++
		}
		if d := p.have[p.daemonOf(&x.service.crew, seat.id)]; d != nil && d.Status.State != api.DaemonRunning {
			f.Failing = append(f.Failing, "mds."+seat.id)
		}
	}
	f.ReadOnly = health.ReadOnly(p.seen.Checks, f.Active)
	return f
}

// endService lets the MDS of a filesystem go that is being deleted: when it is gone from Ceph, or is to stay there and nobody uses it.
func (p *planner) endService(x *fsPlan) {
	use := p.inUse(x)
	keeps := x.staysBehind() && fsspec.ClosingOf(x.have) == fsspec.Closed
	if p.fsKnown() && use.None() && (x.have == nil || keeps || !x.owns()) {
		x.service.count, x.service.least = 0, 0
	}
}

// owns says whether the filesystem in Ceph is the very one that the Filesystem was told to have.
func (x *fsPlan) owns() bool { return x.have.ID == x.id }

// inUse says who uses a filesystem that is being deleted; none when nobody does. One of which nobody
// serves a rank is used by nobody.
func (p *planner) inUse(x *fsPlan) (none engine.Objection) {
	if x.have == nil || !x.owns() {
		return none
	}
	mounts, more, known := p.mounts(x)
	mounts = slices.DeleteFunc(mounts, p.ofGoneServer)
	exports := p.exportersOf(x.Name)
	switch {
	case len(exports) > 0:
		return engine.Wait(api.ReasonInUse, "NFSExport %s exports it: delete the NFSExport first", words.Few(exports))
	case !known:
		return engine.Wait(api.ReasonNotAnswering, "waiting for the MDS to report its clients")
	case len(mounts)+more == 0:
		return none
	}
	names := make([]string, len(mounts))
	for i, m := range mounts {
		names[i] = m.String()
	}
	return engine.Wait(api.ReasonInUse, "mounted by %s: deleted when they have unmounted it", words.Few(names))
}

// dropFS takes a filesystem away that is being deleted, with its pools; it says whether the Filesystem may go.
func (p *planner) dropFS(x *fsPlan, s *api.FilesystemStatus) (gone bool) {
	s.State, s.Message = api.ResourceDeleting, ""
	wipe := fsspec.IsWiped(x.Filesystem)
	var busy, wait engine.Objection
	if p.fsKnown() {
		busy = p.inUse(x)
	}
	switch {
	case len(p.have) == 0:
		return true
	case !p.fsKnown() || !p.poolsKnown():
		wait = engine.Wait(api.ReasonNotAnswering, "deletion waits: Ceph does not answer")
	case !busy.None():
		wait = engine.Wait(busy.Reason, "deletion waits: %s", busy.Message)
	case p.plan.Refused:
		wait = waitsForCluster(p.view.Cluster.Name)
	case wipe && x.have != nil && x.owns():
		s.Message = p.failureOf(x.line()).Message
		p.fsCommand(x, api.ReasonDeleting, verbFSRm, map[string]string{paramID: strconv.FormatInt(x.id, 10)},
			"the Filesystem was deleted with deletionPolicy Wipe")
		return false
	case wipe && p.dropPools(x):
		s.Message = p.failureOf(x.line()).Message
		return false
	case closes(p, x, fsspec.Open):
		s.Message = p.failureOf(x.line()).Message
		closeFS(p, x)
		return false
	case closes(p, x, fsspec.Stopping):
		wait = engine.Wait(api.ReasonStopping, "deletion: its MDS write their journals and end all sessions")
	case len(p.membersOf(&x.service.crew)) > 0:
		wait = engine.Wait(api.ReasonDeleting, "deletion: removing its MDS")
	case x.staysBehind() && slices.ContainsFunc(p.seen.FS.Standbys, x.service.ownsID):
		s.Message = cmp.Or(p.failureOf(x.line()).Message, failGhosts(p, x))
		return false
	case p.keysLeft(x):
		wait = engine.Wait(api.ReasonDeleting, "deletion: removing the keys of its MDS")
	default:
		return true
	}
	s.Message = wait.Message
	p.object(x.line(), wait)
	return false
}

// failGhosts has Ceph drop MDS that have ended without a word. While no MDS sends beacons it misses
// none, and would give one of them the rank when the file system is taken up again: the next MDS
// finds an empty journal then, and Ceph calls the rank damaged (tracker.ceph.com/issues/65094).
func failGhosts(p *planner, x *fsPlan) (message string) {
	for _, id := range p.seen.FS.Standbys {
		if x.service.ownsID(id) {
			p.fsCommand(x, api.ReasonDeleting, verbMDSFail, map[string]string{paramID: id}, "mds.%s has ended silently", id)
			message = "deletion: Ceph drops mds." + id + ", which has no Daemon; if its process runs, stop it"
		}
	}
	return message
}

// closes says whether a file system which is kept is so far on its way to have no MDS.
func closes(p *planner, x *fsPlan, at fsspec.Closing) bool {
	return x.staysBehind() && len(p.membersOf(&x.service.crew)) > 0 && fsspec.ClosingOf(x.have) == at
}

// staysBehind says whether Ceph keeps the file system, though the Filesystem is deleted.
func (x *fsPlan) staysBehind() bool {
	return x.have != nil && x.owns() && !fsspec.IsWiped(x.Filesystem)
}

// closeFS has the MDS of a file system which is kept end their work in order, and Ceph miss none.
func closeFS(p *planner, x *fsPlan) {
	if x.have.MaxMDS > 0 {
		p.fsCommand(x, api.ReasonDeleting, verbFSSet, map[string]string{paramOption: optionDown, paramValue: "true"},
			"its MDS stop: they write their journals and end all sessions first")
	}
	if x.have.StandbyWanted > 0 {
		p.fsCommand(x, api.ReasonDeleting, verbFSSet, map[string]string{paramOption: optionStandby, paramValue: "0"},
			"its MDS stop: Ceph expects no standby any more")
	}
}

// dropPools has the pools deleted that were made for a filesystem which is gone; it says whether there are any.
func (p *planner) dropPools(x *fsPlan) (any bool) {
	for _, st := range x.Status.Pools {
		pool := p.poolNamed(st.Name)
		if pool == nil || st.ID != 0 && pool.ID != st.ID {
			continue
		}
		any = true
		x := &poolPlan{Pool: &api.Pool{}, owner: x.Filesystem, id: pool.ID}
		x.Name = st.Name
		p.poolCommand(x, api.ReasonDeleting, verbPoolDelete, api.RiskNone, x.byID(),
			"the Filesystem was deleted with deletionPolicy Wipe")
	}
	return any
}

// keysLeft says whether keys of MDS of a filesystem are left.
func (p *planner) keysLeft(x *fsPlan) bool {
	return slices.ContainsFunc(p.view.Secrets, func(s engine.SecretInfo) bool {
		id, ok := strings.CutPrefix(s.Annotations[AnnotationEntity], x.service.entityOf(""))
		return ok && x.service.owns(&api.Daemon{Spec: api.DaemonSpec{Type: TypeMDS, ID: id}})
	})
}
