package ceph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/drift"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/ceph/serves"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/serving"
	"github.com/holdfast-storage/holdfast/internal/words"
)

const healthOK = "HEALTH_OK"

// How soon to look at Ceph again while something of it is waited for; it sends no word of its own.
const (
	recheckSoon  = 75 * time.Millisecond
	recheckLater = time.Second
	// lively is how long after the last start of a daemon things are expected to move on fast.
	lively = time.Minute
	// firstPool is how long a cluster without any pool is given for the manager to make the one that it keeps its own
	// records in, which it does when the first OSDs are up. Without this the cluster would be well for a moment, and then
	// not, while that pool's placement groups are made. With the manager's devicehealth switched off there never is one.
	firstPool = 5 * time.Second
	// slow is how long they are expected to move on at all. After that the cluster's interval will do.
	slow = 15 * time.Minute
)

// state is the verdict on of the cluster in the making.
type state struct {
	reasons []string
	offline bool // data cannot be served
	coming  bool // something has not been up yet and is expected to be soon
	failed  bool // something that is waited for has failed
}

func (s *state) because(format string, args ...any) {
	s.reasons = append(s.reasons, fmt.Sprintf(format, args...))
}

// writeStatus tells the cluster's state by Ceph's own word, and whether anything is left to wait for.
func (p *planner) writeStatus() {
	s := &state{}
	p.judge(s)
	offline := s.offline || s.coming && !p.view.Served() && p.within(lively)
	status := engine.StatusOf(api.StorageCeph, offline, s.reasons, p.readyNodes())
	if p.reachable() {
		status.Health = p.seen.Health
		status.Ceph, status.Figures = p.seen.cephStatus(), p.seen.Figures
		status.Checks = p.tellChecks()
		p.plan.Said = said(p)
		if p.seen.BytesTotal > 0 {
			status.Capacity = resource.NewQuantity(p.seen.BytesTotal, resource.BinarySI)
		}
	} else if len(p.members) > 0 {
		status.Ceph = &api.CephStatus{FSID: p.fsid}
	}
	p.plan.Status = status
	p.plan.Settle(p.view)
	p.plan.Recheck = p.recheck(s)
}

// judge finds everything that keeps the cluster from being ONLINE, the most telling first.
func (p *planner) judge(s *state) {
	s.reasons = orch.Without(p.silence.others(p.plan)).Open() // orderSilence adds it
	p.judgeModes(s)
	p.judgeDaemons(s)
	if len(p.members) == 0 {
		s.offline = true
		return
	}
	if !p.reachable() {
		before := s.reasons
		s.reasons = nil
		p.judgeSilence(s)
		s.reasons = p.orderSilence(before, s.reasons)
		return
	}
	p.judgeMons(s)
	p.judgeMgrs(s)
	p.judgeOSDs(s)
	p.judgePGs(s)
	p.judgePlaces(s)
	p.judgeResources(s)
	p.judgeHealth(s)
}

// judgeHealth tells what Ceph finds wrong.
func (p *planner) judgeHealth(s *state) {
	if p.seen.Health == healthOK {
		return
	}
	for _, check := range p.seen.Checks {
		if !p.ofNewPools(check) {
			s.because("%s: %s: %s", check.Severity, check.Code, check.Message)
		}
	}
	if len(p.seen.Checks) == 0 {
		s.because("Ceph reports %s", p.seen.Health)
	}
}

// judgeModes tells which hosts are in maintenance, so that what follows from it does not come as a surprise.
func (p *planner) judgeModes(s *state) {
	for _, u := range p.upkeeps() {
		if p.atRest(u) {
			s.because("stopped for maintenance of host %s: %s", u.host, p.joinLabels(u.daemons))
		}
	}
}

// judgeDaemons tells of daemons that fail, in their agent's words.
func (p *planner) judgeDaemons(s *state) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if d.Status.State != api.DaemonFailed && d.Status.State != api.DaemonBackOff {
			continue
		}
		s.failed = true
		s.because("%s on %s: %s%s", label(d), d.Spec.Host, d.Status.State, words.Colon(d.Status.Message))
	}
}

