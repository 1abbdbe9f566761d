package gluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// nfsServer is the NFS server of the cluster, which there is while there is an export.
type nfsServer struct {
	node   *node       // where it is wanted; nil for nowhere
	daemon *api.Daemon // of that node; nil while there is none
	report *ganesha.Report
	want   api.Daemon
	taken  []string // hosts that would do, and where another cluster's server is
}

func nfsDaemonName(cluster, node string) string { return cluster + "-nfs-" + node }

// chooseNFS chooses the node that serves NFS: the same one as long as it can.
func (p *planner) chooseNFS() {
	p.exports = engine.OfKind[*api.NFSExport](p.view.Resources)
	var able []*node
	for _, n := range p.nodes {
		switch {
		case len(p.exports) == 0 || !n.running() || n.leaving != "" || p.hosts[n.hostName()].ModeOf() != api.HostActive:
		case p.nfsOfAnother(n):
			p.nfs.taken = append(p.nfs.taken, n.hostName())
		default:
			able = append(able, n)
		}
	}
	serves := func(n *node) int {
		if d := p.have[nfsDaemonName(p.cluster.Name, n.name)]; d != nil && d.DeletionTimestamp == nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(able, func(a, b *node) int { return cmp.Compare(serves(a), serves(b)) })
	if len(able) == 0 {
		return
	}
	p.nfs.node = able[0]
	p.nfs.daemon = p.have[nfsDaemonName(p.cluster.Name, able[0].name)]
	if d := p.nfs.daemon; d != nil && d.Status.State == api.DaemonRunning {
		p.nfs.report = p.seen.NFS[d.Name]
	}
}

// nfsOfAnother says whether the NFS server of another cluster is on a node's host. NFS-Ganesha listens on all addresses of its host, whatever
// its Bind_addr is, so that a second one could not start. One of ours that is there stays.
func (p *planner) nfsOfAnother(n *node) bool {
	return p.have[nfsDaemonName(p.cluster.Name, n.name)] == nil && slices.ContainsFunc(p.view.Others, func(d *api.Daemon) bool {
		return d.Spec.Type == ganesha.Type && d.Spec.Host == n.hostName()
	})
}

// planExports has the exports served, and says how they are.
func (p *planner) planExports() {
	served := p.servedExports()
	p.placeNFS(served)
	p.reloadNFS()
	for _, e := range p.exports {
		p.writeExport(e, served[e.Name])
	}
}

// servedExports says of each export why it cannot be served, or nothing where it can. Of two with one pseudo path the older one has it.
func (p *planner) servedExports() map[string]*exportPlan {
	plans := map[string]*exportPlan{}
	byAge := slices.Clone(p.exports)
	slices.SortStableFunc(byAge, func(a, b *api.NFSExport) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	pseudos, ids := map[string]string{}, map[int32]bool{}
	for _, e := range p.exports {
		ids[e.Status.ExportID] = true
	}
	for _, e := range byAge {
		x := &exportPlan{id: e.Status.ExportID}
		plans[e.Name] = x
		if x.refusal, x.waits = p.cannotExport(e); x.refusal == "" && pseudos[e.PseudoOf()] != "" {
			x.refusal = fmt.Sprintf("NFSExport %s has the pseudo path %s already: choose another one", pseudos[e.PseudoOf()], e.PseudoOf())
		}
		if e.DeletionTimestamp != nil || x.refusal != "" {
			continue
		}
		pseudos[e.PseudoOf()] = e.Name
		if x.id == 0 {
			x.id = freeID(ids)
		}
	}
	return plans
}

// freeID takes the lowest number that no export has.
func freeID(taken map[int32]bool) int32 {
	id := int32(1)
	for taken[id] {
		id++
	}
	taken[id] = true
	return id
}

// exportPlan is what becomes of an export.
type exportPlan struct {
	id             int32
	refusal, waits string
}

// cannotExport says why the volume of an export cannot be served: not at all, or not yet.
func (p *planner) cannotExport(e *api.NFSExport) (refusal, waits string) {
	i := slices.IndexFunc(p.volumes, func(v *volume) bool { return v.name == e.Spec.Volume })
	switch {
	case i < 0 || p.volumes[i].declared == nil:
		return fmt.Sprintf("cluster %s has no Volume %s", p.cluster.Name, e.Spec.Volume), ""
	case p.volumes[i].declared.DeletionTimestamp != nil && e.Status.ExportID == 0: // the volume waits for those that are served
		return "", fmt.Sprintf("volume %s is being deleted", e.Spec.Volume)
	case p.volumes[i].pool == nil && p.ready() || p.volumes[i].pool != nil && p.volumes[i].pool.State != glusterd.VolumeStarted:
		return "", fmt.Sprintf("volume %s is not started yet", e.Spec.Volume)
	}
	return "", ""
}

// placeNFS brings the Daemon of the server to where it is wanted, and lets go of all others.
func (p *planner) placeNFS(plans map[string]*exportPlan) {
	for i := range p.view.Daemons {
		d := &p.view.Daemons[i]
		wanted := p.nfs.node != nil && d.Name == nfsDaemonName(p.cluster.Name, p.nfs.node.name)
		switch {
		case d.Spec.Type != ganesha.Type || wanted:
		case d.DeletionTimestamp != nil:
			p.decideNFSLeaves(d, "it is being removed")
		case p.nfs.node == nil && len(p.exports) > 0 && p.hosts[d.Spec.Host].ModeOf() == api.HostActive:
			p.decide(api.VerdictWait, "daemon/"+d.Name, "its node is not heard, and no other node can serve NFS")
		default:
			why := "nothing is exported by NFS any more"
			if p.nfs.node != nil {
				why = "node " + p.nfs.node.name + " serves NFS now"
			} else if len(p.exports) > 0 {
				why = "its host leaves service, and no other node can serve NFS"
			}
			p.plan.Remove = append(p.plan.Remove, engine.Removal{Name: d.Name, Reason: why, Risk: api.RiskNone})
			p.decideNFSLeaves(d, why)
		}
	}
	if p.nfs.node != nil {
		p.nfs.want = p.nfsDaemon(plans)
		p.plan.Want(engine.DaemonObject(&p.nfs.want), "an NFS server", p.nfs.daemon, p.nfs.want)
	}
}

// decideNFSLeaves says that a server goes: what waits for its host to be empty waits for that.
func (p *planner) decideNFSLeaves(d *api.Daemon, why string) {
	object := engine.DaemonObject(d)
	if p.hosts[d.Spec.Host].ModeOf() != api.HostActive {
		object = engine.HostObject(d.Spec.Host)
	}
	if p.hosts[d.Spec.Host].ModeOf() != api.HostActive || d.DeletionTimestamp == nil {
		p.decide(api.VerdictWait, object, "the NFS server on host %s goes: %s", d.Spec.Host, why)
	}
}

// nfsDaemon is the Daemon of the server.
func (p *planner) nfsDaemon(plans map[string]*exportPlan) api.Daemon {
	n := p.nfs.node
	var exports []ganesha.Export
	var pseudos []string
	for _, e := range p.exports {
		x := plans[e.Name]
		if x.refusal != "" || x.waits != "" || e.DeletionTimestamp != nil {
			continue
		}
		pseudos = append(pseudos, e.PseudoOf())
		exports = append(exports, ganesha.Export{
			ID: x.id, Path: e.Spec.Path, Pseudo: e.PseudoOf(), ReadOnly: e.Spec.AccessType == api.NFSReadOnly,
			Squash: strings.ToLower(string(e.Spec.Squash)), Clients: e.Spec.Clients, FSAL: ganesha.Gluster(n.address, e.Spec.Volume, e.Spec.Path),
		})
	}
	text := ganesha.Conf(n.address, exports)
	return api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace, Name: nfsDaemonName(p.cluster.Name, n.name),
			Labels: map[string]string{api.LabelCluster: p.cluster.Name}, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: p.cluster.Name, Type: ganesha.Type, ID: n.name, Host: n.hostName(), State: api.WantRunning, Command: ganesha.Command(),
			Files: []api.DaemonFile{{Path: ganesha.FileConf, Sources: []api.FileSource{{Text: &text}}}},
			Parameters: map[string]string{
				ganesha.ParamFSAL: "gluster", ganesha.ParamAddress: n.address, ganesha.ParamExports: strings.Join(pseudos, "\n"), api.ParameterReport: "exports",
			},
			// It keeps only who had files open.
			OnRemoval: api.DeletionWipe, StopTimeout: metav1.Duration{Duration: 20 * time.Second}, StopOrder: -1,
		},
	}
}

