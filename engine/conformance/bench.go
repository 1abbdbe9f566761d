package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

type secret struct {
	data        map[string][]byte
	annotations map[string]string
}

// bench is the place of one check: a world, a system and its driver, and the least of an engine.
type bench struct {
	T
	*World
	subject *Subject
	system  System
	driver  engine.Driver
	// writes counts what was written since the beginning; the leader dies at the write dieAt.
	writes, dieAt int
	// twice has each command carried out twice.
	twice bool
	// asked are the verbs of all commands that were carried out, each once, in their order.
	asked []string
	// calls are the first commands of each verb that the driver itself carried out, with the views that they were planned for.
	calls map[string]call
}

type call struct {
	view *engine.View
	cmd  engine.Command
}

func newBench(t T, s *Subject) *bench {
	if _, ok := t.(*sparing); !ok {
		t = &sparing{T: t, said: map[string]bool{}}
	}
	b := &bench{T: t, subject: s, calls: map[string]call{}, World: &World{
		Now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Cluster: s.Cluster.DeepCopy(), Daemons: map[string]*api.Daemon{}, secrets: map[string]secret{},
	}}
	for i := range s.Hosts {
		b.Hosts = append(b.Hosts, *s.Hosts[i].DeepCopy())
	}
	for i := range s.Nodes {
		b.Nodes = append(b.Nodes, *s.Nodes[i].DeepCopy())
	}
	for _, r := range s.Resources {
		b.Resources = append(b.Resources, engine.CopyResource(r))
	}
	b.system = s.New(t)
	b.driver = b.system.Driver()
	return b
}

// sparing tells of each fault once: what is wrong with one plan is wrong with many.
type sparing struct {
	T
	mu   sync.Mutex
	said map[string]bool
}

// Errorf notes a fault, if it is the first of its kind.
func (s *sparing) Errorf(format string, args ...any) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said[format] {
		s.said[format] = true
		s.T.Errorf(format, args...)
	}
}

// view is a snapshot, as a Store makes it.
func (b *bench) view() *engine.View {
	v := b.View()
	v.Status = b.status.DeepCopy()
	for _, name := range slices.Sorted(maps.Keys(b.secrets)) {
		s := b.secrets[name]
		v.Secrets = append(v.Secrets, engine.SecretInfo{Name: name, Keys: slices.Sorted(maps.Keys(s.data)), Annotations: maps.Clone(s.annotations)})
	}
	return v
}

// observed is a view with what the system says of itself.
func (b *bench) observed() *engine.View {
	b.Helper()
	return b.observe(b.view())
}

// observe adds to a view what the system says of itself.
func (b *bench) observe(v *engine.View) *engine.View {
	b.Helper()
	system, err := b.driver.Observe(b.Context(), v, b)
	if err != nil {
		b.Fatalf("Observe: %v", err)
	}
	v.System = system
	return v
}

// Secret makes the bench an engine.SecretReader.
func (b *bench) Secret(_ context.Context, name string) (map[string][]byte, error) {
	s, ok := b.secrets[name]
	if !ok {
		return nil, fmt.Errorf("secret %s: %w", name, engine.ErrNotFound)
	}
	return s.data, nil
}

// round is one orchestration. It says whether the leader lived through it.
func (b *bench) round() (p *engine.Plan, lived bool) {
	b.Helper()
	v := b.observed()
	p = b.plan(v)
	lived = b.apply(v, p)
	if !lived {
		b.driver = b.system.Driver()
	}
	b.Now = b.Now.Add(max(p.Recheck, time.Second))
	return p, lived
}

// settle lets agents and orchestrations take turns until some in a row have changed nothing, and returns the last plan.
func (b *bench) settle() *engine.Plan {
	b.Helper()
	const enough = 4
	rounds := cmp.Or(b.subject.Rounds, 60)
	var p *engine.Plan
	for idle := 0; idle < enough; rounds-- {
		if rounds == 0 {
			b.Fatalf("more than %d orchestrations follow each other, and there is no end. The last plan: %s", cmp.Or(b.subject.Rounds, 60), describe(p))
		}
		writes, before := b.writes, b.text()
		b.system.Act(b.World)
		p, _ = b.round()
		if idle++; writes != b.writes || before != b.text() {
			idle = 0
		}
	}
	return p
}

