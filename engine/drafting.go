package engine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// HostObject is the Object of a decision about a host, and NodeObject of one about a StorageNode.
func HostObject(host string) string { return "host/" + host }

// NodeObject is the Object of a decision about a StorageNode.
func NodeObject(node string) string { return "node/" + node }

// RestartObject is the Object of a decision about the restart of a daemon that a view asks for (View.Restart).
func RestartObject(daemon string) string { return "restart/" + daemon }

// AgainstRestart are the decisions that say what is against the restart of a daemon.
func (p *Plan) AgainstRestart(daemon string) (against []api.Decision) {
	for _, d := range p.Decisions {
		if d.Object == RestartObject(daemon) && (d.Verdict == api.VerdictRefuse || d.Verdict == api.VerdictWait) {
			against = append(against, d)
		}
	}
	return against
}

// Objection is what is against something: with VerdictWait it passes by itself, with VerdictRefuse it does not. The zero value is none.
type Objection struct {
	Verdict api.Verdict
	Reason  api.Reason
	Message string
}

// Object adds an objection to the plan, as a decision about an object.
func (p *Plan) Object(object string, o Objection) {
	p.Decide(o.Verdict, o.Reason, object, "%s", o.Message)
}

// Refusal is an objection that does not pass by itself.
func Refusal(reason api.Reason, format string, args ...any) Objection {
	return Objection{api.VerdictRefuse, reason, fmt.Sprintf(format, args...)}
}

// Wait is an objection that passes by itself.
func Wait(reason api.Reason, format string, args ...any) Objection {
	return Objection{api.VerdictWait, reason, fmt.Sprintf(format, args...)}
}

// None says whether nothing is against it.
func (o Objection) None() bool { return o.Message == "" }