// nfsSettled says whether the server has read the wanted configuration, by its agent's word.
func (p *planner) nfsSettled() bool {
	d := p.nfs.daemon
	return d != nil && d.DeletionTimestamp == nil && d.Spec.Equal(&p.nfs.want.Spec) && p.nfs.report != nil && p.nfs.report.Generation == d.Generation && p.nfs.report.Current
}

// nfsDown says whether the server does not run, and will not serve anything else than what is wanted when it does.
func (p *planner) nfsDown() bool {
	d := p.nfs.daemon
	return d != nil && d.DeletionTimestamp == nil && d.Spec.Equal(&p.nfs.want.Spec) && d.Status.ObservedGeneration == d.Generation &&
		(d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonStopped)
}

// reloadNFS has the server read its configuration when another one is written, or something of it is not served: NFS-Ganesha leaves out
// what it cannot reach at that moment.
func (p *planner) reloadNFS() {
	d, r := p.nfs.daemon, p.nfs.report
	if r == nil || d.DeletionTimestamp != nil || !d.Spec.Equal(&p.nfs.want.Spec) || r.Generation != d.Generation || d.Status.ObservedGeneration != d.Generation {
		return
	}
	why := ""
	for _, pseudo := range strings.Fields(d.Spec.Parameters[ganesha.ParamExports]) {
		if r.Exports[pseudo] != "" {
			why = pseudo + ": " + r.Exports[pseudo]
		}
	}
	if !r.Current {
		why = "what is exported has changed"
	}
	if why == "" {
		return
	}
	p.plan.Commands = append(p.plan.Commands, engine.Command{Verb: ganesha.VerbReload, Object: d.Name, Daemon: d.Name, Line: "daemon/" + d.Name, Reason: why, Risk: api.RiskNone})
	p.decide(api.VerdictDo, "daemon/"+d.Name, "it reads its configuration again: %s", why)
}

