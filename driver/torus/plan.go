package torus

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Plan says what to change. It is pure.
func (Driver) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := newPlanner(view, now)
	if p.cluster.DeletionTimestamp != nil {
		p.plan.End(view, ending)
		tellGivenEtcd(view, p.plan)
		return p.plan
	}
	for _, phase := range []func(){
		p.resolve, p.chooseSpeaker, p.chooseEtcd, p.checkModes, p.planRing, p.planLeavers, p.planVolumes,
		p.writeEtcd, p.writeTorusd, p.writeStatus,
	} {
		phase()
	}
	p.judgeRestart()
	for _, n := range p.nodes {
		p.plan.PutNode(n.ResolvedNode, n.problems, p.now)
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
	initial string          // the initial cluster of that etcd, as NAME=URL,NAME=URL
	stopped map[string]bool // the nodes whose daemons are told to stop, by name

	plan *engine.Plan
}

func newPlanner(view *engine.View, now time.Time) *planner {
	p := &planner{
		view: view, now: now, cluster: view.Cluster, have: view.DaemonsByName(), hosts: view.HostsByName(),
		stopped: map[string]bool{}, plan: &engine.Plan{},
	}
	if view.Cluster.Spec.Torus != nil {
		p.spec = *view.Cluster.Spec.Torus
	}
	p.spec.Replication = cmp.Or(p.spec.Replication, 2)
	if p.seen, _ = view.System.(*Observation); p.seen == nil {
		p.seen = &Observation{}
	}
	return p
}

// copies is how many peers are to hold each block.
func (p *planner) copies() int { return int(p.spec.Replication) }

func (p *planner) decide(verdict api.Verdict, reason api.Reason, object, format string, args ...any) {
	p.plan.Decide(verdict, reason, object, format, args...)
}

// commandReasons are the reasons of commands that do more than what is declared.
var commandReasons = map[string]api.Reason{
	torus.VerbDelete: api.ReasonDeleting, torus.VerbPeerRemove: api.ReasonRemoving, torus.VerbPeerForce: api.ReasonRemoving,
}

// command asks the speaker for something.
func (p *planner) command(verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	reason, line, about := fmt.Sprintf(format, args...), line(verb, object), verb+" "+object
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Daemon: p.speaker.torusd.Name, Line: line, Reason: reason, Risk: risk,
	})
	if engine.OfResource(line) {
		about, reason = line, verb+": "+reason
	}
	p.decide(api.VerdictDo, cmp.Or(commandReasons[verb], api.ReasonDeclared), about, "%s", reason)
}

// line is what a command is about: volumes do not depend on each other, and all of them on the ring.
func line(verb, object string) string {
	if verb == torus.VerbCreate || verb == torus.VerbDelete {
		return "volume/" + object
	}
	return ""
}

func torusdName(cluster, node string) string { return cluster + "-torusd-" + node }

func etcdName(cluster, node string) string { return cluster + "-etcd-" + node }

// want has a daemon made or changed, if it is not there as it is wanted.
func (p *planner) want(d api.Daemon) {
	p.plan.Want(engine.DaemonObject(&d), d.Spec.Type, p.have[d.Name], d)
}

// those are the nodes for which something holds.
func (p *planner) those(holds func(*node) bool) []*node {
	return slices.DeleteFunc(slices.Clone(p.nodes), func(n *node) bool { return !holds(n) })
}
