package conformance

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// While the storage system does not answer, whatever is asked for, nothing is stopped, removed or given up.
func harmless(b *bench) {
	b.online("undisturbed")
	for what, change := range map[string]func(){
		"nothing else":           func() {},
		"a host in maintenance":  func() { b.Hosts[0].Spec.Mode = api.HostMaintenance },
		"all in maintenance":     func() { b.eachHost(api.HostMaintenance) },
		"a host drained":         func() { b.Hosts[0].Spec.Mode = api.HostDrain },
		"all drained":            func() { b.eachHost(api.HostDrain) },
		"a node less":            func() { b.Nodes = b.Nodes[1:] },
		"no nodes":               func() { b.Nodes = nil },
		"a host gone":            func() { b.Hosts = b.Hosts[1:] },
		"an agent silent":        func() { b.silence(b.Hosts[0].Name, true) },
		"a node without devices": func() { b.Nodes[0].Spec.Devices, b.Nodes[0].Spec.Directories = nil, nil },
	} {
		hosts, nodes := slices.Clone(b.Hosts), slices.Clone(b.Nodes)
		change()
		v := b.view()
		v.Errors = []engine.NodeError{{Object: "cluster/" + b.Cluster.Name, Message: "it was asked for its state: no answer"}}
		p := b.plan(v)
		for _, h := range harm(v, p) {
			b.Errorf("with no answer and %s: %s", what, h)
		}
		if p.Done || p.Status.Status == api.StorageOnline {
			b.Errorf("with no answer and %s the cluster is taken for well", what)
		}
		b.Hosts, b.Nodes = hosts, nodes
	}
}

// That the storage system does not answer is told from that there is none yet.
func knowsSilence(b *bench) {
	if why := b.driver.Unanswered(b.observed()); why != "" {
		b.Errorf("nothing was ever started, and yet an answer is missing: %s", why)
	}
	b.online("undisturbed")
	if why := b.driver.Unanswered(b.observed()); why != "" {
		b.Errorf("the cluster is well, and yet an answer is missing: %s", why)
	}
	if b.driver.Unanswered(b.view()) == "" {
		b.Errorf("with no answer none is missed")
	}
}

func (b *bench) eachHost(mode api.HostMode) {
	for i := range b.Hosts {
		b.Hosts[i].Spec.Mode = mode
	}
}

// What cannot be had is refused with the reason, and nothing of what is there is touched for it.
func refuses(b *bench) {
	if len(b.subject.Refusals) == 0 {
		b.Fatal("the subject names nothing that is refused")
	}
	for _, r := range b.subject.Refusals {
		x := newBench(b.T, b.subject)
		x.online("undisturbed")
		running := len(x.Daemons)
		r.Declare(x.World)
		p := x.settle()
		refused := slices.ContainsFunc(p.Decisions, func(d api.Decision) bool { return d.Verdict == api.VerdictRefuse })
		if !refused || p.Done {
			b.Errorf("%s is not refused: %s", r.Name, describe(p))
		}
		if p.Status.Status == api.StorageOffline || len(x.Daemons) < running {
			b.Errorf("%s is refused, and the cluster is the worse for it: %s", r.Name, describe(p))
		}
	}
}

// A node that is not declared any more goes, with all its daemons, or the reason is told why it cannot.
func letsNodesGo(b *bench) {
	for i := range b.subject.Nodes {
		x := newBench(b.T, b.subject)
		x.online("undisturbed")
		gone := x.Nodes[i]
		x.Nodes = slices.Delete(x.Nodes, i, i+1)
		p := x.settle()
		if p.Status.Status == api.StorageOffline {
			b.Errorf("without node %s the cluster is OFFLINE: %s", gone.Name, describe(p))
		}
		if left := x.leftOf(&gone); len(left) > 0 && !tellsOf(p, append(left, gone.Name, gone.Status.Host)) {
			b.Errorf("of node %s, which is not declared any more, %q are left, and nothing is said of why: %s", gone.Name, left, describe(p))
		}
	}
}

// leftOf are the daemons on the host of a node, which is not declared any more; none where another node means the host, too.
func (b *bench) leftOf(gone *api.StorageNode) (left []string) {
	if gone.Status.Host == "" || slices.ContainsFunc(b.Nodes, func(n api.StorageNode) bool { return n.Status.Host == gone.Status.Host }) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.Daemons)) {
		if b.Daemons[name].Spec.Host == gone.Status.Host {
			left = append(left, name)
		}
	}
	return left
}

// tellsOf says whether a plan refuses something of what is named, or waits for something with it.
func tellsOf(p *engine.Plan, names []string) bool {
	return slices.ContainsFunc(p.Decisions, func(d api.Decision) bool {
		return (d.Verdict == api.VerdictRefuse || d.Verdict == api.VerdictWait) &&
			slices.ContainsFunc(names, func(name string) bool { return strings.Contains(d.Object+" "+d.Message, name) })
	})
}

// acts is what a plan does; what it says may be other words for a cluster that is only observed.
func acts(p *engine.Plan) string {
	return dump([]any{p.Refused, p.Finished, p.Secrets, p.Daemons, p.Remove, p.Commands})
}

// The engine does not carry out the plans of a cluster that is only observed. The driver makes them all the same, for it is they that
// are shown.
func plansAlike(b *bench) {
	for range 6 {
		b.system.Act(b.World)
		v := b.observed()
		active := b.plan(v)
		v.Cluster.Spec.Mode = api.ClusterObserved
		if x, y := acts(active), acts(b.plan(v)); x != y {
			b.Fatalf("a cluster that is observed is planned otherwise: %s", difference(x, y))
		}
		v.Cluster.Spec.Mode = ""
		b.apply(v, active)
		b.Now = b.Now.Add(max(active.Recheck, time.Second))
	}
}

// A cluster that is deleted ends, at any time and whatever its policy. Daemons learn what becomes of their data before they go, and
// where it is kept none is told to destroy any.
func ends(b *bench) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		for rounds := range 6 {
			x := newBench(b.T, b.subject)
			for range rounds {
				x.system.Act(x.World)
				x.round()
			}
			x.finish(policy)
		}
		x := newBench(b.T, b.subject)
		x.online("undisturbed")
		x.finish(policy)
	}
}

func (b *bench) finish(policy api.DeletionPolicy) {
	b.Helper()
	now := metav1.NewTime(b.Now)
	b.Cluster.DeletionTimestamp, b.Cluster.Spec.DeletionPolicy = &now, policy
	for range 60 {
		b.system.Act(b.World)
		p, _ := b.round()
		for i := range p.Daemons {
			if d := &p.Daemons[i].Daemon; policy == api.DeletionRetain && d.Spec.OnRemoval == api.DeletionWipe {
				b.Errorf("the data of a deleted cluster is kept, and daemon %s is told to destroy its own", d.Name)
			}
		}
		for _, r := range p.Remove {
			if d := b.Daemons[r.Name]; len(d.Spec.Devices) > 0 && d.Spec.OnRemoval != policy {
				b.Errorf("of the data of a deleted cluster shall become %s, and daemon %s goes before it was told", policy, r.Name)
			}
		}
		if p.Finished {
			return
		}
	}
	b.Errorf("a cluster that is deleted does not end: %d daemons are left", len(b.Daemons))
}
