package ceph

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/ids"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/monset"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/drives"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// Plan says what to change. It is pure.
func (d *Driver) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := d.newPlanner(view, now)
	if p.cluster.DeletionTimestamp != nil {
		p.plan.End(view, ending)
		return p.plan
	}
	if a := recovering(view); a != nil {
		p.planNothing(a)
	} else if watched(view) {
		p.planWatched()
	} else {
		p.planAll()
	}
	p.judgeRestart()
	return p.plan
}

// planAll is the plan of a cluster that is in Holdfast's hands.
func (p *planner) planAll() {
	for _, phase := range []func(){
		p.identity, p.planConfig, p.resolve, p.checkNetworks, p.declareServices, p.checkSelectors, p.planMons, p.planOSDs,
		p.planModes, p.planFlaps, p.keepStopped, p.planRestarts, p.planDrains, p.planLocations, p.comparePlaces,
		func() { planDrift(p) }, p.moveMons, p.planMgrs, p.planDefaults, p.planPools, p.chooseNFS, p.planFilesystems,
		p.planStores, p.planMirrors, p.manServices, p.checkStores, p.restartGateways, p.planUsers, p.planOwnPools,
		p.tellCopies, p.awaitMore,
	} {
		phase()
	}
	switch {
	case p.refused():
		p.onlyRefuse()
	case len(p.members) > 0:
		p.writeSecrets()
		p.writeDaemons()
		p.writeCommands()
	}
	for _, n := range p.nodes {
		if n.group == nil {
			p.plan.PutNode(n.ResolvedNode, n.problems, p.now)
		}
	}
	p.writeGroups()
	p.putPools()
	p.putFilesystems()
	p.putExports()
	p.putClients()
	p.putStores()
	p.putMirrors()
	p.putUsers()
	p.writeStops()
	p.writeStatus()
}

// planner makes one plan. Its phases fill in what is wanted; then the plan is written from it.
type planner struct {
	view    *engine.View
	now     time.Time
	waits   waits.Waits
	cluster *api.StorageCluster
	spec    api.CephSpec
	seen    *Observation // nil when Ceph was not asked
	have    map[string]*api.Daemon
	hosts   map[string]*api.Host
	fsid    string

	nodes    []*node
	members  []member // empty while the mons cannot be placed
	joining  []member // mons that are on their way in
	silence  decided  // what was said of each mon while Ceph does not answer
	mgrs     *crew
	crews    []*crew    // the managers, and then those of the services
	services []*service // what serves resources
	osds     []*osd
	groups   []*drives.Outcome
	taken    map[devicePlace]*osd  // the OSDs by what they are on
	fatal    bool                  // nothing can be done, whatever there is already
	hold     time.Duration         // how long to wait for more to be declared
	stop     map[string]bool       // the names of the Daemons that are to stop
	again    map[string]string     // why, of those that only stop to be started again
	keptIn   map[string]bool       // of OSDs that are to stop with their hosts: whether the mons keep them in already
	stopping []api.Daemon          // these OSDs
	leaving  map[string]bool       // the hosts whose mgr may go, as far as all else is concerned
	going    leaving.Set           // the OSDs that are not to stay
	parting  map[string]bool       // the names of the Daemons of OSDs that leave for good, as far as they may
	empty    map[string]bool       // those of them that may stop, as nothing is on them that would be missed
	replaced map[string]string     // by the names of the Daemons of OSDs that failed: the device that takes the place of theirs
	awaited  map[string]string     // by the names of those that spec.replace has leave: the device that gets the number
	moved    map[string]*movedDisk // by the names of the Daemons of OSDs: where their disks are now
	held     map[string]time.Time  // the names of the Daemons of OSDs that are held back, and since when
	granted  map[devicePlace]bool  // what was taken from the cluster and may leave
	yielded  map[string]string     // the hosts whose mon is to have another one in its place although it works, and why
	// astray are the names of the Daemons of crews that are to have others in their places although no mode of their hosts asks for it, and why;
	// released are those that may go, as others are in their places
	astray      map[string]string
	released    map[string]bool
	lost        map[string]time.Time // the hosts that no StorageNode means any more, and since when
	avoided     map[string]time.Time // the hosts where a mon kept failing, and until when none is made there
	defaults    poolDefaults
	ownPools    []*poolPlan // Ceph's own, which no resource declares
	pools       []*poolPlan
	filesystems []*fsPlan
	nfs         *nfs.Server // what serves NFSExports: nothing before chooseNFS
	stores      []*storePlan
	users       []*userPlan
	mirrors     []*mirrorPlan
	oldest      map[string]*api.Daemon // by their types, those that run the oldest release (oldestOf)
	// unplaced are the hosts that are not yet where CRUSH is to have them, so that no OSD begins there; nowhere those of them that cannot be so.
	// located is where hosts are to be put, by their names in CRUSH.
	unplaced, nowhere map[string]bool
	crushIndex        *crushHosts // see crushed
	differ            differences
	located           map[string]string
	moving            bool // a host is on its way into maintenance, or out of it; or a mon is on its way

	options options // what spec.ceph asks for of Ceph's own configuration
	// configStored is set when Ceph's own configuration has all of that; configSet and configGone are what it lacks, and has too much.
	configStored          bool
	configSet, configGone map[string]string

	plan *engine.Plan
}