// Decide adds a decision.
func (p *Plan) Decide(verdict api.Verdict, reason api.Reason, object, format string, args ...any) {
	p.Decisions = append(p.Decisions, api.Decision{Object: object, Verdict: verdict, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// Want adds what brings a daemon to where it is wanted; nothing when it is there. have is nil where there is none, and then what names
// it in the reason. object names it in decisions.
func (p *Plan) Want(object, what string, have *api.Daemon, want api.Daemon) {
	p.WantFor(api.ReasonDeclared, object, what, have, want)
}

// WantFor is Want of a daemon that, if it is there, is changed for another reason than that the spec declares it.
func (p *Plan) WantFor(reason api.Reason, object, what string, have *api.Daemon, want api.Daemon) {
	switch {
	case have == nil:
		p.Change(object, DaemonChange{Daemon: want, New: true, Reason: fmt.Sprintf("%s is needed on host %s",
			what, want.Spec.Host)})
	case have.DeletionTimestamp != nil:
		p.Decide(api.VerdictWait, api.ReasonRemoving, object, "being removed from host %s; created again afterwards",
			have.Spec.Host)
	default:
		p.bring(reason, object, have, &want, "")
	}
}

// Restart has a daemon stop that is only to be started again.
func (p *Plan) Restart(object string, have *api.Daemon, want api.Daemon, why string) {
	p.bring(api.ReasonRestarting, object, have, &want, "restart, because "+why)
}

// bring adds the change of a daemon to a spec and the leader's memory, if it has another one. why says more
// than from which wanted state to which, where it is not empty.
func (p *Plan) bring(reason api.Reason, object string, have, want *api.Daemon, why string) (changed bool) {
	if have.Spec.Equal(&want.Spec) && leadermemory.Same(have, want) {
		return false
	}
	next := *have.DeepCopy()
	leadermemory.Write(&next, want)
	p.change(reason, object, DaemonChange{Daemon: next, Reason: difference(have, want, why)})
	return true
}

// Change adds the change of a daemon, which object names in decisions.
func (p *Plan) Change(object string, c DaemonChange) { p.change(api.ReasonDeclared, object, c) }

func (p *Plan) change(reason api.Reason, object string, c DaemonChange) {
	p.Daemons = append(p.Daemons, c)
	p.Decide(api.VerdictDo, reason, object, "%s", c.Reason)
}

// RelyOnCommands has the change of a daemon, if there is one, made only when all commands of the plan were carried out.
func (p *Plan) RelyOnCommands(daemon string) {
	for i := range p.Daemons {
		if p.Daemons[i].Daemon.Name == daemon {
			p.Daemons[i].AfterCommands = true
		}
	}
}

// difference says in words what differs between two versions of a daemon that differ; of their wanted
// states, why they do where that is given.
func difference(was, is *api.Daemon, why string) string {
	have, want := &was.Spec, &is.Spec
	var parts []string
	note := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	note(why != "", "%s", why)
	note(why == "" && have.State != want.State, "desired state changes from %s to %s", have.State, want.State)
	note(!slices.Equal(have.Command, want.Command), "its command changes (used from its next start)")
	note(!slices.EqualFunc(have.Files, want.Files, api.DaemonFile.Equal), "its files change (used from its next start)")
	note(!slices.Equal(have.Devices, want.Devices), "its devices change")
	if names := leadermemory.ChangedKeys(have.Parameters, want.Parameters); len(names) > 0 {
		note(true, "its parameters change (%s)", strings.Join(names, ", "))
	}
	if names := leadermemory.Changed(was, is); len(names) > 0 {
		note(true, "the leader's memory of it changes (%s)", strings.Join(names, ", "))
	}
	note(have.OnRemoval != want.OnRemoval, "its deletionPolicy changes from %s to %s", have.OnRemoval, want.OnRemoval)
	if len(parts) == 0 {
		return "its stop order or timeout changes"
	}
	return strings.Join(parts, ", ")
}

// TellNode adds a decision for each reason why a node cannot be used, or not yet: those that it was resolved with, and those that
// the driver found.
func (p *Plan) TellNode(r ResolvedNode, name string, problems, waits []string) {
	for _, text := range slices.Concat(r.Problems, problems) {
		p.Decide(api.VerdictRefuse, api.ReasonNodeUnusable, NodeObject(name), "%s", text)
	}
	for _, text := range slices.Concat(r.Waits, waits) {
		p.Decide(api.VerdictWait, api.ReasonNotReady, NodeObject(name), "%s", text)
	}
}

// PutNode adds the status of a StorageNode (NodeStatusFor), if it changes. One that is not declared any more, without a Node, has none.
func (p *Plan) PutNode(r ResolvedNode, problems []string, now time.Time) {
	if r.Node == nil {
		return
	}
	if status := NodeStatusFor(r, problems, now); !equality.Semantic.DeepEqual(status, r.Node.Status) {
		p.Nodes = append(p.Nodes, NodeStatus{Name: r.Node.Name, Status: status})
	}
}

// PutResource adds the status of a resource, if it changes: next is the resource of the view with the status that it shall have. A message
// that is longer than the API takes, such as one with a storage system's own words, is cut: the status would never be written.
func (p *Plan) PutResource(was, next api.Resource) {
	s := next.Common()
	if s.Message = words.Cut(s.Message, maxResourceMessage); s.State == api.ResourceDeleting {
		s.Reason, s.Next = "", "" // of before
	}
	s.Served = s.Served || s.State == api.ResourceOnline || s.State == api.ResourceDegraded
	if !equality.Semantic.DeepEqual(was, next) {
		p.Resources = append(p.Resources, ResourceChange{Resource: next})
	}
}

// Planned is a resource with the status that it has when the plan is carried out.
func (p *Plan) Planned(r api.Resource) api.Resource {
	object := ResourceObject(r)
	if i := slices.IndexFunc(p.Resources, func(c ResourceChange) bool { return c.Object() == object }); i >= 0 {
		return p.Resources[i].Resource
	}
	return r
}

// LetGo says that the storage system has nothing of a resource any more that is being deleted, or keeps it on purpose.
func (p *Plan) LetGo(r api.Resource) {
	p.Resources = append(p.Resources, ResourceChange{Resource: r, Gone: true})
}

// Refuses says whether the plan refuses what is called so.
func (p *Plan) Refuses(object string) bool {
	return slices.ContainsFunc(p.Decisions, func(d api.Decision) bool { return d.Object == object && d.Verdict == api.VerdictRefuse })
}
