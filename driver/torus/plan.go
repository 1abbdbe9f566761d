package torus

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Plan says what to change. It is pure.
func (Driver) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := newPlanner(view, now)
	if p.cluster.DeletionTimestamp != nil {
		p.remove()
		return p.plan
	}
	for _, phase := range []func(){
		p.resolve, p.chooseSpeaker, p.chooseEtcd, p.checkModes, p.planRing, p.planLeavers, p.planVolumes,
		p.writeEtcd, p.writeTorusd, p.writeNodes, p.writeStatus,
	} {
		phase()
	}
	return p.plan
}

// planner makes one plan. Its phases find out what is there; then the plan is written from it.
type planner struct {
	view    *engine.View
	now     time.Time
	cluster *api.StorageCluster
	spec    api.TorusSpec
	seen    *Observation
	have    map[string]*api.Daemon
	hosts   map[string]*api.Host

	// nodes are those that are declared, and those that are not any more and have a torusd still; by name.
	nodes   []*node
	speaker *node // nil while nobody can speak for the cluster
	// word is what the speaker says; nil while it says nothing, or nothing of this time.
	word    *torus.Cluster
	members []*node         // the nodes with a member of the cluster's own etcd, those to come among them
	stopped map[string]bool // the nodes whose daemons are told to stop, by name

	plan *engine.Plan
}

func newPlanner(view *engine.View, now time.Time) *planner {
	p := &planner{
		view: view, now: now, cluster: view.Cluster, have: map[string]*api.Daemon{}, hosts: map[string]*api.Host{},
		stopped: map[string]bool{}, plan: &engine.Plan{},
	}
	if view.Cluster.Spec.Torus != nil {
		p.spec = *view.Cluster.Spec.Torus
	}
	p.spec.Replication = cmp.Or(p.spec.Replication, 2)
	if p.seen, _ = view.System.(*Observation); p.seen == nil {
		p.seen = &Observation{}
	}
	for i := range view.Daemons {
		p.have[view.Daemons[i].Name] = &view.Daemons[i]
	}
	for i := range view.Hosts {
		p.hosts[view.Hosts[i].Name] = &view.Hosts[i]
	}
	return p
}

// copies is how many peers are to hold each block.
func (p *planner) copies() int { return int(p.spec.Replication) }

func (p *planner) decide(verdict api.Verdict, object, format string, args ...any) {
	p.plan.Decisions = append(p.plan.Decisions, api.Decision{Object: object, Verdict: verdict, Message: cut(fmt.Sprintf(format, args...))})
}

// command asks the speaker for something.
func (p *planner) command(verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Daemon: p.speaker.torusd.Name, Line: line(verb, object), Reason: reason, Risk: risk,
	})
	p.decide(api.VerdictDo, verb+" "+object, "%s", reason)
}

// line is what a command is about: volumes do not depend on each other, and all of them on the ring.
func line(verb, object string) string {
	if verb == torus.VerbCreate || verb == torus.VerbDelete {
		return "volume/" + object
	}
	return ""
}

// want compares a wanted daemon with what is there.
func (p *planner) want(d api.Daemon) {
	have := p.have[d.Name]
	switch {
	case have == nil:
		p.change(d, true, fmt.Sprintf("%s is wanted on host %s", d.Spec.Type, d.Spec.Host))
	case have.DeletionTimestamp != nil:
		p.decide(api.VerdictWait, "daemon/"+d.Name, "it is being removed from host %s", have.Spec.Host)
	case !have.Spec.Equal(&d.Spec):
		changed := *have.DeepCopy()
		changed.Spec = d.Spec
		p.change(changed, false, difference(&have.Spec, &d.Spec))
	}
}

func (p *planner) change(d api.Daemon, isNew bool, reason string) {
	p.plan.Daemons = append(p.plan.Daemons, engine.DaemonChange{Daemon: d, New: isNew, Reason: reason})
	p.decide(api.VerdictDo, "daemon/"+d.Name, "%s", reason)
}

// difference says in words what differs between two specs.
func difference(have, want *api.DaemonSpec) string {
	switch {
	case have.State != want.State:
		return fmt.Sprintf("wanted state goes from %s to %s", have.State, want.State)
	case have.OnRemoval != want.OnRemoval:
		return fmt.Sprintf("what becomes of its data changes to %s", want.OnRemoval)
	case have.Parameters[torus.ParamReport] != want.Parameters[torus.ParamReport]:
		return "it is asked for another report: " + want.Parameters[torus.ParamReport]
	}
	return "its command changes (it counts from its next start)"
}

func torusdName(cluster, node string) string { return cluster + "-torusd-" + node }

func etcdName(cluster, node string) string { return cluster + "-etcd-" + node }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func names(nodes []*node) string {
	const few = 5
	all := make([]string, len(nodes))
	for i, n := range nodes {
		all[i] = n.name
	}
	if len(all) > few {
		all = append(all[:few:few], fmt.Sprintf("%d more", len(all)-few))
	}
	return strings.Join(all, ", ")
}

// cut cuts text to what the API takes, at a character's end.
func cut(s string) string {
	const most, mark = 1024, "…"
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most-len(mark)], "") + mark
}

// those are the nodes for which something holds.
func (p *planner) those(holds func(*node) bool) []*node {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return !holds(n) })
}