// sorted is a view whose Daemons are in the order of their names, in which they are told of.
func sorted(view *engine.View) *engine.View {
	byName := func(a, b api.Daemon) int { return strings.Compare(a.Name, b.Name) }
	if slices.IsSortedFunc(view.Daemons, byName) {
		return view
	}
	v := *view
	v.Daemons = slices.SortedFunc(slices.Values(view.Daemons), byName)
	return &v
}

// newPlanner makes a planner that waits as the Driver says.
func (d *Driver) newPlanner(view *engine.View, now time.Time) *planner {
	p := newPlanner(view, now)
	p.waits = d.Waits.OrDefault()
	return p
}

func newPlanner(view *engine.View, now time.Time) *planner {
	view = sorted(view)
	p := &planner{
		view: view, now: now, waits: waits.Default(), cluster: view.Cluster,
		have: view.DaemonsByName(), hosts: view.HostsByName(), taken: map[devicePlace]*osd{}, stop: map[string]bool{}, again: map[string]string{}, keptIn: map[string]bool{}, leaving: map[string]bool{}, parting: map[string]bool{}, replaced: map[string]string{}, awaited: map[string]string{}, empty: map[string]bool{}, granted: map[devicePlace]bool{}, yielded: map[string]string{}, astray: map[string]string{}, released: map[string]bool{}, unplaced: map[string]bool{}, nowhere: map[string]bool{}, located: map[string]string{}, nfs: &nfs.Server{}, plan: &engine.Plan{},
	}
	if view.Cluster.Spec.Ceph != nil {
		p.spec = *view.Cluster.Spec.Ceph
	}
	// The API server sets these defaults; a plan of a file that was never sent to it has to do without.
	if p.spec.Mon.ReplaceAfter == nil {
		p.spec.Mon.ReplaceAfter = &metav1.Duration{Duration: monReplaceAfter}
	}
	if p.spec.Mon.Count == 0 {
		p.spec.Mon.Count = 3
	}
	if p.spec.Mgr.Count == 0 {
		p.spec.Mgr.Count = 2
	}
	p.going = leaving.Of(view)
	p.seen, _ = view.System.(*Observation)
	return p
}

// reachable says whether Ceph answered, and is the right one.
func (p *planner) reachable() bool {
	return p.seen != nil && p.seen.Reachable && p.seen.FSID == p.fsid
}

func (p *planner) decide(verdict api.Verdict, reason api.Reason, object, format string, args ...any) {
	p.plan.Decide(verdict, reason, object, format, args...)
}

// refused says whether the plan as a whole is refused. A cluster of which nothing is there yet is not half made: any fault in its own spec or
// in its nodes refuses all of it. In a cluster that exists, a fault concerns only what it is a fault of, and so does that of a resource.
func (p *planner) refused() bool {
	return p.fatal || len(p.have) == 0 && slices.ContainsFunc(p.plan.Decisions, func(d api.Decision) bool {
		return d.Verdict == api.VerdictRefuse && !engine.OfResource(d.Object)
	})
}

// onlyRefuse leaves of the plan what a refused one may have.
func (p *planner) onlyRefuse() {
	*p.plan = engine.Plan{Refused: true, Decisions: p.plan.Decisions}
}

// identity finds the cluster's fsid, and makes sure that the keys that are there are its own.
func (p *planner) identity() {
	p.fsid = clusterFSID(p.view)
	for _, s := range p.view.Secrets {
		uid := s.Annotations[AnnotationClusterUID]
		if s.Annotations[AnnotationEntity] == "" || uid == "" || uid == string(p.cluster.UID) {
			continue
		}
		p.fatal = true
		p.decide(api.VerdictRefuse, api.ReasonConflict, "cluster/"+p.cluster.Name,
			"Secret %s belongs to an earlier cluster of this name (fsid %s), whose data was retained: delete the Secrets "+
				"%s-key-* if its data is no longer needed, or choose another name",
			s.Name, s.Annotations[AnnotationFSID], p.cluster.Name)
		return
	}
}

// clusterFSID is the fsid that the cluster's keys were made for, or that of a new cluster. The keys decide, because an fsid
// must stay the same whatever becomes of the StorageCluster.
func clusterFSID(view *engine.View) string {
	name := secretName(view.Cluster.Name, entityMon)
	for _, s := range view.Secrets {
		if s.Name == name && s.Annotations[AnnotationFSID] != "" {
			return s.Annotations[AnnotationFSID]
		}
	}
	return ids.FSID(view.Cluster)
}

