package nfs

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/installed"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// export is what becomes of an export.
type export struct {
	id int32
	// path is the directory that the id stands for.
	path           string
	refusal, waits string
	// reason is that of the refusal.
	reason api.Reason
}

// maxID is above all numbers that NFS-Ganesha takes for an export.
const maxID = 1 << 16

// served says of each export why it cannot be served, or nothing where it can. Of two with one
// pseudo path that one has it which clients mount by it already, or the older one.
func (s *Server) served() map[string]*export {
	plans := map[string]*export{}
	byAge := slices.Clone(s.Exports)
	slices.SortStableFunc(byAge, func(a, b *api.NFSExport) int {
		return cmp.Or(cmp.Compare(mounted(a), mounted(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time))
	})
	pseudos, ids := map[string]string{}, map[int32]bool{0: true}
	for _, e := range s.Exports {
		ids[e.Status.ExportID] = true
	}
	for _, e := range byAge {
		x := &export{id: e.Status.ExportID, path: e.Status.Path, reason: api.ReasonInvalidSpec}
		plans[e.Name] = x
		if x.refusal, x.waits = s.storage.Cannot(e); x.refusal == "" && pseudos[e.PseudoOf()] != "" {
			x.refusal = fmt.Sprintf("NFSExport %s has the pseudo path %s already: choose another one", pseudos[e.PseudoOf()], e.PseudoOf())
		}
		if x.refusal == "" && s.At == nil && len(s.lack) > 0 && len(s.taken) == 0 && s.none() {
			x.refusal, x.reason = "no node can serve NFS: "+s.lackText(), api.ReasonUnsupported
		}
		if e.DeletionTimestamp != nil || x.refusal != "" {
			continue
		}
		pseudos[e.PseudoOf()] = e.Name
		if x.id == 0 && x.waits != "" {
			continue // what it waits for does not wait for it
		}
		if x.id == 0 || e.Status.Path != "" && e.Status.Path != e.Spec.Path {
			x.id = freeID(ids, e.Name+"\n"+e.Spec.Filesystem+e.Spec.Volume+"\n"+e.Spec.Path)
		}
		x.path = e.Spec.Path
	}
	return plans
}

// mounted sorts the exports first that clients mount by the pseudo path that they have.
func mounted(e *api.NFSExport) int {
	if strings.HasSuffix(e.Status.Source, ":"+e.PseudoOf()) {
		return 0
	}
	return 1
}

// freeID takes a number that no export has. It follows from what the export is, so that hardly ever
// an export gets the number that another one had: clients would reach into it by the files that
// they had open in the other one. One that is declared again gets the number that it had: by host
// and number, NFS-Ganesha ends the session that an earlier server left in an MDS, which would keep
// the files from it for a minute and more.
func freeID(taken map[int32]bool, of string) int32 {
	h := fnv.New32a()
	h.Write([]byte(of))
	id := int32(h.Sum32() % maxID)
	for taken[id] {
		id = (id + 1) % maxID
	}
	taken[id] = true
	return id
}

// write says how an export is.
func (s *Server) write(e *api.NFSExport, x *export) {
	next := e.DeepCopy()
	st := &next.Status
	st.ObservedGeneration, st.ExportID, st.Path = e.Generation, x.id, x.path
	if e.DeletionTimestamp != nil {
		if s.At == nil && s.none() || s.settled() || s.down() {
			s.plan.Resources = append(s.plan.Resources, engine.ResourceChange{Resource: next, Gone: true})
			return
		}
		st.State, st.Message = api.ResourceDeleting, "the NFS server removes the export"
		s.plan.PutResource(e, next)
		return
	}
	st.Source, st.Node = "", ""
	if s.At != nil && x.refusal == "" {
		st.Source, st.Node = s.At.Address+":"+e.PseudoOf(), s.At.Node
	}
	s.judge(e, x, &st.ResourceStatus)
	var problems []string
	if x.refusal != "" {
		problems = []string{x.refusal}
		s.decide(api.VerdictRefuse, x.reason, engine.ResourceObject(e), "%s", x.refusal)
	} else if st.State != api.ResourceOnline {
		s.decide(api.VerdictWait, cmp.Or(st.Reason, api.ReasonNotReady), engine.ResourceObject(e), "%s", st.Message)
	}
	engine.Accept(next, problems, s.now)
	s.plan.PutResource(e, next)
}

// lackText says where NFS-Ganesha is missing, and what to run there.
func (s *Server) lackText() string { return installed.Text(s.lack, ganesha.Type, s.storage.FSAL) }

// none says whether no NFS server of the cluster is left.
func (s *Server) none() bool {
	return !slices.ContainsFunc(s.view.Daemons, func(d api.Daemon) bool { return d.Spec.Type == ganesha.Type })
}

// judge says whether an export can be used, and why not. Of what is exported it passes the cause
// on.
func (s *Server) judge(e *api.NFSExport, x *export, st *api.ResourceStatus) {
	st.Reason, st.Next = "", ""
	if st.State, st.Message = s.serves(e, x); st.State != api.ResourceOnline {
		if s.cannotOpen(e, x) {
			st.Reason, st.Next = api.ReasonNotServed, nextUnopened
		}
		return
	}
	if is := s.storage.State(e); is.Message != "" {
		st.State, st.Reason, st.Message, st.Next = is.State, is.Reason, words.Cut(is.Message, maxMessage), is.Next
	}
}

// maxMessage is a bound of the API's schema.
const maxMessage = 1024

// serves says whether the server serves an export, and why not.
func (s *Server) serves(e *api.NFSExport, x *export) (api.ResourceState, string) {
	down := api.ResourceCreating
	if was := e.Status.State; was == api.ResourceOnline || was == api.ResourceOffline || was == api.ResourceDegraded {
		down = api.ResourceOffline
	}
	d := s.daemon
	switch {
	case x.refusal != "" || x.waits != "":
		return api.ResourcePending, cmp.Or(x.refusal, x.waits)
	case s.At == nil && len(s.taken) > 0:
		return down, fmt.Sprintf("another cluster serves NFS on %s, and a host has room for one NFS server: give the cluster a node on another host",
			words.Few(s.taken))
	case s.At == nil && len(s.lack) > 0:
		return down, "no node that is up can serve NFS: " + s.lackText()
	case s.At == nil:
		return down, "no node of the cluster that is up can serve NFS"
	case d == nil || d.DeletionTimestamp != nil:
		return down, "the NFS server is made on node " + s.At.Node
	case d.Status.State != api.DaemonRunning:
		return down, fmt.Sprintf("the NFS server on node %s is %s: %s", s.At.Node, cmp.Or(d.Status.State, api.DaemonPending), cmp.Or(d.Status.Message, "it is being made"))
	case s.cannotOpen(e, x):
		return down, s.unopened(e)
	case !s.settled() || !s.lookedUp(e):
		return s.unsettled(e, down)
	case s.report.Exports[e.PseudoOf()] != "":
		return down, "waiting for the NFS server to export it: " + s.report.Exports[e.PseudoOf()]
	}
	return api.ResourceOnline, ""
}

// lookedUp says whether the server was asked for an export.
func (s *Server) lookedUp(e *api.NFSExport) bool {
	_, asked := s.report.Exports[e.PseudoOf()]
	return asked
}

// As is how an export stands of something, such as filesystem home, that stands like that: no word
// where it is well.
func As(what string, is *api.ResourceStatus) api.ResourceStatus {
	if is.State != api.ResourceOffline && is.State != api.ResourceDegraded {
		return api.ResourceStatus{}
	}
	text := what + " is " + string(is.State) + words.Colon(is.Message)
	return api.ResourceStatus{State: is.State, Reason: is.Reason, Message: text, Next: is.Next}
}

// unsettled is the state of an export while the server is not known to serve what is wanted. One that was served before
// something else changed stays as it was. One that has changed itself has not that state yet: what it gave before, it may
// give still.
func (s *Server) unsettled(e *api.NFSExport, down api.ResourceState) (api.ResourceState, string) {
	st := &e.Status
	if st.State != api.ResourceOnline && st.State != api.ResourceDegraded {
		return down, "the NFS server reads its configuration"
	}
	if st.ObservedGeneration == e.Generation {
		return st.State, "the NFS server reads its configuration"
	}
	return api.ResourceCreating, "the NFS server reads its configuration; until then, it serves the earlier export"
}

// Foresee are the reports of NFS servers that do as they are told; seen are those of now.
func Foresee(seen map[string]*ganesha.Report, after *engine.View, commands []engine.Command) map[string]*ganesha.Report {
	reports := map[string]*ganesha.Report{}
	for i := range after.Daemons {
		d := &after.Daemons[i]
		if d.Spec.Type != ganesha.Type || d.Status.State != api.DaemonRunning {
			continue
		}
		r := &ganesha.Report{Generation: d.Generation, Current: true, Exports: map[string]string{}}
		told := slices.ContainsFunc(commands, func(c engine.Command) bool { return c.Verb == ganesha.VerbReload && c.Daemon == d.Name })
		if was := seen[d.Name]; was != nil && !told {
			r.Current = was.Current && was.Generation == d.Generation
		}
		for _, pseudo := range strings.Fields(d.Spec.Parameters[ganesha.ParamExports]) {
			r.Exports[pseudo] = ""
		}
		reports[d.Name] = r
	}
	return reports
}

// Reports are what the agents say of the NFS servers that run.
func Reports(daemons []api.Daemon) map[string]*ganesha.Report {
	reports := map[string]*ganesha.Report{}
	for i := range daemons {
		d := &daemons[i]
		if d.Spec.Type != ganesha.Type || d.Status.State != api.DaemonRunning {
			continue
		}
		if r, err := ganesha.Parse(d.Status.Report); err == nil && r != nil {
			reports[d.Name] = r
		}
	}
	return reports
}