// writeExport says how an export is.
func (p *planner) writeExport(e *api.NFSExport, x *exportPlan) {
	next := e.DeepCopy()
	s := &next.Status
	s.ObservedGeneration, s.ExportID = e.Generation, x.id
	if e.DeletionTimestamp != nil {
		if p.nfs.node == nil && p.noNFS() || p.nfsSettled() || p.nfsDown() {
			p.plan.Resources = append(p.plan.Resources, engine.ResourceChange{Resource: next, Gone: true})
			return
		}
		s.State, s.Message = api.ResourceDeleting, "the NFS server gives it up"
		p.plan.PutResource(e, next)
		return
	}
	s.Source, s.Node = "", ""
	if p.nfs.node != nil && x.refusal == "" {
		s.Source, s.Node = p.nfs.node.address+":"+e.PseudoOf(), p.nfs.node.name
	}
	s.State, s.Message = p.judgeExport(e, x)
	var problems []string
	if x.refusal != "" {
		problems = []string{x.refusal}
		p.decide(api.VerdictRefuse, engine.ResourceObject(e), "%s", x.refusal)
	} else if s.State != api.ResourceOnline {
		p.decide(api.VerdictWait, engine.ResourceObject(e), "%s", s.Message)
	}
	engine.Accept(next, problems, nil, p.now)
	p.plan.PutResource(e, next)
}