// online settles, and fails where the cluster is not as it is wanted then.
func (b *bench) online(when string) *engine.Plan {
	b.Helper()
	p := b.settle()
	if p.Status.Status != api.StorageOnline || !p.Done {
		b.Fatalf("%s the cluster is %s (done: %v) and not ONLINE: %s", when, p.Status.Status, p.Done, describe(p))
	}
	return p
}

// write counts a write, and says whether the leader lives to do the next.
func (b *bench) write() bool {
	b.writes++
	return b.writes != b.dieAt
}

// apply carries out a plan as the engine does, and says whether the leader lived.
func (b *bench) apply(v *engine.View, p *engine.Plan) bool {
	b.Helper()
	return b.applyStatuses(p) && (p.Refused || b.applyDaemons(p) && b.perform(v, p))
}

func (b *bench) applyStatuses(p *engine.Plan) bool {
	b.Helper()
	b.status = &api.StorageStatus{Status: p.Status}
	for _, s := range p.Nodes {
		i := slices.IndexFunc(b.Nodes, func(n api.StorageNode) bool { return n.Name == s.Name })
		if i < 0 {
			b.Fatalf("a status is planned for node %s, which is not there", s.Name)
		}
		if b.Nodes[i].Status = *s.Status.DeepCopy(); !b.write() {
			return false
		}
	}
	for _, c := range p.Resources {
		i := slices.IndexFunc(b.Resources, func(r api.Resource) bool { return engine.ResourceObject(r) == c.Object() })
		switch {
		case i < 0:
			b.Fatalf("a status is planned for %s, which is not there", c.Object())
		case c.Gone && b.Resources[i].GetDeletionTimestamp() == nil:
			b.Fatalf("%s is let go, and nobody deleted it", c.Object())
		case c.Gone:
			b.Resources = slices.Delete(b.Resources, i, i+1)
		default:
			b.Resources[i].TakeStatus(c.Resource)
		}
		if !b.write() {
			return false
		}
	}
	return true
}

func (b *bench) applyDaemons(p *engine.Plan) bool {
	b.Helper()
	for _, want := range p.Secrets {
		if want.Gone {
			if delete(b.secrets, want.Name); !b.write() {
				return false
			}
			continue
		}
		if _, ok := b.secrets[want.Name]; ok {
			continue
		}
		data, err := b.driver.MakeSecret(want)
		if err != nil || len(data) == 0 {
			b.Fatalf("secret %s is planned, and the driver cannot make it: %v", want.Name, err)
		}
		if b.secrets[want.Name] = (secret{data, maps.Clone(want.Annotations)}); !b.write() {
			return false
		}
	}
	for i := range p.Daemons {
		if b.put(&p.Daemons[i]); !b.write() {
			return false
		}
	}
	for _, r := range p.Remove {
		d := b.Daemons[r.Name]
		if d == nil {
			b.Fatalf("daemon %s is removed, and is not there", r.Name)
		}
		now := metav1.NewTime(b.Now)
		if d.DeletionTimestamp = &now; !b.write() {
			return false
		}
	}
	return true
}

// put writes a daemon; its status is the agent's.
func (b *bench) put(c *engine.DaemonChange) {
	b.Helper()
	d, have := c.Daemon.DeepCopy(), b.Daemons[c.Daemon.Name]
	switch {
	case (have == nil) != c.New:
		b.Fatalf("daemon %s: New is %v", d.Name, c.New)
	case have == nil:
		d = engine.DaemonFor(b.Cluster, *c)
		d.CreationTimestamp = metav1.NewTime(b.Now)
		d.Generation = 1
	default:
		generation, changed := leadermemory.Write(have, d)
		if !changed {
			b.Errorf("daemon %s is written and does not change", d.Name)
		}
		if d = have; generation {
			d.Generation++
		}
	}
	b.Daemons[d.Name] = d
}

