package hosts_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// restartOf is the restart of the daemon d of world.
func restartOf(parameters map[string]api.ActionParameter) *api.Action {
	a := newAction(api.ActionDaemonRestart, "h1")
	a.Namespace, a.Spec.Target, a.Spec.Cluster, a.Spec.Parameters = "default", "daemon/d", "t", parameters
	return a
}

// running is a world whose daemon d is in a state.
func running(t *testing.T, state api.DaemonState) *sim.World {
	t.Helper()
	w := world(t)
	v, err := w.View(t.Context(), types.NamespacedName{Namespace: "default", Name: "t"})
	must(t, err)
	d := v.Daemons[0]
	d.Status.State = state
	must(t, w.UpdateStatus(t.Context(), &d))
	return w
}

// saying is a planner that says these things of the restart of d, one after the other, and the last one for ever. It fails the test
// when it is asked of another one, or without being asked.
func saying(t *testing.T, words ...string) *planner {
	return &planner{of: func(v *engine.View) (p engine.Plan) {
		if v.Restart != "d" {
			t.Errorf("the restart of %q is asked for", v.Restart)
		}
		verdict, message, said := strings.Cut(words[0], ": ")
		if len(words) > 1 {
			words = words[1:]
		}
		p.Decide(api.VerdictRefuse, api.ReasonUnknown, "host/h1", "something else")
		if said {
			p.Decide(api.Verdict(verdict), api.ReasonUnknown, engine.RestartObject("d"), "%s", message)
		}
		return p
	}}
}

func other(kind string, state api.ActionState, age time.Duration, cluster, host string) func() api.Action {
	return func() api.Action {
		return api.Action{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other", UID: "other", CreationTimestamp: metav1.NewTime(time.Now().Add(-age))},
			Spec:       api.ActionSpec{Kind: kind, Cluster: cluster, Host: host}, Status: api.ActionStatus{State: state},
		}
	}
}

