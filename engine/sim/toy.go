package sim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// ToyType is the type of the toy storage system.
const ToyType api.StorageType = "toy"

// Toy is the smallest storage system that uses all of the engine: a key, one daemon on each node, and a command that
// initializes the whole when all daemons run. It is both the Driver and the System.
type Toy struct {
	// As is the type that the toy passes for, where an API knows no toys; empty means ToyType. Set it before use.
	As api.StorageType
	// PlanHook, when set, may change each plan; it may panic.
	PlanHook func(*engine.Plan)

	mu          sync.Mutex
	running     map[types.NamespacedName][]string
	initialized map[types.NamespacedName]bool
	volumes     map[types.NamespacedName]map[string]bool
	silent      bool
	forgotten   int
	observed    int
	performed   int
}

// ToyState is what the toy says of itself.
type ToyState struct {
	Running     []string
	Initialized bool
	// Report is what its daemons report, nil when none does.
	Report *toyReport
}

var (
	_ engine.Driver = (*Toy)(nil)
	_ System        = (*Toy)(nil)
)

// NewToy returns a toy that never ran.
func NewToy() *Toy {
	return &Toy{
		running: map[types.NamespacedName][]string{}, initialized: map[types.NamespacedName]bool{}, volumes: map[types.NamespacedName]map[string]bool{},
	}
}

// Step sees which daemons run.
func (t *Toy) Step(_ time.Time, daemons []api.Daemon) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.running)
	for i := range daemons {
		c := types.NamespacedName{Namespace: daemons[i].Namespace, Name: daemons[i].Spec.Cluster}
		t.running[c] = append(t.running[c], daemons[i].Spec.ID)
	}
}

// Silence makes the toy stop answering, or answer again.
func (t *Toy) Silence(silent bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.silent = silent
}

// Counts says how often the toy was observed, told to do something, and forgotten.
func (t *Toy) Counts() (observed, performed, forgotten int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.observed, t.performed, t.forgotten
}

// Type is ToyType, or what the toy passes for.
func (t *Toy) Type() api.StorageType { return cmp.Or(t.As, ToyType) }

// Observe returns a *ToyState.
func (t *Toy) Observe(_ context.Context, view *engine.View, _ engine.SecretReader) (any, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.observed++
	if t.silent {
		return nil, errors.New("no answer")
	}
	c := types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}
	if len(t.running[c]) == 0 {
		return nil, nil
	}
	return &ToyState{Running: slices.Clone(t.running[c]), Initialized: t.initialized[c], Report: reported(view)}, nil
}

// Unanswered says that a toy with a daemon that runs was not heard.
func (t *Toy) Unanswered(view *engine.View) string {
	runs := func(d api.Daemon) bool { return d.Status.State == api.DaemonRunning }
	if view.System == nil && slices.ContainsFunc(view.Daemons, runs) {
		return "the toy is silent"
	}
	return ""
}

// Perform knows the command "init".
func (t *Toy) Perform(_ context.Context, view *engine.View, cmd engine.Command, _ engine.SecretReader) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cmd.Verb != "init" {
		return fmt.Errorf("unknown command %q", cmd.Verb)
	}
	t.performed++
	t.initialized[types.NamespacedName{Namespace: view.Cluster.Namespace, Name: view.Cluster.Name}] = true
	return nil
}

// MakeSecret makes a key.
func (t *Toy) MakeSecret(want engine.SecretWant) (map[string][]byte, error) {
	if want.Kind != "toy" {
		return nil, fmt.Errorf("the toy has no secrets of the kind %q", want.Kind)
	}
	return map[string][]byte{"key": []byte("key of " + want.Name)}, nil
}

// Forget counts.
func (t *Toy) Forget(string, string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forgotten++
}

// Plan wants a key, and on each accepted node a daemon that is first prepared and, when all are, runs. It heeds the modes of
// hosts as a system does whose daemons need a majority (see toymode.go).
func (t *Toy) Plan(view *engine.View, now time.Time) *engine.Plan {
	p := &toyPlan{view: view, kind: t.Type(), Plan: &engine.Plan{}, stopped: map[string]bool{}}
	if view.Cluster.DeletionTimestamp != nil {
		p.End(view, engine.Ending{Object: engine.DaemonObject, Data: func(string) bool { return true }})
	} else {
		p.grow(now)
		p.askedRestart()
	}
	if t.PlanHook != nil {
		t.PlanHook(p.Plan)
	}
	return p.Plan
}

// Foresee is what the toy says when its daemons run, initialized if it was told so.
func (t *Toy) Foresee(before, after *engine.View, commands []engine.Command) any {
	next := &ToyState{Initialized: slices.ContainsFunc(commands, func(c engine.Command) bool { return c.Verb == "init" })}
	var report *toyReport
	if was, ok := before.System.(*ToyState); ok {
		next.Initialized = next.Initialized || was.Initialized
		report = was.Report
	}
	if len(after.Resources) > 0 {
		next.Report = foreseeVolumes(report, commands)
	}
	for i := range after.Daemons {
		if d := &after.Daemons[i]; d.Status.State == api.DaemonRunning {
			next.Running = append(next.Running, d.Spec.ID)
		}
	}
	if len(next.Running) == 0 {
		return before.System
	}
	return next
}