// noNFS says whether no NFS server of the cluster is left.
func (p *planner) noNFS() bool {
	return !slices.ContainsFunc(p.view.Daemons, func(d api.Daemon) bool { return d.Spec.Type == ganesha.Type })
}

// judgeExport says whether an export can be used, and why not.
func (p *planner) judgeExport(e *api.NFSExport, x *exportPlan) (api.ResourceState, string) {
	down := api.ResourceCreating
	if was := e.Status.State; was == api.ResourceOnline || was == api.ResourceOffline || was == api.ResourceDegraded {
		down = api.ResourceOffline
	}
	d := p.nfs.daemon
	switch {
	case x.refusal != "" || x.waits != "":
		return api.ResourcePending, cmp.Or(x.refusal, x.waits)
	case p.nfs.node == nil && len(p.nfs.taken) > 0:
		return down, fmt.Sprintf("another cluster serves NFS on %s, and a host has room for one NFS server: give the cluster a node on another host",
			words.Few(p.nfs.taken))
	case p.nfs.node == nil:
		return down, "no node of the cluster that is up can serve NFS"
	case d == nil || d.DeletionTimestamp != nil:
		return down, "the NFS server is made on node " + p.nfs.node.name
	case d.Status.State != api.DaemonRunning:
		return down, fmt.Sprintf("the NFS server on node %s is %s: %s", p.nfs.node.name, cmp.Or(d.Status.State, api.DaemonPending), cmp.Or(d.Status.Message, "it is being made"))
	case !p.nfsSettled():
		return cmp.Or(settledState(e), down), "the NFS server reads its configuration"
	case p.nfs.report.Exports[e.PseudoOf()] != "":
		return down, "the NFS server is asked for it: " + p.nfs.report.Exports[e.PseudoOf()]
	}
	for _, v := range p.volumes {
		if v.name == e.Spec.Volume && (v.status.State == api.ResourceOffline || v.status.State == api.ResourceDegraded) {
			return v.status.State, fmt.Sprintf("volume %s is %s", v.name, v.status.State)
		}
	}
	return api.ResourceOnline, ""
}

// settledState is the state of an export that was served before something else changed: it goes on.
func settledState(e *api.NFSExport) api.ResourceState {
	if e.Status.State == api.ResourceOnline || e.Status.State == api.ResourceDegraded {
		return e.Status.State
	}
	return ""
}

// exportersOf are the exports of a volume.
func (p *planner) exportersOf(volume string) (names []string) {
	for _, e := range p.exports {
		if e.Spec.Volume == volume {
			names = append(names, e.Name)
		}
	}
	return names
}

// foreseeNFS are the reports of NFS servers that do as they are told.
func foreseeNFS(seen *Observation, after *engine.View, commands []engine.Command) map[string]*ganesha.Report {
	reports := map[string]*ganesha.Report{}
	for i := range after.Daemons {
		d := &after.Daemons[i]
		if d.Spec.Type != ganesha.Type || d.Status.State != api.DaemonRunning {
			continue
		}
		r := &ganesha.Report{Generation: d.Generation, Current: true, Exports: map[string]string{}}
		told := slices.ContainsFunc(commands, func(c engine.Command) bool { return c.Verb == ganesha.VerbReload && c.Daemon == d.Name })
		if was := seenNFS(seen, d.Name); was != nil && !told {
			r.Current = was.Current && was.Generation == d.Generation
		}
		reports[d.Name] = r
	}
	return reports
}

func seenNFS(seen *Observation, daemon string) *ganesha.Report {
	if seen == nil {
		return nil
	}
	return seen.NFS[daemon]
}
