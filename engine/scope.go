package engine

import (
	"cmp"
	"slices"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// offered are the first parts of the objects that are resources which a cluster offers to its users, such as "pool".
var offered = func() map[string]bool {
	kinds := map[string]bool{}
	for _, list := range api.ResourceLists() {
		if r := list.NewResource(); offers(r) {
			kinds[kindWord(r)] = true
		}
	}
	return kinds
}()

// offers says whether a resource is one that a cluster offers to its users. The cluster consists of DriveGroups, as it does of StorageNodes.
func offers(r api.Resource) bool {
	_, group := r.(*api.DriveGroup)
	return !group
}

// OfResource says whether the object of a decision is a resource that a cluster offers to its users, as ResourceObject names it. A fault of
// such a resource is not the cluster's: it makes no cluster DEGRADED, not ready or refused.
func OfResource(object string) bool {
	kind, name, found := strings.Cut(object, "/")
	return found && name != "" && offered[kind]
}

// ofSpec says whether a refusal of an object comes from the cluster's own spec. Resources, StorageNodes and Hosts have specs and
// conditions of their own, and a restart is asked for by an Action.
func ofSpec(object string) bool {
	kind, _, _ := strings.Cut(object, "/")
	return !OfResource(object) && !slices.Contains([]string{"node", "drivegroup", "host", "restart"}, kind)
}

// Served says whether clients could use a resource before. What was never served degrades no cluster, since nobody misses it.
func Served(s api.ResourceState) bool {
	return s == api.ResourceOnline || s == api.ResourceDegraded || s == api.ResourceOffline
}

// WasServed says whether clients could use a resource at any time before: what stands on it stays
// where it is while it changes. Of a status that an earlier Holdfast wrote the state alone tells.
func WasServed(s *api.ResourceStatus) bool { return s.Served || Served(s.State) }

// Open are the refusals and waits of the plan that concern the cluster, as sentences: those of its resources do not.
func (p *Plan) Open() []string {
	var open []string
	for _, d := range p.Decisions {
		if !OfResource(d.Object) && (d.Verdict == api.VerdictRefuse || d.Verdict == api.VerdictWait) {
			open = append(open, d.Object+": "+d.Message)
		}
	}
	return open
}

// FirstChange is a change of the plan that concerns the cluster and not only a resource, as a sentence; empty where there is none.
func (p *Plan) FirstChange() string {
	if len(p.Daemons) > 0 {
		return "daemon/" + p.Daemons[0].Daemon.Name + ": " + p.Daemons[0].Reason
	}
	if len(p.Remove) > 0 {
		return "daemon/" + p.Remove[0].Name + ": " + p.Remove[0].Reason
	}
	for _, c := range p.Commands {
		if object := cmp.Or(c.Line, c.Object); !OfResource(object) {
			return c.Object + ": " + c.Verb + ": " + c.Reason
		}
	}
	return ""
}

// Settle sets Done, by the complete Status and Resources of the plan: the cluster is ONLINE, nothing
// is left to change or to wait for, and users can use each resource that is not being deleted.
func (p *Plan) Settle(v *View) {
	p.Done = p.Status.Status == api.StorageOnline && p.Empty() && !p.pending(v)
}

// pending says whether a decision or a resource waits for something or is refused.
func (p *Plan) pending(v *View) bool {
	open := func(d api.Decision) bool { return d.Verdict == api.VerdictRefuse || d.Verdict == api.VerdictWait }
	unusable := func(r api.Resource) bool {
		return offers(r) && r.GetDeletionTimestamp() == nil && p.Planned(r).Common().State != api.ResourceOnline
	}
	return slices.ContainsFunc(p.Decisions, open) || slices.ContainsFunc(v.Resources, unusable)
}