// What its storage system says of a restart counts when it is accepted, and again when it is its turn.
func TestAcceptAgents_storage(t *testing.T) {
	const refuses, waits = "Refuse: it is the last copy", "Wait: copies are being made"
	forced := map[string]api.ActionParameter{hosts.ParamForce: hosts.Yes}
	for name, tt := range map[string]struct {
		state      api.DaemonState
		words      []string
		parameters map[string]api.ActionParameter
		underWay   func() api.Action
		err        error
		refused    string // why it is not accepted
		waitsFor   string // what it waits for in its turn
	}{
		"nothing is against it":      {state: api.DaemonRunning, words: []string{""}},
		"it is refused":              {state: api.DaemonRunning, words: []string{refuses}, refused: "toy t: it is the last copy; to restart it in any case: 'holdfast daemon restart d --force'", waitsFor: "toy t to allow it: it is the last copy; to restart it in any case: 'holdfast daemon restart d --force'"},
		"it would do for a moment":   {state: api.DaemonRunning, words: []string{refuses, ""}},
		"something else passes":      {state: api.DaemonRunning, words: []string{waits}, waitsFor: "toy t to allow it: copies are being made; to restart it in any case: 'holdfast"},
		"it does not run":            {state: api.DaemonBackOff, words: []string{refuses}},
		"nobody knows of it":         {words: []string{refuses}},
		"it is wanted nonetheless":   {state: api.DaemonRunning, words: []string{refuses}, parameters: forced},
		"a word that is none":        {state: api.DaemonRunning, words: []string{""}, parameters: map[string]api.ActionParameter{hosts.ParamForce: "yes"}, refused: `the parameter "force" is "yes", but must be "Yes"`},
		"nobody can be asked":        {state: api.DaemonRunning, words: []string{""}, err: errors.New("no route to host")},
		"an older one is under way":  {state: api.DaemonRunning, words: []string{refuses}, underWay: other(api.ActionDaemonRestart, api.ActionRunning, time.Hour, "t", "h2"), waitsFor: "it is the last copy"},
		"an older one waits, too":    {state: api.DaemonRunning, words: []string{refuses}, underWay: other(api.ActionDaemonRestart, api.ActionPendingSchedule, time.Hour, "t", "h2"), refused: "it is the last copy", waitsFor: "it is the last copy"},
		"nobody has granted it":      {state: api.DaemonRunning, words: []string{refuses}, underWay: other(hosts.ExitMaintenance, api.ActionPendingApproval, time.Hour, "", "h1"), refused: "it is the last copy", waitsFor: "it is the last copy"},
		"its host is worked on soon": {state: api.DaemonRunning, words: []string{refuses}, underWay: other(hosts.ExitMaintenance, api.ActionPendingSchedule, time.Hour, "", "h1"), waitsFor: "it is the last copy"},
		"its host is worked on":      {state: api.DaemonRunning, words: []string{refuses}, underWay: other(hosts.ExitMaintenance, api.ActionRunning, time.Hour, "", "h1"), waitsFor: "it is the last copy"},
		"an older one has ended":     {state: api.DaemonRunning, words: []string{refuses}, underWay: other(api.ActionDaemonRestart, api.ActionDone, time.Hour, "t", "h2"), refused: "it is the last copy", waitsFor: "it is the last copy"},
		"a younger one is there":     {state: api.DaemonRunning, words: []string{refuses}, underWay: other(api.ActionDaemonRestart, api.ActionRunning, -time.Hour, "t", "h2"), refused: "it is the last copy", waitsFor: "it is the last copy"},
		"another host is worked on":  {state: api.DaemonRunning, words: []string{refuses}, underWay: other(hosts.Drain, api.ActionRunning, time.Hour, "", "h9"), refused: "it is the last copy", waitsFor: "it is the last copy"},
		"a step of the plan is done": {state: api.DaemonRunning, words: []string{refuses}, underWay: other(api.ActionServiceCommand, api.ActionRunning, time.Hour, "t", "h1"), refused: "it is the last copy", waitsFor: "it is the last copy"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := running(t, tt.state)
				c := func() hosts.Config {
					p := saying(t, tt.words...)
					p.view.Hosts, p.view.Daemons = []api.Host{{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}}, []api.Daemon{{Spec: api.DaemonSpec{Host: "h1"}}}
					if p.err = tt.err; tt.underWay != nil {
						p.view.Actions = []api.Action{tt.underWay()}
					}
					return hosts.Config{Store: w.Memory, Planners: map[api.StorageType]hosts.Planner{sim.ToyType: p}}
				}
				a := restartOf(tt.parameters)
				p := hosts.AcceptAgents(c())(t.Context(), a)
				if refused := errors.Is(p, action.ErrRefused); refused != (tt.refused != "") || refused && !strings.Contains(p.Error(), tt.refused) || (tt.err != nil) != (p != nil && !refused) {
					t.Errorf("when it is accepted: %v, want %q", p, tt.refused)
				}
				if len(tt.words) > 1 {
					return // what was said for a moment is not what is said later
				}
				got, err := hosts.AskAgents(c())(t.Context(), a)
				if (got == "") != (tt.waitsFor == "") || !strings.Contains(got, tt.waitsFor) || !errors.Is(err, tt.err) {
					t.Errorf("in its turn: %q, %v; want %q", got, err, tt.waitsFor)
				}
			})
		})
	}
}

// What its agent refuses goes to its agent, and nobody is asked of what is no restart.
func TestAskAgents_others(t *testing.T) {
	w := running(t, api.DaemonRunning)
	ask := hosts.AskAgents(hosts.Config{Store: w.Memory, Planners: map[api.StorageType]hosts.Planner{sim.ToyType: saying(t, "Refuse: it is the last copy")}})
	for _, change := range []func(*api.Action){
		func(a *api.Action) { a.Spec.Target = "daemon/gone" },
		func(a *api.Action) { a.Spec.Host = "h9" },
	} {
		a := restartOf(nil)
		change(a)
		if against, err := ask(context.Background(), a); against != "" || err != nil {
			t.Errorf("%+v: %q, %v", a.Spec, against, err)
		}
	}
}
