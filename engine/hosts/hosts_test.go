package hosts_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// planner answers for one cluster.
type planner struct {
	plan   engine.Plan
	of     func(*engine.View) engine.Plan // instead of plan
	view   engine.View
	errors []engine.NodeError
	err    error
}

func (p *planner) Suppose(_ context.Context, _ types.NamespacedName, change func(*engine.View)) (*engine.View, *engine.Plan, error) {
	v := p.view
	v.Cluster, v.Errors = &api.StorageCluster{Spec: api.StorageClusterSpec{Type: sim.ToyType}}, p.errors
	if change != nil {
		change(&v)
	}
	if p.of != nil {
		p.plan = p.of(&v)
	}
	return &v, &p.plan, p.err
}

// world has one cluster, with a daemon on the host h1.
func world(t *testing.T) *sim.World {
	t.Helper()
	w := sim.NewWorld()
	must(t, w.AddHost(t.Context(), "h1", nil))
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "t"}, Spec: api.StorageClusterSpec{Type: sim.ToyType}}
	must(t, w.Create(t.Context(), c))
	must(t, w.PutDaemon(t.Context(), c, engine.DaemonChange{New: true, Daemon: api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: api.DaemonSpec{Host: "h1", State: api.WantRunning},
	}}))
	return w
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newAction(kind, host string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", CreationTimestamp: metav1.Now()},
		Spec:       api.ActionSpec{Kind: kind, Host: host, Target: "host/" + host},
	}
}

func handlers(w *sim.World, p hosts.Planner, guards ...hosts.Guard) map[string]action.Handler {
	all := map[string]action.Handler{}
	for _, h := range hosts.Handlers(hosts.Config{Store: w.Memory, Planners: map[api.StorageType]hosts.Planner{sim.ToyType: p}, Guards: guards}) {
		all[h.Kind().Name] = h
	}
	return all
}

func TestCheck(t *testing.T) {
	w := world(t)
	decision := func(object string, v api.Verdict) *planner {
		return &planner{plan: engine.Plan{Decisions: []api.Decision{{Object: object, Verdict: v, Message: "the last copy is there"}}}}
	}
	wrong := newAction(hosts.Drain, "h1")
	wrong.Spec.Target = "host/h2"
	old := newAction(hosts.Drain, "h1")
	old.CreationTimestamp = metav1.NewTime(old.CreationTimestamp.Add(-1e12))
	for name, tt := range map[string]struct {
		planner hosts.Planner
		action  *api.Action
		refused bool
		err     string
	}{
		"fine":                   {planner: &planner{}, action: newAction(hosts.Drain, "h1")},
		"another host's refusal": {planner: decision("host/h2", api.VerdictRefuse), action: newAction(hosts.Drain, "h1")},
		"a wait is no refusal":   {planner: decision("host/h1", api.VerdictWait), action: newAction(hosts.Drain, "h1")},
		"refused":                {planner: decision("host/h1", api.VerdictRefuse), action: newAction(hosts.EnterMaintenance, "h1"), refused: true, err: "cluster t: the last copy is there"},
		"no such host":           {planner: &planner{}, action: newAction(hosts.Drain, "h9"), refused: true, err: "host h9 does not exist"},
		"target and host differ": {planner: &planner{}, action: wrong, refused: true, err: "spec.target must be host/NAME"},
		"joined anew":            {planner: &planner{}, action: old, refused: true, err: "was replaced by another machine of its name"},
		"no heir":                {planner: &planner{}, action: newAction(hosts.Replace, "h1"), refused: true, err: "does not exist"},
		"storage does not answer": {
			planner: &planner{errors: []engine.NodeError{{Message: "no answer"}}}, action: newAction(hosts.Drain, "h1"), err: "state of cluster t unknown: no answer",
		},
		"the store fails":             {planner: &planner{err: errors.New("no quorum")}, action: newAction(hosts.Drain, "h1"), err: "no quorum"},
		"a type that nobody can plan": {planner: nil, action: newAction(hosts.Drain, "h1")},
	} {
		t.Run(name, func(t *testing.T) {
			err := handlers(w, tt.planner)[tt.action.Spec.Kind].Check(t.Context(), tt.action)
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one that says %q", err, tt.err)
			}
			if errors.Is(err, action.ErrRefused) != tt.refused {
				t.Errorf("refused: %v, want %t", err, tt.refused)
			}
		})
	}
}

