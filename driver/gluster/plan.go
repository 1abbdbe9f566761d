package gluster

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/closed"
	"github.com/holdfast-storage/holdfast/driver/nfs"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Plan says what to change. It is pure.
func (d Driver) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := newPlanner(view, now, d.Waits)
	if p.cluster.DeletionTimestamp != nil {
		p.plan.End(view, ending)
		return p.plan
	}
	for _, phase := range []func(){p.resolve, p.chooseSpeaker, p.findStores, p.findVolumes, p.chooseNFS, p.checkModes, p.checkUpgrades, p.checkLeavers} {
		phase()
	}
	p.formPool()
	p.planVolumes()
	p.nfs.Plan(p.plan)
	p.dismiss()
	p.writeDaemons()
	for _, n := range p.nodes {
		p.plan.PutNode(n.ResolvedNode, n.problems, p.now)
		closed.Tell(p.plan, n.ResolvedNode, p.now)
	}
	p.writeStatus()
	p.judgeRestart()
	return p.plan
}

// planner makes one plan. Its phases find out what is there; then the plan is written from it.
type planner struct {
	view    *engine.View
	now     time.Time
	waits   waits.Waits
	cluster *api.StorageCluster
	seen    *Observation
	have    map[string]*api.Daemon
	hosts   map[string]*api.Host

	// nodes are those that are declared, and those that are not any more and have a Daemon still; by name.
	nodes   []*node
	speaker *node // nil while nobody can speak for the pool
	// successor is asked for the pool, too, and speaks for it as soon as it has told of it; usually nil.
	successor *node
	volumes   []*volume
	nfs       *nfs.Server
	stopped   map[string]bool   // the nodes whose glusterd is told to stop, by name
	again     map[string]string // why, of those that only stop to be started again
	kept      map[string]string // the nodes that are not restarted with what is installed, by name, and why
	outside   map[string]bool   // the commands that put back what was changed outside Holdfast, as verb and object

	plan *engine.Plan
}

func newPlanner(view *engine.View, now time.Time, w waits.Waits) *planner {
	p := &planner{
		view: view, now: now, waits: w.OrDefault(), cluster: view.Cluster, have: view.DaemonsByName(), hosts: view.HostsByName(),
		stopped: map[string]bool{}, again: map[string]string{}, kept: map[string]string{}, plan: &engine.Plan{},
		outside: map[string]bool{},
	}
	if p.seen, _ = view.System.(*Observation); p.seen == nil {
		p.seen = &Observation{}
	}
	return p
}

func (p *planner) decide(verdict api.Verdict, reason api.Reason, object, format string, args ...any) {
	p.plan.Decide(verdict, reason, object, format, args...)
}

// commandReasons are the reasons of commands that do more than what is declared.
var commandReasons = map[string]api.Reason{
	glusterd.VerbDetach: api.ReasonRemoving, glusterd.VerbStop: api.ReasonDeleting, glusterd.VerbDelete: api.ReasonDeleting,
	glusterd.VerbRebalance: api.ReasonMovingData, glusterd.VerbRemoveStart: api.ReasonMovingData, glusterd.VerbReplace: api.ReasonMovingData,
	glusterd.VerbRemoveStop: api.ReasonBackInUse, glusterd.VerbRemoveCommit: api.ReasonRemoving, glusterd.VerbDropBrick: api.ReasonRemoving,
}

// command asks the speaker for something.
func (p *planner) command(verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	p.commandOf(p.speaker, verb, object, params, risk, format, args...)
}

// commandOf asks one node for something. While another node begins to speak for the pool nothing is asked: what that tells first
// could be of the time before.
func (p *planner) commandOf(n *node, verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	line := p.line(verb, object)
	about := verb + " " + object
	if engine.OfResource(line) || p.outside[about] {
		about, reason = line, verb+": "+reason
	}
	if p.successor != nil {
		p.decide(api.VerdictWait, api.ReasonHandingOver, about, "%s: waiting for node %s to report on the pool", reason, p.successor.name)
		return
	}
	if by := p.heldBy(verb); by != nil {
		p.decide(api.VerdictWait, api.ReasonDependencyNotReady, about, "%s: %s", reason, p.hold(by, object))
		return
	}
	why := cmp.Or(commandReasons[verb], api.ReasonDeclared)
	if p.outside[verb+" "+object] {
		why = api.ReasonChangedOutside
	}
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Daemon: n.daemon.Name, Line: line, Reason: fmt.Sprintf(format, args...), Risk: risk,
	})
	p.decide(api.VerdictDo, why, about, "%s", reason)
}