type toyPlan struct {
	*engine.Plan
	view    *engine.View
	kind    api.StorageType
	stopped map[string]bool // the hosts whose daemons this plan stops
}

func (p *toyPlan) grow(now time.Time) {
	name := p.view.Cluster.Name
	if len(p.view.Secrets) == 0 {
		p.Secrets = append(p.Secrets, engine.SecretWant{Name: name + "-key", Kind: "toy", Annotations: map[string]string{"toy": "key"}})
	}
	var wanted []api.Daemon
	for _, r := range engine.ResolveNodes(p.view) {
		status := engine.NodeStatusFor(r, nil, now)
		if !equality.Semantic.DeepEqual(status, r.Node.Status) {
			p.Nodes = append(p.Nodes, engine.NodeStatus{Name: r.Node.Name, Status: status})
		}
		if c := status.Conditions[0]; c.Status != metav1.ConditionTrue {
			p.decide("node/"+r.Node.Name, map[bool]api.Verdict{true: api.VerdictWait, false: api.VerdictRefuse}[c.Reason == engine.ReasonWaiting], api.ReasonNodeUnusable, c.Message)
			continue
		}
		wanted = append(wanted, toyDaemon(name, r))
	}
	wanted = p.heedModes(wanted)
	p.letGo(wanted)
	for i := range wanted {
		if len(p.view.Resources) > 0 {
			wanted[i].Spec.Parameters = map[string]string{api.ParameterReport: "volumes"}
		}
	}
	p.place(wanted)
	p.keepVolumes()
	p.judge(wanted)
}

func toyDaemon(cluster string, r engine.ResolvedNode) api.Daemon {
	d := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: cluster + "-toy-" + r.Node.Name},
		Spec: api.DaemonSpec{
			Cluster: cluster, Type: "toy", ID: r.Node.Name, Host: r.Host.Name, State: api.WantPrepared,
			Command: []string{"toyd", "--address", r.Address}, StopTimeout: metav1.Duration{Duration: 30 * time.Second},
			OnRemoval: api.DeletionRetain,
		},
	}
	for _, dev := range r.Devices {
		d.Spec.Devices = append(d.Spec.Devices, api.DaemonDevice{Name: dev.Name, ID: dev.ID})
	}
	return d
}

// place wants all daemons prepared, and lets them run when all are.
func (p *toyPlan) place(wanted []api.Daemon) {
	prepared := len(wanted) > 0
	for i := range wanted {
		have := p.daemon(wanted[i].Name)
		prepared = prepared && have != nil && (have.Status.State == api.DaemonPrepared || have.Spec.State != api.WantPrepared)
	}
	for _, d := range wanted {
		have := p.daemon(d.Name)
		if d.Spec.State != api.WantStopped && (prepared || have != nil && have.Spec.State != api.WantPrepared) {
			d.Spec.State = api.WantRunning
		}
		if have == nil || !equality.Semantic.DeepEqual(have.Spec, d.Spec) {
			p.Daemons = append(p.Daemons, engine.DaemonChange{Daemon: d, New: have == nil, Reason: "wanted " + string(d.Spec.State)})
			p.decide("daemon/"+d.Name, api.VerdictDo, api.ReasonDeclared, "bring it to "+string(d.Spec.State))
		}
	}
}

// judge says how the toy is.
func (p *toyPlan) judge(wanted []api.Daemon) {
	state, _ := p.view.System.(*ToyState)
	total := len(wanted)
	for i := range p.view.Daemons {
		name := p.view.Daemons[i].Name
		if !slices.ContainsFunc(wanted, func(d api.Daemon) bool { return d.Name == name }) {
			total++
		}
	}
	s := api.StorageStatusStatus{Type: p.kind, Status: api.StorageOffline, Message: "no daemon runs"}
	if state != nil {
		s.Health = "TOY_WARN"
		s.Message = fmt.Sprintf("%d of %d daemons run", len(state.Running), total)
		s.StorageNodes, s.Nodes = state.Running, int32(len(state.Running))
		s.Status = api.StorageDegraded
		if len(state.Running) == total {
			s.Health, s.Status, s.Message = "TOY_OK", api.StorageOnline, ""
		}
		if !state.Initialized {
			s.Status = api.StorageOffline
			s.Message = cmp.Or(s.Message, "not initialized yet")
			if len(state.Running) == total {
				p.Commands = append(p.Commands, engine.Command{Verb: "init", Object: "toy", Reason: "all daemons run"})
			}
		}
	}
	if s.Message != "" {
		s.Reasons = []string{s.Message}
	}
	p.Status = s
	p.Done = s.Status == api.StorageOnline && p.Empty() && len(p.Decisions) == 0
	if !p.Done && len(p.Decisions) == 0 {
		p.decide("cluster/"+p.view.Cluster.Name, api.VerdictWait, api.ReasonNotReady, cmp.Or(s.Message, "something is on its way"))
	}
}

func (p *toyPlan) decide(object string, verdict api.Verdict, reason api.Reason, message string) {
	p.Decisions = append(p.Decisions, api.Decision{Object: object, Verdict: verdict, Reason: reason, Message: message})
}

func (p *toyPlan) daemon(name string) *api.Daemon {
	for i := range p.view.Daemons {
		if p.view.Daemons[i].Name == name {
			return &p.view.Daemons[i]
		}
	}
	return nil
}
