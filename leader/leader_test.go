package leader_test

import (
	"testing"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/leader"
)

// acting is a storage system with a kind of Actions of its own.
type acting struct{ *sim.Toy }

func (acting) Handlers(engine.Store) []action.Handler {
	return []action.Handler{&actiontest.Handler{K: action.Kind{Name: "toy.heal", Executor: api.ByLeader}}}
}

// TestKinds: the leader carries out actions on hosts, those of the home, and those that drivers
// hand out.
func TestKinds(t *testing.T) {
	c := leader.Config{
		Drivers:  []engine.Driver{sim.NewToy(), acting{sim.NewToy()}},
		Handlers: []action.Handler{&actiontest.Handler{K: action.Kind{Name: "home.own", Executor: api.ByLeader}}},
		Agents:   []action.Kind{{Name: "daemon.poke"}},
	}
	kinds := c.Kinds()
	for _, name := range []string{"toy.heal", "home.own", "daemon.poke", hosts.Drain} {
		if _, ok := kinds[name]; !ok {
			t.Errorf("%s is not known", name)
		}
	}
}