func TestStep_ofAnotherVersion(t *testing.T) {
	h := handlers(world(t), &planner{})[hosts.Drain]
	if _, err := h.Step(t.Context(), newAction(hosts.Drain, "h1"), "dance"); !errors.Is(err, action.ErrRefused) {
		t.Errorf("an unknown step: %v", err)
	}
}

func TestCheck_servers(t *testing.T) {
	for name, tt := range map[string]struct {
		others []metav1.ConditionStatus
		err    string
	}{
		"the only one":       {nil, "is the only server"},
		"two others":         {[]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionTrue}, ""},
		"one of two is dead": {[]metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse}, "of the 2 other servers s1 do not answer"},
		"one other":          {[]metav1.ConditionStatus{metav1.ConditionTrue}, ""},
		"the other is dead":  {[]metav1.ConditionStatus{metav1.ConditionFalse}, "needs a majority"},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(t)
			server := func(h *api.Host) { h.Labels = map[string]string{api.LabelServer: "true"} }
			must(t, w.PutHost(t.Context(), "h1", server))
			for i, heard := range tt.others {
				other := fmt.Sprintf("s%d", i)
				must(t, w.AddHost(t.Context(), other, nil))
				must(t, w.PutHost(t.Context(), other, server))
				must(t, w.SilenceAgent(t.Context(), other, heard == metav1.ConditionFalse))
			}
			err := handlers(w, &planner{})[hosts.Remove].Check(t.Context(), newAction(hosts.Remove, "h1"))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one that says %q", err, tt.err)
			}
		})
	}
}

// TestUndo_leavesTheModeOfOthers: somebody set another mode while the action went on.
func TestUndo_leavesTheModeOfOthers(t *testing.T) {
	w := world(t)
	h, a := handlers(w, &planner{})[hosts.EnterMaintenance], newAction(hosts.EnterMaintenance, "h1")
	_, err := h.Step(t.Context(), a, "tell-storage")
	must(t, err)
	must(t, w.PutHost(t.Context(), "h1", func(h *api.Host) { h.Spec.Mode = api.HostDrain }))
	_, err = h.Undo(t.Context(), a, "tell-storage")
	must(t, err)
	v, err := w.Host(t.Context(), "h1")
	must(t, err)
	if v.Host.ModeOf() != api.HostDrain {
		t.Errorf("mode %s: the action took back what somebody else had set", v.Host.ModeOf())
	}
}

// TestStep_refusedOnTheWay: what the cluster refuses when maintenance is half-way ends it, and it is undone.
func TestStep_refusedOnTheWay(t *testing.T) {
	w := world(t)
	p := &planner{}
	h, a := handlers(w, p)[hosts.EnterMaintenance], newAction(hosts.EnterMaintenance, "h1")
	_, err := h.Step(t.Context(), a, "tell-storage")
	must(t, err)
	p.plan.Decisions = []api.Decision{{Object: "host/h1", Verdict: api.VerdictRefuse, Message: "a disk failed elsewhere"}}
	if _, err := h.Step(t.Context(), a, "stop-daemons"); !errors.Is(err, action.ErrRefused) {
		t.Errorf("error %v", err)
	}
	_, err = h.Undo(t.Context(), a, "tell-storage")
	must(t, err)
	if v, err := w.Host(t.Context(), "h1"); err != nil || v.Host.ModeOf() != api.HostActive {
		t.Errorf("mode %s after the undoing (%v)", v.Host.ModeOf(), err)
	}
}

