package hosts_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// servers are h1, and with more than one h2, without any storage on them.
func servers(t *testing.T, names ...string) *sim.World {
	w := sim.NewWorld()
	for _, name := range names {
		must(t, w.AddHost(t.Context(), name, nil))
		must(t, w.PutHost(t.Context(), name, func(h *api.Host) { h.Labels = map[string]string{api.LabelServer: "true"} }))
	}
	return w
}

// TestMaintenance_ofServers: what ends in a machine that may be switched off asks about the control plane, too: refused where that stays without a
// quorum, waited for where it does not, and told where there is no other server.
func TestMaintenance_ofServers(t *testing.T) {
	passes, stays := hosts.Obstacle{Wait: "its seat to be taken"}, hosts.Obstacle{Wait: "its seat to be taken", Refusal: "no quorum would be left"}
	for name, tt := range map[string]struct {
		hosts                []string
		obstacles            []hosts.Obstacle
		refused, waits, adds string
		drainedSays          string
	}{
		"nothing is against it": {hosts: []string{"h1", "h2"}, drainedSays: "host h1 is drained"},
		"a standby takes over":  {hosts: []string{"h1", "h2"}, obstacles: []hosts.Obstacle{passes}, waits: "its seat to be taken", drainedSays: "Do not power it off yet: waiting for its seat to be taken"},
		"nobody takes over":     {hosts: []string{"h1", "h2"}, obstacles: []hosts.Obstacle{stays}, refused: "no quorum would be left", waits: "its seat to be taken", drainedSays: "Do not power it off yet"},
		"it is the only server": {hosts: []string{"h1"}, obstacles: []hosts.Obstacle{stays}, adds: "while it is off, you cannot change anything", drainedSays: "It is the only server: while it is off"},
	} {
		t.Run(name, func(t *testing.T) {
			all := handlers(servers(t, tt.hosts...), &planner{}, func(context.Context, *api.Host) ([]hosts.Obstacle, error) { return tt.obstacles, nil })
			enter, drain := all[hosts.EnterMaintenance], all[hosts.Drain]
			err := enter.Check(t.Context(), newAction(hosts.EnterMaintenance, "h1"))
			if (err == nil) != (tt.refused == "") || err != nil && (!strings.Contains(err.Error(), tt.refused) || !errors.Is(err, action.ErrRefused)) {
				t.Errorf("accepted: %v, want %q", err, tt.refused)
			}
			p, err := enter.Step(t.Context(), newAction(hosts.EnterMaintenance, "h1"), "stop-daemons")
			must(t, err)
			if p.Done != (tt.waits == "") || p.WaitsFor != tt.waits || !strings.Contains(p.Message, tt.adds) {
				t.Errorf("its end: %+v", p)
			}
			must(t, drain.Check(t.Context(), newAction(hosts.Drain, "h1")))
			p, err = drain.Step(t.Context(), newAction(hosts.Drain, "h1"), "move-daemons")
			must(t, err)
			if !p.Done || !strings.Contains(p.Message, tt.drainedSays) {
				t.Errorf("drained: %+v", p)
			}
		})
	}
}

// TestMaintenance_unknownQuorum: that nobody can say how the members are is no reason to end, and none to be done.
func TestMaintenance_unknownQuorum(t *testing.T) {
	h := handlers(servers(t, "h1", "h2"), &planner{}, func(context.Context, *api.Host) ([]hosts.Obstacle, error) { return nil, errors.New("no leader") })[hosts.EnterMaintenance]
	if p, err := h.Step(t.Context(), newAction(hosts.EnterMaintenance, "h1"), "stop-daemons"); err == nil || errors.Is(err, action.ErrRefused) || p.Done && err == nil {
		t.Errorf("got %+v, %v", p, err)
	}
}
