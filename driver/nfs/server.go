// Package nfs serves the NFSExports of a cluster by one NFS-Ganesha on one of its hosts. The driver of a storage system says which hosts can
// do it, and what an export means there. It is pure.
package nfs

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/installed"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
)

// Place is where NFS can be served.
type Place struct {
	// Node names the Daemon, and what people read; Host is the host's name.
	Node, Host, Address string
}

// Storage is what the driver of a storage system says of exports.
type Storage struct {
	// FSAL is what NFS-Ganesha calls the storage, in small letters.
	FSAL string
	// Cannot says why an export cannot be served: not at all, or not yet.
	Cannot func(*api.NFSExport) (refusal, waits string)
	// Lines say which storage an export is, for a server at a place.
	Lines func(e *api.NFSExport, at Place) []string
	// State is how what is exported stands where it is not well; without a message where it is.
	State func(*api.NFSExport) api.ResourceStatus
	// Finish completes the Daemon, and its configuration; nil where there is nothing to add.
	Finish func(d *api.Daemon, conf *string)
	// Ready says whether all that a server at a place needs from the storage system is there, such as its key; nil where it needs nothing.
	Ready func(at Place) bool
	// Stays says whether a server that runs may stay on its host, which takes no new one at the moment.
	Stays func(d *api.Daemon) bool
}

// Server is the NFS server of the cluster, which there is while there is an export.
type Server struct {
	view    *engine.View
	plan    *engine.Plan
	now     time.Time
	storage Storage
	have    map[string]*api.Daemon
	hosts   map[string]*api.Host

	// Exports are the cluster's.
	Exports []*api.NFSExport
	// At is where it is wanted; nil for nowhere.
	At     *Place
	daemon *api.Daemon // of that node; nil while there is none
	report *ganesha.Report
	want   api.Daemon
	taken  []string // hosts that would do, and where another cluster's server is
	lack   []string // hosts that would do, and that have no NFS-Ganesha
}

// daemonName names the Daemon of the server on a node.
func daemonName(cluster, node string) string { return cluster + "-nfs-" + node }

