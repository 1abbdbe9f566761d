package engine_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/leadermemory"
)

// planner is a Planner of functions.
type planner struct {
	plan    func(*engine.View) *engine.Plan
	foresee func(before, after *engine.View, commands []engine.Command) any
}

func (p planner) Plan(v *engine.View, _ time.Time) *engine.Plan { return p.plan(v) }

func (p planner) Foresee(before, after *engine.View, commands []engine.Command) any {
	if p.foresee == nil {
		return before.System
	}
	return p.foresee(before, after, commands)
}

func daemonOn(host, name string, state api.WantedState) api.Daemon {
	return api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: api.DaemonSpec{Cluster: "c", Host: host, State: state}}
}

func viewOf(hosts ...string) *engine.View {
	v := &engine.View{Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}}
	for _, h := range hosts {
		v.Hosts = append(v.Hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: h}})
	}
	return v
}

func TestProject_endsThoughThePlannerNeverDoes(t *testing.T) {
	turns := map[api.WantedState]api.WantedState{api.WantRunning: api.WantStopped, api.WantStopped: api.WantRunning}
	v := viewOf("h1")
	v.Daemons = []api.Daemon{daemonOn("h1", "d", api.WantRunning)}
	p := engine.Project(planner{plan: func(v *engine.View) *engine.Plan {
		d := *v.Daemons[0].DeepCopy()
		d.Spec.State = turns[d.Spec.State]
		return &engine.Plan{Daemons: []engine.DaemonChange{{Daemon: d}}}
	}}, v, time.Now())
	if len(p.Steps) != 1000 || len(p.Open) != 1 || !strings.Contains(p.Open[0], "more than 1000 steps") {
		t.Errorf("%d steps, open %q", len(p.Steps), p.Open)
	}
	if p.Risk() != api.RiskRedundancy {
		t.Errorf("risk %s: a daemon that runs is stopped", p.Risk())
	}
	if v.Daemons[0].Spec.State != api.WantRunning || v.Daemons[0].Generation != 0 {
		t.Error("the view that was given was changed")
	}
}

// TestProject_memory: what the leader notes is foreseen, and is of no generation.
func TestProject_memory(t *testing.T) {
	v := viewOf("h1")
	v.Daemons = []api.Daemon{daemonOn("h1", "d", api.WantRunning)}
	v.Daemons[0].Status.State = api.DaemonRunning
	shared, generation := v.Daemons[0].DeepCopy(), int64(-1)
	p := engine.Project(planner{plan: func(v *engine.View) *engine.Plan {
		d := *v.Daemons[0].DeepCopy()
		generation = d.Generation
		if _, known := leadermemory.Get(&d, "drain"); known {
			return &engine.Plan{}
		}
		leadermemory.Set(&d, "drain", "true")
		return &engine.Plan{Daemons: []engine.DaemonChange{{Daemon: d}}}
	}}, v, time.Now())
	if len(p.Steps) != 1 || generation != 0 {
		t.Errorf("%d steps, generation %d", len(p.Steps), generation)
	}
	if !leadermemory.Same(&v.Daemons[0], shared) {
		t.Error("the view that was given was changed")
	}
}

// TestProject_ofManyDaemons: of a large cluster fewer steps are shown, and what is waited for after them.
func TestProject_ofManyDaemons(t *testing.T) {
	for daemons, steps := range map[int]int{10: 1000, 1000: 50, 20_000: 32} {
		v := viewOf("h1")
		v.Daemons = make([]api.Daemon, daemons)
		n := 0
		p := engine.Project(planner{plan: func(*engine.View) *engine.Plan {
			n++
			return &engine.Plan{
				Commands:  []engine.Command{{Verb: "count"}},
				Decisions: []api.Decision{{Verdict: api.VerdictWait, Object: "daemon/d", Message: "3 more to follow"}},
			}
		}, foresee: func(_, _ *engine.View, _ []engine.Command) any { return n }}, v, time.Now())
		if len(p.Steps) != steps || len(p.Open) != 2 || !strings.Contains(p.Open[0], "3 more to follow") {
			t.Errorf("%d daemons: %d steps, open %q", daemons, len(p.Steps), p.Open)
		}
	}
}