// settleTime is how long after the last object of a new cluster was declared more of them may follow. The API tells times in
// whole seconds, so it is one to two seconds in truth.
const settleTime = 2 * time.Second

// settling says how much of that time is left.
func (p *planner) settling() time.Duration {
	if len(p.have) > 0 {
		return 0
	}
	last := p.cluster.CreationTimestamp.Time
	for _, n := range p.nodes {
		if t := n.Node.CreationTimestamp.Time; t.After(last) {
			last = t
		}
	}
	return max(0, last.Add(settleTime).Sub(p.now))
}

// awaitMore holds up a new cluster that looks small. How many copies are kept, and whether on distinct hosts, is decided by what
// is declared when the cluster is made, and objects are declared one after the other: three hosts must not be taken for one
// because the first was seen before the others were written. A plan that is refused waits for nothing.
func (p *planner) awaitMore() {
	if p.refused() {
		return
	}
	f := p.confFacts()
	if left := p.settling(); left > 0 && len(p.members) > 0 && (f.osds < maxCopies || f.osdHosts < maxCopies) {
		p.hold, p.members = left, nil
		p.decide(api.VerdictWait, api.ReasonSettling, "cluster/"+p.cluster.Name,
			"%s on %s: waiting up to 2 s for more OSDs to be declared before choosing the replica count",
			words.Plural(f.osds, "OSD"), words.Plural(f.osdHosts, "host"))
	}
}

// writeSecrets asks for the keys that are not there.
func (p *planner) writeSecrets() {
	entities := []string{entityMon, entityAdmin}
	for _, c := range p.crews {
		for _, s := range c.seats {
			entities = append(entities, c.entityOf(s.id))
		}
	}
	for _, o := range p.osds {
		entities = append(entities, o.label())
	}
	if p.nfs.At != nil {
		entities = append(entities, nfsPrefix+p.nfs.At.Node)
	}
	if slices.ContainsFunc(p.mirrors, func(x *mirrorPlan) bool { return x.DeletionTimestamp == nil }) {
		entities = append(entities, rbdmirror.PeerEntity)
	}
	have := make(map[string]bool, len(p.view.Secrets))
	for _, s := range p.view.Secrets {
		have[s.Name] = true
	}
	for _, entity := range entities {
		if !have[secretName(p.cluster.Name, entity)] {
			p.plan.Secrets = append(p.plan.Secrets, p.secretWant(entity))
		}
	}
}

// writeDaemons turns what is wanted into changes of Daemons.
func (p *planner) writeDaemons() {
	facts := p.confFacts()
	monmap, monHosts := monset.Params(p.members)
	for _, m := range slices.Concat(p.members, p.joining) {
		p.want(p.monDaemon(m, facts, monmap, monHosts))
	}
	for _, m := range p.mgrs.seats {
		p.want(p.mgrDaemon(m, facts))
	}
	for _, o := range p.osds {
		p.want(p.osdDaemon(o, facts))
	}
	for _, s := range p.services {
		for _, at := range s.seats {
			if p.admitted(&s.crew, at.id) {
				p.want(p.serviceDaemon(s, at, facts))
			}
		}
	}
}

// want has a daemon made or changed, if it is not there as it is wanted.
func (p *planner) want(d api.Daemon) {
	have := p.have[d.Name]
	if have != nil && have.DeletionTimestamp != nil && p.goes(&d) {
		return
	}
	if since, lost := p.lost[d.Spec.Host]; lost && have != nil {
		memory.Set(&d, memory.LostSince, since.Format(time.RFC3339))
	}
	d.Spec.State = p.wantedState(&d)
	p.noteFlaps(&d, have)
	if _, stops := p.keptIn[d.Name]; stops {
		p.stopping = append(p.stopping, d)
		return
	}
	memory.Settle(&d, have)
	if why := p.again[d.Name]; why != "" {
		p.plan.Restart(label(&d), have, d, why)
		return
	}
	p.plan.WantFor(p.wantedFor(&d, have), label(&d), label(&d), have, d)
}

// wantedFor is why a daemon that is there is changed.
func (p *planner) wantedFor(d, have *api.Daemon) api.Reason {
	_, flaps := p.held[d.Name]
	switch stops := have != nil && !told(have) && told(d); {
	case stops && flaps:
		return api.ReasonHeldBack
	case stops && asked.Stopped(have):
		return api.ReasonStopAsked
	case stops && p.closed(d.Spec.Host) && !p.parting[d.Name]:
		return api.ReasonHostNotActive
	case p.parting[d.Name] && drains(d):
		return api.ReasonRemoving
	case have != nil && drains(have) && !drains(d):
		return api.ReasonBackInUse
	}
	return api.ReasonDeclared
}