// Choose chooses the place that serves NFS among those that can: the same one as long as it can. reports are those of the servers that
// run, by their Daemons.
func Choose(view *engine.View, storage Storage, able []Place, reports map[string]*ganesha.Report, now time.Time) *Server {
	s := &Server{view: view, storage: storage, now: now, have: view.DaemonsByName(), hosts: view.HostsByName(), Exports: engine.OfKind[*api.NFSExport](view.Resources)}
	if len(s.Exports) == 0 {
		return s
	}
	able = slices.DeleteFunc(s.staying(able), func(at Place) bool {
		taken := s.ofAnother(at)
		lacks := installed.Lacks(s.hosts[at.Host], ganesha.Type) && !installed.Runs(view.Daemons, at.Host, ganesha.Type)
		if taken {
			s.taken = append(s.taken, at.Host)
		} else if lacks {
			s.lack = append(s.lack, at.Host)
		}
		return taken || lacks
	})
	serves := func(at Place) int {
		if d := s.have[daemonName(view.Cluster.Name, at.Node)]; d != nil && d.DeletionTimestamp == nil {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(able, func(a, b Place) int { return cmp.Compare(serves(a), serves(b)) })
	if len(able) == 0 {
		return s
	}
	s.At = &able[0]
	s.daemon = s.have[daemonName(view.Cluster.Name, s.At.Node)]
	if d := s.daemon; d != nil && d.Status.State == api.DaemonRunning {
		s.report = reports[d.Name]
	}
	return s
}

// staying are the places that can, and those of servers that run and may stay: clients lose what
// they have mounted when a server moves, so that it does not because a node is changed, or its
// daemon is started again.
func (s *Server) staying(able []Place) []Place {
	able = slices.Clone(able)
	for i := range s.view.Daemons {
		d := &s.view.Daemons[i]
		h := s.hosts[d.Spec.Host]
		serves := d.Spec.Type == ganesha.Type && d.DeletionTimestamp == nil && d.Status.State == api.DaemonRunning
		if !serves || h == nil || h.ModeOf() != api.HostActive {
			continue
		}
		there := slices.ContainsFunc(able, func(at Place) bool { return at.Node == d.Spec.ID })
		if !there && h.AgentHeard() && s.storage.Stays(d) {
			able = append(able, Place{Node: d.Spec.ID, Host: d.Spec.Host, Address: d.Spec.Parameters[ganesha.ParamAddress]})
		}
	}
	return able
}

// ofAnother says whether the NFS server of another cluster is on a host. NFS-Ganesha listens on all addresses of its host, whatever
// its Bind_addr is, so that a second one could not start. One of ours that is there stays.
func (s *Server) ofAnother(at Place) bool {
	return s.have[daemonName(s.view.Cluster.Name, at.Node)] == nil && slices.ContainsFunc(s.view.Others, func(d *api.Daemon) bool {
		return d.Spec.Type == ganesha.Type && d.Spec.Host == at.Host
	})
}

// Exporters are the exports of which is true.
func (s *Server) Exporters(is func(*api.NFSExport) bool) (names []string) {
	for _, e := range s.Exports {
		if is(e) {
			names = append(names, e.Name)
		}
	}
	return names
}

// Plan has the exports served, and says how they are.
func (s *Server) Plan(plan *engine.Plan) {
	s.plan = plan
	served := s.served()
	s.place(served)
	s.reload()
	for _, e := range s.Exports {
		s.write(e, served[e.Name])
	}
}

func (s *Server) decide(verdict api.Verdict, reason api.Reason, object, format string, args ...any) {
	s.plan.Decide(verdict, reason, object, format, args...)
}

// place brings the Daemon of the server to where it is wanted, and lets go of all others; not before it can be there.
func (s *Server) place(plans map[string]*export) {
	awaited := s.At != nil && s.daemon == nil && s.storage.Ready != nil && !s.storage.Ready(*s.At)
	for i := range s.view.Daemons {
		d := &s.view.Daemons[i]
		wanted := s.At != nil && d.Name == daemonName(s.view.Cluster.Name, s.At.Node)
		switch {
		case d.Spec.Type != ganesha.Type || wanted:
		case d.DeletionTimestamp != nil:
			s.leaves(d, "it is being removed")
		case s.At == nil && len(s.Exports) > 0 && s.hosts[d.Spec.Host].ModeOf() == api.HostActive:
			s.decide(api.VerdictWait, api.ReasonAgentDisconnected, "daemon/"+d.Name, "its node is disconnected, and no other node can serve NFS")
		default:
			why := "no NFS exports are left"
			if s.At != nil {
				why = "node " + s.At.Node + " serves NFS now"
			} else if len(s.Exports) > 0 {
				why = "its host leaves service; no other node can serve NFS"
			}
			if !awaited {
				s.plan.Remove = append(s.plan.Remove, engine.Removal{Name: d.Name, Reason: why, Risk: api.RiskNone})
			}
			s.leaves(d, why)
		}
	}
	if s.At != nil && !awaited {
		s.want = s.makeDaemon(plans)
		s.plan.Want(engine.DaemonObject(&s.want), "an NFS server", s.daemon, s.want)
	}
}

// leaves says that a server goes: what waits for its host to be empty waits for that.
func (s *Server) leaves(d *api.Daemon, why string) {
	object := engine.DaemonObject(d)
	if s.hosts[d.Spec.Host].ModeOf() != api.HostActive {
		object = engine.HostObject(d.Spec.Host)
	}
	if s.hosts[d.Spec.Host].ModeOf() != api.HostActive || d.DeletionTimestamp == nil {
		s.decide(api.VerdictWait, api.ReasonRemoving, object, "the NFS server on host %s is removed: %s", d.Spec.Host,
			why)
	}
}

// makeDaemon is the Daemon of the server.
func (s *Server) makeDaemon(plans map[string]*export) api.Daemon {
	at, cluster := *s.At, s.view.Cluster
	var exports []ganesha.Export
	var pseudos []string
	for _, e := range s.Exports {
		x := plans[e.Name]
		if x.refusal != "" || x.waits != "" || e.DeletionTimestamp != nil {
			continue
		}
		pseudos = append(pseudos, e.PseudoOf())
		exports = append(exports, ganesha.Export{
			ID: x.id, Path: e.Spec.Path, Pseudo: e.PseudoOf(), ReadOnly: e.Spec.AccessType == api.NFSReadOnly,
			Squash: strings.ToLower(string(e.Spec.Squash)), Clients: e.Spec.Clients, FSAL: s.storage.Lines(e, at),
		})
	}
	text := ganesha.Conf(at.Address, exports)
	d := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: daemonName(cluster.Name, at.Node),
			Labels: map[string]string{api.LabelCluster: cluster.Name}, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: cluster.Name, Type: ganesha.Type, ID: at.Node, Host: at.Host, State: api.WantRunning, Command: ganesha.Command(),
			Parameters: map[string]string{
				ganesha.ParamFSAL: s.storage.FSAL, ganesha.ParamAddress: at.Address, ganesha.ParamExports: strings.Join(pseudos, "\n"), api.ParameterReport: "exports",
			},
			// It keeps only who had files open.
			OnRemoval: api.DeletionWipe, StopTimeout: metav1.Duration{Duration: 20 * time.Second}, StopOrder: -1,
		},
	}
	if s.storage.Finish != nil {
		s.storage.Finish(&d, &text)
	}
	text, d.Spec.Parameters[ganesha.ParamStamp] = ganesha.Stamped(text)
	d.Spec.Files = append([]api.DaemonFile{{Path: ganesha.FileConf, Sources: []api.FileSource{{Text: &text}}}}, d.Spec.Files...)
	return d
}