// TestExitMaintenance_empty: of a host without daemons it is not said that they run.
func TestExitMaintenance_empty(t *testing.T) {
	w := world(t)
	must(t, w.AddHost(t.Context(), "h2", nil))
	h, a := handlers(w, &planner{})[hosts.ExitMaintenance], newAction(hosts.ExitMaintenance, "h2")
	steps := h.Kind().Steps
	p, err := h.Step(t.Context(), a, steps[len(steps)-1])
	if err != nil || !p.Done || p.Message != "host h2 is active: it has no daemons" {
		t.Errorf("%+v %v", p, err)
	}
}

// TestUndo: a host that was given back is stopped again, and one that is being emptied is filled again, by who cancels that and by no
// clock. Maintenance, which a person waits beside, ends with its time.
func TestUndo(t *testing.T) {
	for _, tt := range []struct {
		kind, reason string
		before, want api.HostMode
		message      string
	}{
		{hosts.ExitMaintenance, action.ReasonCancelled, api.HostMaintenance, api.HostMaintenance, "host h1 is in mode Maintenance"},
		{hosts.ExitMaintenance, action.ReasonTimedOut, api.HostMaintenance, api.HostActive, "host h1 stays in mode Active"},
		{hosts.EnterMaintenance, action.ReasonTimedOut, api.HostActive, api.HostActive, "host h1 is in mode Active"},
		{hosts.Drain, action.ReasonCancelled, api.HostActive, api.HostActive, "host h1 is in mode Active"},
		{hosts.Drain, action.ReasonTimedOut, api.HostActive, api.HostDrain, "run the same command again to continue, or 'holdfast host maintenance exit h1'"},
		{hosts.Remove, action.ReasonTimedOut, api.HostActive, api.HostDrain, "host h1 stays in mode Drain"},
		{hosts.Remove, action.ReasonRefused, api.HostActive, api.HostDrain, "host h1 stays in mode Drain"},
		{hosts.Replace, action.ReasonTimedOut, api.HostActive, api.HostDrain, "host h1 stays in mode Drain"},
	} {
		t.Run(tt.kind+" "+tt.reason, func(t *testing.T) {
			w := world(t)
			must(t, w.PutHost(t.Context(), "h1", func(h *api.Host) { h.Spec.Mode = tt.before }))
			h, a := handlers(w, &planner{})[tt.kind], newAction(tt.kind, "h1")
			_, err := h.Step(t.Context(), a, "tell-storage")
			must(t, err)
			a.Status.Conditions = []metav1.Condition{{Type: api.ActionEffective, Status: metav1.ConditionFalse, Reason: tt.reason}}
			p, err := h.Undo(t.Context(), a, "tell-storage")
			must(t, err)
			v, err := w.Host(t.Context(), "h1")
			must(t, err)
			if v.Host.ModeOf() != tt.want || !p.Done || !strings.Contains(p.Message, tt.message) {
				t.Errorf("mode %s, %+v; want %s, %q", v.Host.ModeOf(), p, tt.want, tt.message)
			}
		})
	}
}

// TestStep_heardAgain: a host that was said to be gone and is heard while daemons are on it is not emptied, at whatever step, and its mode is
// given back. Its disks stay kept where what was moved or deleted still takes its daemons away, and while it stays drained.
func TestStep_heardAgain(t *testing.T) {
	for _, kind := range []string{hosts.Remove, hosts.Replace} {
		for begun, name := range handlers(world(t), &planner{})[kind].Kind().Steps {
			for _, before := range []api.HostMode{api.HostActive, api.HostDrain} {
				t.Run(fmt.Sprintf("%s %s %s", kind, name, before), func(t *testing.T) {
					w := world(t)
					must(t, w.PutHost(t.Context(), "h1", func(h *api.Host) { h.Spec.Mode = before }))
					must(t, w.SilenceAgent(t.Context(), "h1", true))
					h, a := handlers(w, &planner{})[kind], saidGone(kind)
					_, err := h.Step(t.Context(), a, "tell-storage")
					must(t, err)
					must(t, w.SilenceAgent(t.Context(), "h1", false))
					if _, err := h.Step(t.Context(), a, name); !errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), "--gone refused: the agent of host h1 is connected") ||
						!strings.Contains(err.Error(), "run 'holdfast host remove h1' without --gone") {
						t.Errorf("step %s: %v", name, err)
					}
					v, kept := back(t, w, h, a, begun)
					if want := before == api.HostDrain || begun > 0 && kind == hosts.Replace || begun > 1; v.Host.ModeOf() != before || kept != want {
						t.Errorf("after the undoing: mode %s, its disks kept: %t", v.Host.ModeOf(), kept)
					}
				})
			}
		}
	}
}

