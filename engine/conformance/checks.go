package conformance

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// A cluster of which no node is declared, or none is there yet, waits and says for what.
func waitsWithoutNodes(b *bench) {
	b.Nodes, b.Resources = nil, nil
	b.waits("without nodes")
	b.World = newBench(b.T, b.subject).World
	b.Hosts, b.Resources = nil, nil
	b.waits("without hosts")
}

func (b *bench) waits(when string) {
	b.Helper()
	p := b.settle()
	if p.Status.Status != api.StorageOffline || len(p.Status.Reasons) == 0 || p.Status.Message == "" || p.Done {
		b.Errorf("%s the cluster is %s (done: %v) for %q, and not OFFLINE with a reason", when, p.Status.Status, p.Done, p.Status.Reasons)
	}
	if len(b.Daemons) > 0 {
		b.Errorf("%s daemons are made", when)
	}
}

// From nothing the cluster comes ONLINE in a bounded number of runs. Then a run changes nothing, and says the same each time: what
// differs is written.
func comesUp(b *bench) {
	b.online("declared in full,")
	v := b.observed()
	p := b.plan(v)
	if !p.Empty() || len(p.Nodes)+len(p.Resources) > 0 {
		b.Errorf("a cluster that is well is changed again: %s", describe(p))
	}
	b.Now = b.Now.Add(90 * time.Minute)
	if later := b.plan(v); dump(later) != dump(p) {
		b.Errorf("of one view, with nothing to wait for, another plan is made later: %s", difference(dump(p), dump(later)))
	}
	if p.Status.Nodes == 0 || len(p.Status.StorageNodes) != int(p.Status.Nodes) || p.Status.Health == "" {
		b.Errorf("ONLINE, with %d nodes %v and the health %q", p.Status.Nodes, p.Status.StorageNodes, p.Status.Health)
	}
}

// A new leader, with a driver that knows nothing, plans what the old one did.
func sameAtAnyTime(b *bench) {
	for range 8 {
		b.system.Act(b.World)
		v := b.observed()
		p := b.plan(v)
		b.driver.Forget(b.Cluster.Namespace, b.Cluster.Name)
		b.driver = b.system.Driver()
		if again := b.plan(v); dump(again) != dump(p) {
			b.Fatalf("another driver plans otherwise: %s", difference(dump(p), dump(again)))
		}
		b.apply(v, p)
		b.Now = b.Now.Add(max(p.Recheck, time.Second))
	}
	b.online("with a new leader each time,")
}

// Wherever a leader is cut off, the next one comes to the same end.
func resumes(b *bench) {
	b.online("undisturbed")
	want, writes := b.end(), b.writes
	for at := 1; at <= writes; at++ {
		x := newBench(b.T, b.subject)
		x.dieAt = at
		x.online("after a crash")
		if got := x.end(); got != want {
			b.Errorf("after a crash at write %d of %d all ends otherwise: %s", at, writes, difference(want, got))
		}
	}
}

// end is what a cluster is like when it has come to rest, as far as that does not depend on the way there: which daemon reports for all
// of them, where the directories of a volume are, and the parameters in which a driver notes what it has done, may.
func (b *bench) end() string {
	var all []string
	for name, d := range b.Daemons {
		all = append(all, strings.Join([]string{name, d.Spec.Type, d.Spec.ID, d.Spec.Host, string(d.Spec.State), string(d.Status.State), dump(d.Spec.Devices)}, " "))
	}
	for i := range b.Nodes {
		all = append(all, b.Nodes[i].Name+" "+dump(b.Nodes[i].Status.Devices))
	}
	for _, r := range b.Resources {
		all = append(all, essence(r))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// essence is what of a resource does not depend on the way there.
func essence(r api.Resource) string {
	text := engine.ResourceObject(r) + " " + string(r.Common().State)
	if v, ok := r.(*api.Volume); ok {
		text += " " + dump(v.Status.Capacity) + " " + v.Status.Layout
	}
	return text
}

// A command that is given twice, as after a crash before its end was seen, does no more than one that is given once.
func repeats(b *bench) {
	b.online("undisturbed")
	x := newBench(b.T, b.subject)
	x.twice = true
	x.online("with each command given twice,")
	if got := x.end(); got != b.end() {
		b.Errorf("with each command given twice all ends otherwise: %s", difference(b.end(), got))
	}
}

// A plan that is shown tells what will happen, and to show it does nothing. That a cluster comes up is foreseen to its end. Of the rest
// what cannot be known beforehand may be left open: then that is said.
func foresees(b *bench) {
	b.system.Act(b.World)
	if p := b.foreseen("a cluster that comes up"); !p.Last.Done {
		b.Errorf("of a cluster that comes up it is not foreseen that it is ONLINE in the end: %q %s", p.Open, describe(p.Last))
	}
	name := b.Hosts[len(b.Hosts)-1].Name
	b.host(name).Spec.Mode = api.HostMaintenance
	b.foreseen("maintenance")
	b.host(name).Spec.Mode = api.HostActive
	b.foreseen("the end of maintenance")
	now := metav1.NewTime(b.Now)
	b.Cluster.DeletionTimestamp = &now
	if p := engine.Project(b.driver, b.observed(), b.Now); !p.Last.Finished {
		b.Errorf("of a cluster that is deleted it is not foreseen that it ends: %s", describe(p.Last))
	}
}

func (b *bench) foreseen(what string) *engine.Projection {
	b.Helper()
	v := b.observed()
	before, world := dump(v), dump(b.World)
	shown := engine.Project(b.driver, v, b.Now)
	if dump(v) != before || dump(b.World) != world {
		b.Fatalf("to foresee %s changed something", what)
	}
	var verbs []string
	for i, s := range shown.Steps {
		for _, c := range s.Plan.Commands {
			if i > 0 && slices.ContainsFunc(shown.Steps[i-1].Plan.Commands, func(x engine.Command) bool {
				return x.Verb == c.Verb && x.Object == c.Object && x.Daemon == c.Daemon && dump(x.Params) == dump(c.Params)
			}) {
				b.Errorf("of %q of %s nothing is foreseen: it is shown again in the next step of %s", c.Verb, c.Object, what)
			}
			if !slices.Contains(verbs, c.Verb) {
				verbs = append(verbs, c.Verb)
			}
		}
	}
	b.asked = nil
	end := b.settle()
	if len(shown.Open) > 0 {
		return shown
	}
	slices.Sort(verbs)
	slices.Sort(b.asked)
	if !slices.Equal(verbs, b.asked) {
		b.Errorf("of %s the commands %q are foreseen, and these were given: %q", what, verbs, b.asked)
	}
	if shown.Last.Status.Status != end.Status.Status || shown.Last.Done != end.Done {
		b.Errorf("of %s the end is foreseen as %s (done: %v), and it is %s (done: %v): foreseen %s", what,
			shown.Last.Status.Status, shown.Last.Done, end.Status.Status, end.Done, describe(shown.Last))
	}
	return shown
}