// semicolon sets a text off from what is before it, if there is one.
func semicolon(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// judgeSilence says why the mons do not answer.
func (p *planner) judgeSilence(s *state) {
	s.offline = true
	hosts := p.idleMons()
	running := len(p.members) - len(hosts)
	quorum, mute := len(p.members)/2+1, p.muteMons()
	switch {
	case p.seen != nil && p.seen.Refused:
		s.because("%s", drift.AdminKey)
		s.offline = false // they are a quorum, and serve others meanwhile
	case p.seen != nil && p.seen.Reachable:
		s.because("the mons answer for another cluster (fsid %s instead of %s): something else listens on their addresses", p.seen.FSID, p.fsid)
	case running-len(mute) < quorum && len(hosts) > 0:
		s.because("waiting for %d of %d mons to form a quorum: %d run; missing: %s%s",
			quorum, len(p.members), running, words.Few(hosts), semicolon(muteText(mute)))
	case len(mute) > 0:
		s.because("waiting for %d of %d mons to form a quorum: %s", quorum, len(p.members), muteText(mute))
	default:
		s.because("waiting for %d of %d mons to form a quorum", quorum, len(p.members))
	}
}

func (p *planner) judgeMons(s *state) {
	for _, m := range p.members {
		if !slices.Contains(p.seen.Quorum, m.ID) {
			s.because("mon.%s on %s is not in the quorum", m.ID, m.Host)
		}
	}
}

func (p *planner) judgeMgrs(s *state) {
	present := p.seen.Standbys
	if p.seen.MgrAvailable {
		present++
	}
	switch {
	case !p.seen.MgrAvailable:
		s.because("no mgr is active yet")
		s.coming = true
	case present < len(p.mgrs.seats):
		s.because("%d of %d mgrs are available", present, len(p.mgrs.seats))
		s.coming = true
	}
}

func (p *planner) judgeOSDs(s *state) {
	up := 0
	for _, o := range p.osds {
		in, known := p.seen.OSDs[o.id]
		d := p.have[daemonName(p.cluster.Name, "osd", fmt.Sprint(o.id))]
		switch {
		case in.Up && in.In:
			up++
			continue
		case in.Up:
			up++
			s.because("%s on %s is out", o.label(), o.host)
			continue
		case !known:
			s.because("%s on %s is not in Ceph's map yet", o.label(), o.host)
		case asked.Stopped(d):
			s.because("%s on %s is down: %s", o.label(), o.host, asked.StopText(d))
		case d != nil && held(d):
			s.because("%s on %s is down: %s", o.label(), o.host, heldText(d, heldSince(d)))
		default:
			s.because("%s on %s is down", o.label(), o.host)
		}
		if d == nil || d.Spec.State != api.WantStopped && d.Status.State != api.DaemonFailed && d.Status.State != api.DaemonBackOff {
			s.coming = true
		}
	}
	if len(p.osds) == 0 {
		s.because("no OSD: no StorageNode of the cluster names a usable device")
	}
	s.offline = s.offline || up == 0
}

// judgePGs does not take HEALTH_OK for an answer: until the mgr has reported, Ceph says it of placement groups that nobody
// has looked at yet.
func (p *planner) judgePGs(s *state) {
	o := p.seen
	switch {
	case len(p.osds) == 0:
	case o.PGsWanted == 0 && (p.within(firstPool) || newMgr(p)):
		s.because("the mgr has not created its own pool yet")
		s.coming = true
	case o.BytesTotal == 0 || o.PGs < o.PGsWanted && !p.onlyNewPools():
		s.because("the mgr has not reported on all placement groups yet (%d of %d)", o.PGs, o.PGsWanted)
		s.coming = true
	case o.PGsClean < o.PGs && !p.onlyNewPools():
		s.because("%d of %d placement groups are active+clean", o.PGsClean, o.PGs)
		s.coming = true
		s.offline = s.offline || o.PGsActive == 0 && o.MgrAvailable && (o.PGsUnknown == 0 || !p.view.Served())
	case o.PGsOld && p.view.Status != nil && p.view.Status.Status.Status == api.StorageDegraded:
		// A cluster that is well is not called degraded for it, and one that comes up is watched by what its pools should have.
		s.because("waiting for the mgr to report placement groups after the last OSD map change")
		p.moving = true
	}
}

// newMgr says whether the manager of a cluster that comes up has just become active: on a busy machine that is
// long after it was started.
func newMgr(p *planner) bool {
	online := p.view.Status != nil && p.view.Status.Status.Status == api.StorageOnline
	return !online && p.now.Sub(p.seen.MgrSince.Time) < firstPool
}

// readyNodes are the nodes that are set up: accepted, and their OSDs up.
func (p *planner) readyNodes() []string {
	var names []string
	for _, n := range p.nodes {
		if n.group == nil && p.nodeReady(n) {
			names = append(names, n.Node.Name)
		}
	}
	return names
}

func (p *planner) nodeReady(n *node) bool {
	if !p.reachable() || n.Host == nil || len(n.Problems)+len(n.problems)+n.toCome > 0 {
		return false
	}
	for _, r := range n.Devices {
		o := p.taken[devicePlace{n.Host.Name, r.ID}]
		if r.Problem != "" || o == nil || !p.seen.OSDs[o.id].Up {
			return false
		}
	}
	return true
}

// recheck says when to look again. What hosts and agents do is told by watches; only Ceph has to be asked.
func (p *planner) recheck(s *state) time.Duration {
	running := false
	for _, d := range p.daemonsOf(TypeMon) {
		running = running || d.Status.State == api.DaemonRunning
	}
	switch {
	case p.plan.Done || p.plan.Refused:
		return 0
	case p.hold > 0:
		return p.hold
	case !running:
		return 0
	case !s.failed && p.within(lively):
		return recheckSoon
	case p.moving || p.within(slow):
		return recheckLater
	}
	return 0
}

// within says whether a daemon was made or started less than d ago. Without any time to go by, things count as new.
func (p *planner) within(d time.Duration) bool {
	var last time.Time
	for i := range p.view.Daemons {
		x := &p.view.Daemons[i]
		if t := x.CreationTimestamp.Time; t.After(last) {
			last = t
		}
		if x.Status.Started != nil && x.Status.Started.After(last) {
			last = x.Status.Started.Time
		}
	}
	return last.IsZero() || p.now.Sub(last) < d
}

// said is what Ceph says of daemons whose processes run.
func said(p *planner) serving.Said {
	o := p.seen
	f := &serves.Facts{
		Now: p.now, Fresh: p.waits.DaemonFresh, Monmap: o.Monmap, Quorum: o.Quorum, Mute: o.Mute,
		ActiveMgr: o.ActiveMgr, Mgrs: o.Mgrs, Flags: o.Found.Flags, Checks: o.Checks, OSDs: map[int]serves.OSD{},
		Unanswered: func(d *api.Daemon) string { return mute(o, d) },
	}
	if o.MgrAvailable && p.now.Sub(o.MgrSince.Time) > f.Fresh {
		f.Listed = o.Listed
	}
	if o.PoolFacts != nil {
		for _, pool := range o.Pools {
			f.Takes = append(f.Takes, o.PoolFacts.Rules[pool.Rule].Takes...)
		}
	}
	saidOfMDS(f, o.FS)
	all := serving.Said{}
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		if id, err := strconv.Atoi(d.Spec.ID); err == nil && d.Spec.Type == TypeOSD && osdOf(d, o.OSDs).UUID != "" {
			f.OSDs[id] = saidOSD(p, d, id)
		}
		if s := f.Of(d); s != nil {
			all[d.Name] = s
		}
	}
	return all
}