func (b *bench) perform(v *engine.View, p *engine.Plan) bool {
	b.Helper()
	for _, cmd := range p.Commands {
		b.carryOut(v, cmd)
		if b.twice {
			b.carryOut(v, cmd)
		}
		if !slices.Contains(b.asked, cmd.Verb) {
			b.asked = append(b.asked, cmd.Verb)
		}
		if !b.write() {
			return false
		}
	}
	return true
}

func (b *bench) carryOut(v *engine.View, cmd engine.Command) {
	b.Helper()
	var err error
	switch d := b.Daemons[cmd.Daemon]; {
	case cmd.Daemon == "":
		if _, ok := b.calls[cmd.Verb]; !ok {
			b.calls[cmd.Verb] = call{v, cmd}
		}
		err = b.driver.Perform(b.Context(), v, cmd, b)
	case d == nil:
		err = fmt.Errorf("there is no daemon %s", cmd.Daemon)
	case !b.heard(d.Spec.Host):
		return // the engine does not ask it, and asks again later
	default:
		err = b.system.Ask(b.World, d, cmd)
	}
	if err != nil {
		b.Fatalf("%q of %s cannot be carried out (daemon %q): %v", cmd.Verb, cmd.Object, cmd.Daemon, err)
	}
}

// text is all that the world holds, but for times.
func (b *bench) text() string {
	var s strings.Builder
	for _, name := range slices.Sorted(maps.Keys(b.Daemons)) {
		d := b.Daemons[name]
		fmt.Fprintln(&s, name, d.Spec, d.Annotations, d.Status.State, d.Status.Report, d.DeletionTimestamp != nil)
	}
	for i := range b.Nodes {
		fmt.Fprintln(&s, b.Nodes[i].Name, b.Nodes[i].Status.Host, b.Nodes[i].Status.Devices)
	}
	for _, r := range b.Resources {
		fmt.Fprintln(&s, essence(r), r.Common().Message)
	}
	return s.String()
}

func (w *World) host(name string) *api.Host {
	if i := slices.IndexFunc(w.Hosts, func(h api.Host) bool { return h.Name == name }); i >= 0 {
		return &w.Hosts[i]
	}
	return nil
}

func (w *World) heard(host string) bool {
	h := w.host(host)
	return h != nil && h.AgentHeard()
}

// silence has the agent of a host heard or not.
func (w *World) silence(host string, silent bool) {
	c := metav1.Condition{Type: api.HostAgentConnected, Status: metav1.ConditionTrue, Reason: "Connected", LastTransitionTime: metav1.NewTime(w.Now)}
	if silent {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, "Silent", "no heartbeat"
	}
	w.host(host).Status.Conditions = []metav1.Condition{c}
}

// Agents has each agent that is heard bring its daemons to where they are wanted, and take away those that are being deleted: it is seen
// once that they are stopping.
func (w *World) Agents() {
	for name, d := range w.Daemons {
		switch {
		case !w.heard(d.Spec.Host):
			continue
		case d.DeletionTimestamp != nil && d.Status.State == api.DaemonStopping:
			delete(w.Daemons, name)
		case d.DeletionTimestamp != nil:
			d.Status.State = api.DaemonStopping
		case d.Spec.State == api.WantPrepared:
			d.Status.State = api.DaemonPrepared
		case d.Spec.State == api.WantStopped:
			d.Status.State = api.DaemonStopped
		default:
			d.Status.State = api.DaemonRunning
		}
		d.Status.ObservedGeneration = d.Generation
	}
}

// on are the names of the daemons of a host that are not stopped.
func (w *World) on(host string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(w.Daemons)) {
		if d := w.Daemons[name]; d.Spec.Host == host && d.Status.State != api.DaemonStopped && d.Status.State != api.DaemonPrepared {
			names = append(names, name)
		}
	}
	return names
}

// describe is a plan for people.
func describe(p *engine.Plan) string {
	if p == nil {
		return "none"
	}
	var s strings.Builder
	for _, d := range p.Decisions {
		fmt.Fprintf(&s, "\n\t%s %s: %s", d.Verdict, d.Object, d.Message)
	}
	return fmt.Sprintf("%s %q%s", p.Status.Status, p.Status.Reasons, s.String())
}