// TestProject_waitsForSilentHosts: nobody acts on a host whose agent is not heard, so what comes after is not foretold.
func TestProject_waitsForSilentHosts(t *testing.T) {
	v := viewOf("h1", "h2")
	v.Hosts[1].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	v.Daemons = []api.Daemon{daemonOn("h1", "a", api.WantRunning), daemonOn("h2", "b", api.WantRunning)}
	p := engine.Project(planner{plan: func(v *engine.View) *engine.Plan {
		plan := &engine.Plan{Finished: len(v.Daemons) == 0}
		for _, d := range v.Daemons {
			if d.DeletionTimestamp == nil {
				plan.Remove = append(plan.Remove, engine.Removal{Name: d.Name})
				continue
			}
			plan.Decisions = append(plan.Decisions, api.Decision{Object: d.Name, Verdict: api.VerdictWait, Message: "being removed"})
		}
		return plan
	}}, v, time.Now())
	if len(p.Steps) != 1 || p.Last.Finished || !slices.Equal(p.Open, []string{"b: being removed"}) {
		t.Errorf("%d steps, last %+v, open %q", len(p.Steps), p.Last, p.Open)
	}
}

func TestProject_doesNothingToAClusterThatIsOnlyObserved(t *testing.T) {
	v := viewOf()
	v.Cluster.Spec.Mode = api.ClusterObserved
	p := engine.Project(planner{plan: func(*engine.View) *engine.Plan {
		return &engine.Plan{Commands: []engine.Command{{Verb: "zap"}}}
	}}, v, time.Now())
	if len(p.Steps) != 0 || len(p.Open) != 1 {
		t.Errorf("%d steps, open %q", len(p.Steps), p.Open)
	}
}

func TestRisk(t *testing.T) {
	disk := []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}
	tests := []struct {
		name string
		spec api.DaemonSpec
		want api.Risk
	}{
		{"its device is wiped", api.DaemonSpec{OnRemoval: api.DeletionWipe, Devices: disk, State: api.WantPrepared}, api.RiskData},
		{"its device is kept", api.DaemonSpec{OnRemoval: api.DeletionRetain, Devices: disk, State: api.WantRunning}, api.RiskRedundancy},
		{"it has none", api.DaemonSpec{OnRemoval: api.DeletionWipe, State: api.WantRunning}, api.RiskRedundancy},
		{"it does not run", api.DaemonSpec{OnRemoval: api.DeletionRetain, State: api.WantStopped}, api.RiskNone},
	}
	for _, tt := range tests {
		if got := engine.RiskOfRemoval(&api.Daemon{Spec: tt.spec}); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
	for _, risk := range []api.Risk{"", api.RiskNone, api.RiskRestart, api.RiskRedundancy, api.RiskData} {
		if engine.HigherRisk(risk, api.RiskData) != api.RiskData || engine.HigherRisk(api.RiskRestart, risk) == api.RiskNone {
			t.Errorf("%q is taken for a higher risk than it is", risk)
		}
	}
}

func volumeIn(state api.ResourceState) *api.Volume {
	v := volumeOf("v")
	v.Status.State = state
	return v
}

// TestProject_commandsOfAgents: a command that an agent carries out is a step like any other, unless the agent is silent.
func TestProject_commandsOfAgents(t *testing.T) {
	type made struct{ Volume bool }
	p := planner{
		plan: func(v *engine.View) *engine.Plan {
			if v.System.(made).Volume {
				return &engine.Plan{Resources: []engine.ResourceChange{{Resource: volumeIn(api.ResourceOnline)}}}
			}
			return &engine.Plan{
				Resources: []engine.ResourceChange{{Resource: volumeIn(api.ResourceCreating)}},
				Commands:  []engine.Command{{Verb: "make", Object: "v", Daemon: "d", Risk: api.RiskData}},
			}
		},
		foresee: func(before, _ *engine.View, commands []engine.Command) any {
			return made{before.System.(made).Volume || len(commands) > 0}
		},
	}
	v := viewOf("h1")
	v.System, v.Daemons = made{}, []api.Daemon{daemonOn("h1", "d", api.WantRunning)}
	v.Daemons[0].Status.State = api.DaemonRunning
	v.Resources = []api.Resource{volumeOf("v")}
	got := engine.Project(p, v, time.Now())
	if len(got.Steps) != 1 || len(got.Open) != 0 || got.Risk() != api.RiskData || got.Last.Resources[0].Resource.Common().State != api.ResourceOnline {
		t.Errorf("%d steps, open %q, risk %s, last %+v", len(got.Steps), got.Open, got.Risk(), got.Last)
	}
	if v.Resources[0].Common().State != "" {
		t.Error("the view that was given was changed")
	}
	v.Hosts[0].Status.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: metav1.ConditionFalse}}
	want := []string{`"make" of v is not run: the agent of host h1, which must carry it out, is disconnected`}
	if got := engine.Project(p, v, time.Now()); !slices.Equal(got.Open, want) {
		t.Errorf("open %q, want %q", got.Open, want)
	}
}