func saidOfMDS(f *serves.Facts, facts *FSFacts) {
	if facts == nil {
		return
	}
	f.MDS, f.Standbys = map[string]serves.Rank{}, facts.Standbys
	for name, fs := range facts.Filesystems {
		if fs.Closed {
			f.Closed = append(f.Closed, name)
		}
		for _, mds := range fs.MDS {
			f.MDS[mds.Name] = serves.Rank{Filesystem: name, State: mds.State, Laggy: mds.Laggy}
		}
	}
}

func saidOSD(p *planner, d *api.Daemon, id int) serves.OSD {
	seen, at := p.seen.OSDs[id], p.seen.Crush[label(d)]
	o := serves.OSD{
		Up: seen.Up, In: seen.In, State: strings.Fields(seen.State), Placed: len(at.In) > 0,
		Place:  Place{Class: at.Class, Weight: at.Weight, Buckets: at.In},
		Leaves: p.parting[d.Name] || p.closed(d.Spec.Host) || drains(d),
	}
	if h := p.hosts[d.Spec.Host]; h != nil && len(d.Spec.Devices) > 0 {
		for _, dev := range h.Status.Devices {
			if dev.ID == d.Spec.Devices[0].ID {
				o.Weight = fmt.Sprintf("%.5f", float64(cmp.Or(d.Spec.Devices[0].Bytes, dev.Size.Value()))/(1<<40))
			}
		}
	}
	return o
}

// mute is why a gateway does not answer, by the report on the process that runs.
func mute(o *Observation, d *api.Daemon) string {
	if r := o.Gateways[d.Name]; r != nil && !r.Up && r.PID == d.Status.PID {
		return cmp.Or(r.Problem, "nothing answers at its address")
	}
	return ""
}