// settled says whether the server serves the wanted configuration and nothing else, by its own word.
func (s *Server) settled() bool {
	d := s.daemon
	return d != nil && d.DeletionTimestamp == nil && d.Spec.Equal(&s.want.Spec) && s.report != nil && s.report.Generation == d.Generation && s.report.Current
}

// down says whether the server does not run, and will not serve anything else than what is wanted when it does.
func (s *Server) down() bool {
	d := s.daemon
	return d != nil && d.DeletionTimestamp == nil && d.Spec.Equal(&s.want.Spec) && d.Status.ObservedGeneration == d.Generation &&
		(d.Status.State == api.DaemonFailed || d.Status.State == api.DaemonStopped)
}

// reload has the server read its configuration when another one is written, or something of it is not served: NFS-Ganesha leaves out
// what it cannot reach at that moment.
func (s *Server) reload() {
	d, r := s.daemon, s.report
	if r == nil || r.Starting || d.DeletionTimestamp != nil || !d.Spec.Equal(&s.want.Spec) || r.Generation != d.Generation || d.Status.ObservedGeneration != d.Generation {
		return
	}
	why := ""
	for _, pseudo := range strings.Fields(d.Spec.Parameters[ganesha.ParamExports]) {
		if r.Exports[pseudo] != "" {
			why = pseudo + ": " + r.Exports[pseudo]
		}
	}
	if !r.Current {
		why = "the exports have changed"
	}
	if why == "" {
		return
	}
	s.plan.Commands = append(s.plan.Commands, engine.Command{Verb: ganesha.VerbReload, Object: d.Name, Daemon: d.Name, Line: "daemon/" + d.Name, Reason: why, Risk: api.RiskNone})
	s.decide(api.VerdictDo, api.ReasonDeclared, "daemon/"+d.Name, "it reads its configuration again: %s", why)
}