// line is what a command is about. Volumes, nodes and leftovers do not depend on each other.
func (p *planner) line(verb, object string) string {
	switch verb {
	case glusterd.VerbProbe, glusterd.VerbDetach:
		if i := slices.IndexFunc(p.nodes, func(n *node) bool { return n.address == object }); i >= 0 {
			return p.nodes[i].object()
		}
		return "node/" + object
	case glusterd.VerbDropBrick:
		return "brick/" + object
	case glusterd.VerbOpVersion:
		return "cluster/" + p.cluster.Name
	}
	return "volume/" + object
}

// writeDaemons turns the nodes into changes of Daemons.
func (p *planner) writeDaemons() {
	for _, n := range p.nodes {
		if n.daemon == nil && !n.usable() || n.gone {
			continue
		}
		d := p.glusterd(n)
		if why := p.again[n.name]; why != "" {
			p.plan.Restart(engine.DaemonObject(&d), n.daemon, d, why)
			continue
		}
		p.plan.Want(engine.DaemonObject(&d), "a glusterd", n.daemon, d)
	}
}

// glusterd is the Daemon of a node.
func (p *planner) glusterd(n *node) api.Daemon {
	text := glusterd.Volfile(n.address)
	d := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.cluster.Namespace, Name: daemonName(p.cluster.Name, n.name),
			Labels: map[string]string{api.LabelCluster: p.cluster.Name}, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: p.cluster.Name, Type: glusterd.Type, ID: n.name, Host: n.hostName(), State: api.WantRunning,
			Command: glusterd.Command(),
			Files:   []api.DaemonFile{{Path: glusterd.FileVolfile, Sources: []api.FileSource{{Text: &text}}}},
			Devices: p.wantedDevices(n),
			Parameters: map[string]string{
				glusterd.ParamAddress: n.address, glusterd.ParamPool: string(p.cluster.UID),
				glusterd.ParamDirectories: strings.Join(p.wantedDirectories(n), "\n"), glusterd.ParamReport: glusterd.DepthPeer,
			},
			// Only the deletion of the whole cluster may set another policy.
			OnRemoval: api.DeletionRetain, StopTimeout: metav1.Duration{Duration: 30 * time.Second},
		},
	}
	if n == p.reporter() || n == p.successor {
		d.Spec.Parameters[glusterd.ParamReport] = glusterd.DepthPool
	}
	if p.newcomer(n) {
		d.Spec.Parameters[api.ParameterNewcomer] = "true"
	}
	if drop := p.dropped(n); drop != "" {
		d.Spec.Parameters[glusterd.ParamDrop] = drop
	}
	if after := p.after(n); after != "" {
		d.Spec.Parameters[glusterd.ParamAfter] = after
	}
	if p.stopped[n.name] {
		d.Spec.State = api.WantStopped
	}
	return d
}

// newcomer says whether the pool knew nothing of a node when its Daemon was made. Of a pool that does not answer nobody can say.
func (p *planner) newcomer(n *node) bool {
	if n.daemon != nil {
		return n.daemon.Spec.Parameters[api.ParameterNewcomer] != ""
	}
	if !p.ready() || p.peer(n) != nil {
		return false
	}
	return !slices.ContainsFunc(p.speaker.report.Pool.Volumes, func(v glusterd.Volume) bool {
		return slices.ContainsFunc(v.Bricks, func(b glusterd.Brick) bool { return b.Address == n.address })
	})
}

// reporter is the node that reports on the pool: the speaker, or while there is none who was asked for it last.
func (p *planner) reporter() *node {
	if p.speaker != nil && p.missed() == "" {
		return p.speaker
	}
	for _, n := range p.nodes {
		if n.daemon != nil && n.daemon.Spec.Parameters[glusterd.ParamReport] == glusterd.DepthPool {
			return n
		}
	}
	for _, n := range p.nodes {
		if n.usable() {
			return n
		}
	}
	return nil
}

func daemonName(cluster, node string) string { return cluster + "-glusterd-" + node }
