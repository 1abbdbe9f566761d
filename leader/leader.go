package leader

import (
	"context"
	"errors"
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
	// Plans are answered by the leader. Nil: none is.
	Plans Plans
	// Drivers are the storage systems.
	Drivers []engine.Driver
	// Handlers carry out the actions of the home itself, beside those on hosts and those of the
	// drivers.
	Handlers []action.Handler
	// Agents are the kinds of actions that agents carry out.
	Agents []action.Kind
	// Ready is called when the leader can answer, with what answers until Run returns. Nil: nobody asks.
	Ready func(*Asked)
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
	all := c.orchestrators()
	asked := c.asked(all)
	if c.Ready != nil {
		c.Ready(asked)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Store.WatchAgents(ctx, c.Waits.OrDefault().AgentSilent) })
	group.Go(func() error { return c.Store.ClearPlans(ctx) })
	group.Go(func() error { return c.runActions(ctx, all) })
	group.Go(func() error { return c.runEngine(ctx, all) })
	if c.Plans != nil {
		group.Go(func() error { return Propose(ctx, c.proposing(all)) })
	}
	err := group.Wait()
	asked.end()
	for _, o := range all { // the engine has closed them, and an answer to a Plan may have asked one since
		err = errors.Join(err, o.Close())
	}
	if err != nil {
		return fmt.Errorf("while leading: %w", err)
	}
	return nil
}

// orchestrators are one for each driver.
func (c Config) orchestrators() map[api.StorageType]*engine.Orchestrator {
	all, places := map[api.StorageType]*engine.Orchestrator{}, &engine.Places{}
	for _, driver := range c.Drivers {
		all[driver.Type()] = &engine.Orchestrator{Store: c.Store, Driver: driver, Leader: c.Name, Places: places, Log: c.Log}
	}
	return all
}

// runEngine orchestrates all clusters until ctx ends.
func (c Config) runEngine(ctx context.Context, all map[api.StorageType]*engine.Orchestrator) error {
	e := engine.Config{Store: c.Store, Stats: &c.Metrics.stats, Log: c.Log}
	for _, driver := range c.Drivers {
		e.Managers = append(e.Managers, all[driver.Type()])
	}
	return engine.Run(ctx, e)
}

// proposing is what Plans are answered with: the drivers that orchestrate, with the connections
// that they have.
func (c Config) proposing(all map[api.StorageType]*engine.Orchestrator) ProposeConfig {
	return ProposeConfig{
		Plans: c.Plans, Drivers: c.Drivers, Kinds: c.Kinds(), Name: c.Name, Log: c.Log.With("part", "plans"),
		Observe: func(ctx context.Context, d engine.Driver, v *engine.View, secrets engine.SecretReader) (any, error) {
			return patient(ctx, all[d.Type()], v, secrets)
		},
	}
}

// runActions looks after all actions until ctx ends. Actions on hosts ask the orchestrators what a
// cluster would plan.
func (c Config) runActions(ctx context.Context, all map[api.StorageType]*engine.Orchestrator) error {
	h := hosts.Config{Store: c.Store, Planners: map[api.StorageType]hosts.Planner{}, Guards: c.Guards, Waits: c.Waits}
	for of, o := range all {
		h.Planners[of] = o
	}
	r := action.Runner{
		Store: c.Actions, Handlers: c.handlers(h), Agents: c.Agents, Waits: c.Waits,
		Accept: c.accept(h), Ask: c.ask(h),
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