// back undoes the steps of an action that was refused at one of them.
func back(t *testing.T, w *sim.World, h action.Handler, a *api.Action, begun int) (v *engine.HostView, kept bool) {
	t.Helper()
	a.Status.Conditions = []metav1.Condition{{Type: api.ActionEffective, Status: metav1.ConditionFalse, Reason: action.ReasonRefused}}
	for i, name := range h.Kind().Steps {
		a.Status.Steps = append(a.Status.Steps, api.ActionStep{Name: name, State: api.StepPending})
		if i <= begun {
			a.Status.Steps[i].State = api.StepUndoing
		}
	}
	message := ""
	for i := begun; i >= 0; i-- {
		p, err := h.Undo(t.Context(), a, h.Kind().Steps[i])
		must(t, err)
		message = p.Message
	}
	v, err := w.Host(t.Context(), "h1")
	must(t, err)
	if kept = engine.DisksKept(v.Host); kept != strings.Contains(message, "its disks are kept until 'holdfast host drain h1'") {
		t.Errorf("it says %q; its disks are kept: %t", message, kept)
	}
	return v, kept
}

func saidGone(kind string) *api.Action {
	a := newAction(kind, "h1")
	a.Spec.Parameters = map[string]api.ActionParameter{hosts.ParamGone: hosts.Yes, hosts.ParamNodes: hosts.Delete}
	return a
}

// TestStep_heardAtTheEnd: when its last daemon was let go, a heartbeat of a host ends nothing, and is waited for to be the last one. When it was found
// empty none holds anything up.
func TestStep_heardAtTheEnd(t *testing.T) {
	for _, kind := range []string{hosts.Remove, hosts.Replace} {
		w := sim.NewWorld()
		must(t, w.AddHost(t.Context(), "h1", nil))
		is := func(status metav1.ConditionStatus, since time.Duration) {
			must(t, w.ChangeHost(t.Context(), "h1", func(s *api.HostStatus) {
				s.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
			}))
		}
		heard := func(since time.Duration) { is(metav1.ConditionTrue, since) }
		heard(time.Second)
		h, a := handlers(w, &planner{})[kind], saidGone(kind)
		if p, err := h.Step(t.Context(), a, "empty-host"); err != nil || p.Done || p.Recheck == 0 || !strings.Contains(p.WaitsFor, "which reconnected although") {
			t.Errorf("%s: heard for a moment: %+v, %v", kind, p, err)
		}
		heard(3 * time.Minute)
		if p, err := h.Step(t.Context(), a, "empty-host"); !errors.Is(err, action.ErrRefused) {
			t.Errorf("%s: heard for minutes: %+v, %v", kind, p, err)
		}
		is(metav1.ConditionFalse, time.Minute) // its agent may be back by now, and have cleared away the last of its daemons
		if p, err := h.Step(t.Context(), a, "empty-host"); err != nil || p.Done || p.Recheck == 0 || !strings.Contains(p.WaitsFor, "to stay disconnected until") {
			t.Errorf("%s: disconnected for a minute: %+v, %v", kind, p, err)
		}
		is(metav1.ConditionFalse, 3*time.Minute)
		if p, err := h.Step(t.Context(), a, "empty-host"); err != nil || !p.Done {
			t.Errorf("%s: silent again: %+v, %v", kind, p, err)
		}
		heard(3 * time.Minute)
		steps := h.Kind().Steps
		for _, name := range steps[slices.Index(steps, "empty-host")+1:] {
			if p, err := h.Step(t.Context(), a, name); err != nil || !p.Done {
				t.Errorf("%s: heard when it was found empty: step %s: %+v, %v", kind, name, p, err)
			}
		}
	}
}

