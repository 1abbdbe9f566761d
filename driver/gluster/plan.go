package gluster

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// Plan says what to change. It is pure.
func (Driver) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := newPlanner(view, now)
	if p.cluster.DeletionTimestamp != nil {
		p.remove()
		return p.plan
	}
	for _, phase := range []func(){p.resolve, p.chooseSpeaker, p.findStores, p.findVolumes, p.checkModes, p.checkLeavers} {
		phase()
	}
	p.formPool()
	p.planVolumes()
	p.dismiss()
	p.writeDaemons()
	p.writeNodes()
	p.writeStatus()
	return p.plan
}

// planner makes one plan. Its phases find out what is there; then the plan is written from it.
type planner struct {
	view    *engine.View
	now     time.Time
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
	stopped   map[string]bool // the nodes whose glusterd is told to stop, by name

	plan *engine.Plan
}

func newPlanner(view *engine.View, now time.Time) *planner {
	p := &planner{
		view: view, now: now, cluster: view.Cluster, have: map[string]*api.Daemon{}, hosts: map[string]*api.Host{},
		stopped: map[string]bool{}, plan: &engine.Plan{},
	}
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

func (p *planner) decide(verdict api.Verdict, object, format string, args ...any) {
	p.plan.Decisions = append(p.plan.Decisions, api.Decision{Object: object, Verdict: verdict, Message: cut(fmt.Sprintf(format, args...), maxText)})
}

// command asks the speaker for something.
func (p *planner) command(verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	p.commandOf(p.speaker, verb, object, params, risk, format, args...)
}

// commandOf asks one node for something. While another node begins to speak for the pool nothing is asked: what that tells first
// could be of the time before.
func (p *planner) commandOf(n *node, verb, object string, params map[string]string, risk api.Risk, format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	if p.successor != nil {
		p.decide(api.VerdictWait, verb+" "+object, "%s: node %s speaks for the pool first", reason, p.successor.name)
		return
	}
	p.plan.Commands = append(p.plan.Commands, engine.Command{
		Verb: verb, Object: object, Params: params, Daemon: n.daemon.Name, Line: p.line(verb, object), Reason: reason, Risk: risk,
	})
	p.decide(api.VerdictDo, verb+" "+object, "%s", reason)
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
		p.want(p.glusterd(n))
	}
}

// want compares a wanted daemon with what is there.
func (p *planner) want(d api.Daemon) {
	have := p.have[d.Name]
	switch {
	case have == nil:
		p.change(d, true, fmt.Sprintf("a glusterd is wanted on host %s", d.Spec.Host))
	case have.DeletionTimestamp != nil:
		p.decide(api.VerdictWait, "daemon/"+d.Name, "it is being removed from host %s", have.Spec.Host)
	default:
		if reason := specDiff(&have.Spec, &d.Spec); reason != "" {
			changed := *have.DeepCopy()
			changed.Spec = d.Spec
			p.change(changed, false, reason)
		}
	}
}

func (p *planner) change(d api.Daemon, isNew bool, reason string) {
	p.plan.Daemons = append(p.plan.Daemons, engine.DaemonChange{Daemon: d, New: isNew, Reason: reason})
	p.decide(api.VerdictDo, "daemon/"+d.Name, "%s", reason)
}

// specDiff says in words what differs between the spec that is there and the one that is wanted; nothing when they agree.
func specDiff(have, want *api.DaemonSpec) string {
	if equality.Semantic.DeepEqual(have, want) {
		return ""
	}
	var parts []string
	note := func(differs bool, text string) {
		if differs {
			parts = append(parts, text)
		}
	}
	note(have.State != want.State, fmt.Sprintf("wanted state goes from %s to %s", have.State, want.State))
	note(!equality.Semantic.DeepEqual(have.Devices, want.Devices), "its devices change")
	for _, key := range slices.Sorted(maps.Keys(want.Parameters)) {
		note(have.Parameters[key] != want.Parameters[key], fmt.Sprintf("its parameter %s changes", key))
	}
	note(have.OnRemoval != want.OnRemoval, fmt.Sprintf("what becomes of its data changes to %s", want.OnRemoval))
	if len(parts) == 0 {
		parts = []string{"its command or files change (they count from its next start)"}
	}
	return strings.Join(parts, ", ")
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
	if p.stopped[n.name] {
		d.Spec.State = api.WantStopped
	}
	return d
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

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// joinFew joins names for people: not more than they read.
func joinFew(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}

// cut cuts text to at most n bytes, at a character's end.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}

func policy(p api.DeletionPolicy) api.DeletionPolicy { return cmp.Or(p, api.DeletionRetain) }
