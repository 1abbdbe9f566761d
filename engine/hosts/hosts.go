package hosts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// The kinds of actions on hosts. They lie in the namespace holdfast-system, with spec.target "host/<name>" and spec.host set.
const (
	EnterMaintenance = "host.enter-maintenance"
	ExitMaintenance  = "host.exit-maintenance"
	Drain            = "host.drain"
	Remove           = "host.remove"
	Replace          = "host.replace"
)

// The parameters of actions on hosts.
const (
	// ParamReason is written into spec.reason of the host.
	ParamReason = "reason"
	// ParamOffline, set to Yes, says that the machine is off: what a silent agent cannot confirm is taken for granted.
	ParamOffline = "offline"
	// ParamGone, set to Yes, says that the machine is off and will not come back.
	ParamGone = "gone"
	// ParamForce, set to Yes, has a daemon started again whatever its storage system says.
	ParamForce = "force"
	// ParamNodes says what becomes of the StorageNodes of a host that is removed: Delete, or else the removal is refused.
	ParamNodes = "storageNodes"
	// ParamBy is the host that takes the place of the one that is replaced.
	ParamBy = "by"
	// ParamDevices are the devices on the new host, separated by commas, in the place of those of the old one.
	ParamDevices = "devices"
	// ParamIPs are the addresses of the new host for storage traffic, separated by commas.
	ParamIPs = "ips"
)

// Yes and Delete are values of parameters.
const (
	Yes    = "Yes"
	Delete = "Delete"
)

// Planner says what the plan of a cluster would be if its view were another one. An engine.Orchestrator is one.
type Planner interface {
	Suppose(ctx context.Context, cluster types.NamespacedName, change func(*engine.View)) (*engine.View, *engine.Plan, error)
}

// Guard says what besides storage would break if the host were switched off now.
type Guard func(ctx context.Context, host *api.Host) ([]Obstacle, error)

// Obstacle is what would break.
type Obstacle struct {
	// Wait is what has to come about first, to follow "it waits for".
	Wait string
	// Refusal is a sentence that says why that will not come about by itself, and what to do; empty where it will.
	Refusal string
}

// Store is what the actions on hosts read and write. An engine.Store is one.
type Store interface {
	engine.ClusterReader
	engine.HostStore
	engine.NodeStore
	// ReleaseDaemon is that of engine.DaemonStore.
	ReleaseDaemon(ctx context.Context, daemon types.NamespacedName) error
}

// Config is what the actions on hosts need.
type Config struct {
	Store Store
	// Planners are asked for the clusters of each type. Clusters of a type without one have nothing on any host.
	Planners map[api.StorageType]Planner
	// Guards are asked before a host may be switched off, or is deleted. What will pass is waited for: that the host shall leave may change it.
	Guards []Guard
	// Waits says how long a host that is said to be gone is silent before its daemons are let go. Zero means the defaults.
	Waits waits.Waits
}

// step is one step of an action: how it is done, and how it is undone.
type step struct {
	name     string
	do, undo func(context.Context, *job) (action.Progress, error)
}

// handler carries out one kind.
type handler struct {
	Config
	kind  action.Kind
	check func(context.Context, *job) error
	steps []step
}

var _ action.Handler = (*handler)(nil)

// Handlers returns a handler for each kind.
func Handlers(c Config) []action.Handler {
	var all []action.Handler
	for _, h := range []*handler{c.enter(), c.exit(), c.drain(), c.remove(), c.replace()} {
		for _, s := range h.steps {
			h.kind.Steps = append(h.kind.Steps, s.name)
		}
		h.kind.Executor = api.ByLeader
		all = append(all, h)
	}
	return all
}

// Kind implements action.Handler.
func (h *handler) Kind() action.Kind { return h.kind }

// job is an action with the host that it is about, as it is now.
type job struct {
	Config
	action *api.Action
	*engine.HostView
}