// TestStep_hostDead: a host that is said to be gone counts as dead when it is silent for as long as is set, and as back when it is heard for that.
func TestStep_hostDead(t *testing.T) {
	w := sim.NewWorld()
	must(t, w.AddHost(t.Context(), "h1", nil))
	for name, set := range map[string]waits.Waits{"by default": {}, "set lower": {HostDead: 20 * time.Second}} {
		dead := set.OrDefault().HostDead
		all := hosts.Handlers(hosts.Config{Store: w.Memory, Waits: set})
		h := all[slices.IndexFunc(all, func(h action.Handler) bool { return h.Kind().Name == hosts.Remove })]
		step := func(status metav1.ConditionStatus, since time.Duration) (action.Progress, error) {
			must(t, w.ChangeHost(t.Context(), "h1", func(s *api.HostStatus) {
				s.Conditions = []metav1.Condition{{Type: api.HostAgentConnected, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Add(-since))}}
			}))
			return h.Step(t.Context(), saidGone(hosts.Remove), "empty-host")
		}
		if p, err := step(metav1.ConditionFalse, dead-10*time.Second); err != nil || p.Done {
			t.Errorf("%s: disconnected for less: %+v, %v", name, p, err)
		}
		if p, err := step(metav1.ConditionFalse, dead+time.Second); err != nil || !p.Done {
			t.Errorf("%s: disconnected for as long: %+v, %v", name, p, err)
		}
		if p, err := step(metav1.ConditionTrue, dead-10*time.Second); err != nil || p.Done {
			t.Errorf("%s: heard for less: %+v, %v", name, p, err)
		}
		if p, err := step(metav1.ConditionTrue, dead+time.Second); !errors.Is(err, action.ErrRefused) {
			t.Errorf("%s: heard for as long: %+v, %v", name, p, err)
		}
	}
}

// TestStep_keepsDisks: the disks of a host are kept from the moment that it is drained because it is said to be gone, and as long as that is all that
// was said: neither its time nor anything but an action that empties it otherwise ends that.
func TestStep_keepsDisks(t *testing.T) {
	w := world(t)
	must(t, w.SilenceAgent(t.Context(), "h1", true))
	is := func(when string, want bool) {
		t.Helper()
		if v, err := w.Host(t.Context(), "h1"); err != nil || engine.DisksKept(v.Host) != want || v.Host.ModeOf() != api.HostDrain {
			t.Errorf("%s: %+v, %v", when, v.Host, err)
		}
	}
	a := saidGone(hosts.Remove)
	h := handlers(w, &planner{})[hosts.Remove]
	_, err := h.Step(t.Context(), a, "tell-storage")
	must(t, err)
	is("while it is said to be gone", true)
	a.Status.Conditions = []metav1.Condition{{Type: api.ActionEffective, Status: metav1.ConditionFalse, Reason: action.ReasonTimedOut}}
	_, err = h.Undo(t.Context(), a, "tell-storage")
	must(t, err)
	is("after its time", true)
	must(t, w.SilenceAgent(t.Context(), "h1", false))
	_, err = h.Step(t.Context(), newAction(hosts.Remove, "h1"), "tell-storage")
	must(t, err)
	is("when it is removed otherwise", false)
}

// TestStep_guardedAtTheEnd: what would break when the host is to be deleted, after it was emptied for days, is waited for.
func TestStep_guardedAtTheEnd(t *testing.T) {
	w := sim.NewWorld()
	must(t, w.AddHost(t.Context(), "h1", nil))
	reasons := []hosts.Obstacle{{Wait: "etcd has no leader"}}
	h := handlers(w, &planner{}, func(context.Context, *api.Host) ([]hosts.Obstacle, error) { return reasons, nil })[hosts.Remove]
	a := newAction(hosts.Remove, "h1")
	p, err := h.Step(t.Context(), a, "delete-host")
	must(t, err)
	if p.Done || !strings.Contains(p.WaitsFor, "etcd has no leader") {
		t.Errorf("while it would break something: %+v", p)
	}
	reasons = nil
	p, err = h.Step(t.Context(), a, "delete-host")
	must(t, err)
	if _, err := w.Host(t.Context(), "h1"); !p.Done || !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("when it would not: %+v, %v", p, err)
	}
}