// writeStops has OSDs stop with their hosts: those that the mons do not keep in yet when they do. What Ceph said of them may not be so after
// this plan, such as that it can do without them, if the plan takes others back in; the flag has Ceph asked for nothing else beside it, which
// might take long. Then Ceph is asked again first, in the next run.
func (p *planner) writeStops() {
	asked := func(is func(verb string) bool) bool {
		return slices.ContainsFunc(p.plan.Commands, func(c engine.Command) bool { return is(c.Verb) })
	}
	takenIn := asked(func(verb string) bool { return verb == verbOSDIn || verb == verbReweight })
	more := asked(func(verb string) bool { return verb != verbNoout })
	for _, d := range p.stopping {
		have, kept := p.have[d.Name], p.keptIn[d.Name]
		if takenIn || more && !kept {
			d.Spec.State = have.Spec.State
		}
		memory.Settle(&d, have)
		p.plan.WantFor(p.wantedFor(&d, have), label(&d), label(&d), have, d)
		if !kept {
			p.plan.RelyOnCommands(d.Name)
		}
	}
}

// daemon makes what all Daemons have in common.
func (p *planner) daemon(daemonType, id, host, address string, facts *confFacts) api.Daemon {
	user := p.confOf(daemonType, id)
	text := facts.confText(daemonType, address, user)
	parameters := map[string]string{ParamFSID: p.fsid, ParamAddress: address}
	if user != "" {
		parameters[ParamConfig] = user
	}
	if have := p.have[daemonName(p.cluster.Name, kindOf(daemonType), id)]; have != nil {
		for _, name := range []string{api.ParameterForeign, ParamForeignStore} {
			if value, adopted := have.Spec.Parameters[name]; adopted {
				parameters[name] = value
			}
		}
	}
	return api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace, Name: daemonName(p.cluster.Name, kindOf(daemonType), id),
			Labels: map[string]string{api.LabelCluster: p.cluster.Name}, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: p.cluster.Name, Type: daemonType, ID: id, Host: host, State: api.WantRunning,
			Command:    []string{daemonType, "-f", "-i", id, "-c", "${DATA}/" + FileConf},
			Files:      []api.DaemonFile{{Path: FileConf, Sources: []api.FileSource{{Text: &text}}}},
			Parameters: parameters,
			// A daemon that is deleted by hand, or whose cluster's policy changes, must not lose its data on the way:
			// only the deletion of the whole cluster sets another policy.
			OnRemoval: api.DeletionRetain,
		},
	}
}

// keyringFile is a file of the keys of entities.
func (p *planner) keyringFile(entities ...string) api.DaemonFile {
	f := api.DaemonFile{Path: FileKeyring}
	for _, e := range entities {
		f.Sources = append(f.Sources, api.FileSource{Secret: &api.SecretKey{Name: secretName(p.cluster.Name, e), Key: secretKeyring}})
	}
	return f
}

// confFacts gathers what ceph.conf depends on: the OSDs that there are, and those that are declared and still to come.
func (p *planner) confFacts() *confFacts {
	f := &confFacts{fsid: p.fsid, members: p.members, network: p.cluster.Spec.Network, osds: len(p.osds)}
	f.orch = orch.Has(&p.spec, orchFacts(p), p.daemonsOf(TypeMgr))
	hosts := map[string]bool{}
	for _, o := range p.osds {
		hosts[o.host] = true
	}
	f.osdHosts = len(hosts)
	for _, n := range p.nodes {
		f.osds += n.toCome
		if n.toCome > 0 && !hosts[n.hostName()] {
			f.osdHosts++
		}
	}
	return f
}

// writeCommands asks Ceph for what only Ceph can do.
func (p *planner) writeCommands() {
	if !p.reachable() {
		return
	}
	p.writeConfig()
	if p.seen.Entities != nil {
		for _, c := range p.crews {
			for _, s := range c.seats {
				if entity := c.entityOf(s.id); !p.seen.Entities[entity] && p.seen.Found.Keys[entity] == "" {
					p.command(importReason(p, entity), verbAuthImport, entity, nil, "its key is not in Ceph's auth database")
				}
			}
		}
	}
	p.forgetCrews()
	registerOSDs(p)
	p.writeDefaults()
	p.writePools()
	p.writeOwnPools()
	p.writeFilesystems()
	p.writeNFS()
	p.dropRules()
	p.writeClients()
	p.writeUsers()
	p.writeMirrors()
	p.writeLocations()
}

func (p *planner) command(reason api.Reason, verb, object string, params map[string]string, why string) {
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Reason: why, Risk: verbs[verb].risk,
	})
	p.decide(api.VerdictDo, reason, object, "%s: %s", verb, why)
}