// by names the action where what it did is noted.
func (j *job) by() string { return string(j.action.UID) }

func (j *job) says(parameter, value string) bool {
	return string(j.action.Spec.Parameters[parameter]) == value
}

func checkTarget(a *api.Action) error {
	if a.Spec.Host == "" || a.Spec.Target != "host/"+a.Spec.Host {
		return refuse("spec.target must be host/NAME and spec.host the same NAME: they are %q and %q", a.Spec.Target, a.Spec.Host)
	}
	return nil
}

// open reads the host of an action.
func (h *handler) open(ctx context.Context, a *api.Action) (*job, error) {
	if err := checkTarget(a); err != nil {
		return nil, err
	}
	v, err := h.Store.Host(ctx, a.Spec.Host)
	if err != nil {
		return nil, fmt.Errorf("while reading host %s: %w", a.Spec.Host, err)
	}
	if v.Host.CreationTimestamp.After(a.CreationTimestamp.Time) {
		return nil, refuse("host %s was replaced by another machine of its name", a.Spec.Host)
	}
	return &job{h.Config, a, v}, nil
}

// Check implements action.Handler.
func (h *handler) Check(ctx context.Context, a *api.Action) error {
	j, err := h.open(ctx, a)
	if errors.Is(err, engine.ErrNotFound) {
		return refuse("host %s does not exist", a.Spec.Host)
	}
	if err != nil {
		return err
	}
	var heir *api.Host
	if h.kind.Name == Replace {
		if heir, err = j.heir(ctx); err != nil {
			return err
		}
	}
	if err := Precheck(a, j.HostView, heir); err != nil {
		return err
	}
	return h.check(ctx, j)
}

// Step implements action.Handler. That the host is gone is the end that its removal wants; any other action cannot go on.
func (h *handler) Step(ctx context.Context, a *api.Action, name string) (action.Progress, error) {
	s, err := h.named(name)
	if err != nil {
		return action.Progress{}, err
	}
	j, err := h.open(ctx, a)
	switch {
	case errors.Is(err, engine.ErrNotFound) && h.removes():
		return action.Progress{Done: true, Message: fmt.Sprintf("host %s was removed", a.Spec.Host)}, nil
	case errors.Is(err, engine.ErrNotFound):
		return action.Progress{}, refuse("host %s was deleted", a.Spec.Host)
	case err != nil:
		return action.Progress{}, err
	}
	switch wait, err := j.back(name); {
	case err != nil:
		return action.Progress{}, err
	case wait != nil:
		return *wait, nil
	}
	return s.do(ctx, j)
}

// Undo implements action.Handler. Of a host that is gone there is nothing to give back.
func (h *handler) Undo(ctx context.Context, a *api.Action, name string) (action.Progress, error) {
	s, err := h.named(name)
	if err != nil {
		return action.Progress{}, err
	}
	j, err := h.open(ctx, a)
	switch {
	case errors.Is(err, engine.ErrNotFound), errors.Is(err, action.ErrRefused):
		return action.Progress{Done: true, Message: fmt.Sprintf("host %s is gone", a.Spec.Host)}, nil
	case err != nil:
		return action.Progress{}, err
	case s.undo == nil:
		return action.Progress{Done: true}, nil
	}
	return s.undo(ctx, j)
}

// removes says whether the host is gone when the action is done.
func (h *handler) removes() bool { return h.steps[len(h.steps)-1].name == stepDelete }

func (h *handler) named(name string) (step, error) {
	for _, s := range h.steps {
		if s.name == name {
			return s, nil
		}
	}
	return step{}, refuse("this version of holdfast knows no step %s of %s", name, h.kind.Name)
}

// refusal is an error that says why something cannot be done, and nothing else.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return action.ErrRefused }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// timeouts of the kinds. Data moves for days; a machine that is repaired is back the same day.
const (
	shortly = time.Hour
	slowly  = 14 * 24 * time.Hour
)
