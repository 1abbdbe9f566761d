package leader

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/hosts"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// Store is what a platform gives to the leader.
type Store interface {
	engine.Store
	// WatchAgents keeps the condition AgentConnected of all Hosts until ctx ends.
	WatchAgents(ctx context.Context, silence time.Duration) error
	// ClearPlans removes old Plans until ctx ends.
	ClearPlans(ctx context.Context) error
	// ReportAges says of each host whose agent was ever heard how long ago that was.
	ReportAges() []time.Duration
	// SilentAgents counts the hosts whose agent is silent.
	SilentAgents() int
	// ActionStates counts the actions that there are, by their state.
	ActionStates() map[api.ActionState]int
}

// Config is what a home leads with.
type Config struct {
	// Store is where the engine reads and writes, and Actions the same store's face for actions.
	Store   Store
	Actions action.Store
	// Drivers are the storage systems.
	Drivers []engine.Driver
	// Handlers carry out the actions of the home itself, beside those on hosts and those of the
	// drivers.
	Handlers []action.Handler
	// Agents are the kinds of actions that agents carry out.
	Agents []action.Kind
	// Guards say what besides storage would break if a host were switched off.
	Guards []hosts.Guard
	// Name is that of this leader, for reports.
	Name string
	// Waits are the waits that people set. Zero means the defaults.
	Waits waits.Waits
	// Metrics counts what is done. Nil counts nothing.
	Metrics *Metrics
	Log     *slog.Logger
}

// Run leads until ctx ends, or until a part of it cannot go on. It returns when all that it began
// has come to rest.
func Run(ctx context.Context, c Config) error {
	if c.Metrics == nil {
		c.Metrics = &Metrics{}
	}
	defer c.Metrics.leads(c.Store)()
	managers, planners := c.orchestrators()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Store.WatchAgents(ctx, c.Waits.OrDefault().AgentSilent) })
	group.Go(func() error { return c.Store.ClearPlans(ctx) })
	group.Go(func() error { return c.runActions(ctx, planners) })
	group.Go(func() error {
		return engine.Run(ctx, engine.Config{Store: c.Store, Managers: managers, Stats: &c.Metrics.stats, Log: c.Log})
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("while leading: %w", err)
	}
	return nil
}

// orchestrators are one for each driver; actions on hosts ask them what a cluster would plan.
func (c Config) orchestrators() ([]engine.ServiceManager, map[api.StorageType]hosts.Planner) {
	var managers []engine.ServiceManager
	planners, places := map[api.StorageType]hosts.Planner{}, &engine.Places{}
	for _, driver := range c.Drivers {
		o := &engine.Orchestrator{Store: c.Store, Driver: driver, Leader: c.Name, Places: places, Log: c.Log}
		managers = append(managers, o)
		planners[driver.Type()] = o
	}
	return managers, planners
}

// runActions looks after all actions until ctx ends.
func (c Config) runActions(ctx context.Context, planners map[api.StorageType]hosts.Planner) error {
	h := hosts.Config{Store: c.Store, Planners: planners, Guards: c.Guards, Waits: c.Waits}
	r := action.Runner{
		Store: c.Actions, Handlers: c.handlers(h), Agents: c.Agents,
		Accept: hosts.AcceptAgents(h), Ask: hosts.AskAgents(h), Waits: c.Waits,
		Stats: &c.Metrics.actions, Log: c.Log.With("part", "actions"),
		OnStuck: func(ctx context.Context, a *api.Action, why error) error {
			return engine.TellStuck(ctx, c.Store, a, why, time.Now())
		},
	}
	return r.Run(ctx)
}

// handlers carry out all kinds of actions that the leader carries out itself.
func (c Config) handlers(h hosts.Config) []action.Handler {
	all := slices.Concat(hosts.Handlers(h), c.Handlers)
	for _, driver := range c.Drivers {
		if acts, ok := driver.(engine.ActionDriver); ok {
			all = append(all, acts.Handlers(c.Store)...)
		}
	}
	return all
}

// Kinds are all kinds of actions that a leader with this Config carries out or hands to agents, by
// name. It needs no Store.
func (c Config) Kinds() map[string]action.Kind {
	r := action.Runner{Handlers: c.handlers(hosts.Config{}), Agents: c.Agents}
	return r.Kinds()
}