func TestAcceptAgents(t *testing.T) {
	w := world(t)
	must(t, w.AddHost(t.Context(), "h2", nil))
	for name, tt := range map[string]struct{ kind, host, target, err string }{
		"fine":            {"daemon.restart", "h1", "daemon/d", ""},
		"another kind":    {"other.kind", "h1", "other/x", ""},
		"a host gone":     {"daemon.restart", "h9", "daemon/d", ""},
		"no daemon":       {"daemon.restart", "h1", "host/h1", "it must be daemon/NAME"},
		"no such daemon":  {"daemon.restart", "h1", "daemon/x", "daemon x of namespace default does not exist"},
		"elsewhere":       {"daemon.restart", "h2", "daemon/d", "daemon d of namespace default does not exist on host h2"},
		"wanted to stand": {"daemon.restart", "h1", "daemon/stopped", "is Stopped, not Running: see 'holdfast why stopped'; if it is held back, start it with 'holdfast daemon start stopped'"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "wanted to stand" {
				c, err := w.Cluster(t.Context(), types.NamespacedName{Namespace: "default", Name: "t"})
				must(t, err)
				must(t, w.PutDaemon(t.Context(), c, engine.DaemonChange{New: true, Daemon: api.Daemon{
					ObjectMeta: metav1.ObjectMeta{Name: "stopped"}, Spec: api.DaemonSpec{Host: "h1", State: api.WantStopped},
				}}))
			}
			a := newAction(tt.kind, tt.host)
			a.Namespace, a.Spec.Target = "default", tt.target
			err := hosts.AcceptAgents(hosts.Config{Store: w.Memory})(t.Context(), a)
			if (err == nil) != (tt.err == "") || err != nil && (!strings.Contains(err.Error(), tt.err) || !errors.Is(err, action.ErrRefused)) {
				t.Errorf("error %v, want one that says %q", err, tt.err)
			}
		})
	}
}

// TestStep_offline: of a machine that is said to be off it is taken for granted that its daemons stopped, and nothing else: what the
// storage system has yet to be told is waited for.
func TestStep_offline(t *testing.T) {
	w := world(t)
	must(t, w.SilenceAgent(t.Context(), "h1", true))
	told := false
	p := &planner{view: engine.View{Daemons: []api.Daemon{{Spec: api.DaemonSpec{Host: "h1", State: api.WantRunning}}}}}
	p.of = func(v *engine.View) engine.Plan {
		switch d := v.Daemons[0]; {
		case d.Spec.State != api.WantStopped || d.Status.State != api.DaemonStopped:
			return engine.Plan{Decisions: []api.Decision{{Object: "host/h1", Verdict: api.VerdictWait, Message: "its agent is not heard"}}}
		case !told:
			return engine.Plan{Decisions: []api.Decision{{Object: "host/h1", Verdict: api.VerdictWait, Message: "the flag noout is being set"}}}
		}
		return engine.Plan{}
	}
	a := newAction(hosts.EnterMaintenance, "h1")
	a.Spec.Parameters = map[string]api.ActionParameter{hosts.ParamOffline: hosts.Yes}
	h := handlers(w, p)[a.Spec.Kind]
	if got, err := h.Step(t.Context(), a, "stop-daemons"); err != nil || got.Done || got.WaitsFor != "cluster t: the flag noout is being set" {
		t.Errorf("before it is told: %+v, %v", got, err)
	}
	told = true
	if got, err := h.Step(t.Context(), a, "stop-daemons"); err != nil || !got.Done || !strings.Contains(got.Message, "Not confirmed: that d stopped") {
		t.Errorf("when it is told: %+v, %v", got, err)
	}
	if p.view.Daemons[0].Spec.State != api.WantRunning {
		t.Error("the view itself was changed")
	}
}
