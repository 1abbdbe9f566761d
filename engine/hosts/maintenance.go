package hosts

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// enter stops all daemons of a host for a while.
func (c Config) enter() *handler {
	return &handler{
		Config: c,
		kind: action.Kind{
			Name: EnterMaintenance, Mode: action.Rolling, Timeout: shortly, ExpiresAfter: shortly,
			Summary: "prepare the storage systems for the absence of a host, and stop its daemons",
		},
		check: func(ctx context.Context, j *job) error { return j.maySwitchOff(ctx) },
		steps: []step{tell(api.HostMaintenance), {name: "stop-daemons", do: stopped}},
	}
}

// tell sets the mode of the host. The clusters' orchestration sees that, tells the storage systems, and does the rest.
func tell(mode api.HostMode) step {
	do := func(ctx context.Context, j *job) (action.Progress, error) {
		reason := string(j.action.Spec.Parameters[ParamReason])
		err := j.Store.PutHost(ctx, j.Host.Name, func(h *api.Host) {
			engine.SetHostMode(h, mode, reason, j.by())
			disks(j.action, h)
		})
		return action.Progress{Done: err == nil, Message: fmt.Sprintf("host %s is in mode %s", j.Host.Name, mode)}, err
	}
	undo := func(ctx context.Context, j *job) (action.Progress, error) {
		message := ""
		err := j.Store.PutHost(ctx, j.Host.Name, func(h *api.Host) {
			engine.RestoreHostMode(h, mode, j.by())
			message = fmt.Sprintf("host %s is in mode %s", h.Name, h.ModeOf()) + j.disksBack(h)
		})
		return action.Progress{Done: err == nil, Message: message}, err
	}
	return step{name: "tell-storage", do: do, undo: undo}
}

// stopped waits until the agent says that all daemons are stopped, and no cluster waits for anything. A cluster that refuses
// now, because something else failed meanwhile, ends the action: what was stopped is started again.
func stopped(ctx context.Context, j *job) (action.Progress, error) {
	found, err := j.judge(ctx, nil)
	if err != nil {
		return action.Progress{}, err
	}
	if len(found.Refusals) > 0 {
		return action.Progress{}, refuse("%s", strings.Join(found.Refusals, "; "))
	}
	left := j.left(func(d *api.Daemon) bool { return !settled(d, api.DaemonStopped) })
	if j.silent() && j.says(ParamOffline, Yes) {
		return j.off(ctx, left)
	}
	p := j.count(left, found.Waits, "stopped")
	if p.Done {
		p.Message = fmt.Sprintf("host %s is in maintenance: its daemons are stopped", j.Host.Name)
		return j.mayBeOff(ctx, p)
	}
	if j.silent() {
		p.WaitsFor = fmt.Sprintf("the agent of host %s, disconnected, to confirm that %s stopped; if the machine is off, "+
			"cancel this and enter with --offline", j.Host.Name, words.Few(left))
	}
	return p, nil
}

// off waits until the storage systems know that the host is away, and were told to expect it back. That its daemons stopped is
// taken for granted, and nothing else.
func (j *job) off(ctx context.Context, left []string) (action.Progress, error) {
	found, err := j.judge(ctx, func(v *engine.View) { v.SetHostOff(j.Host.Name) })
	if err != nil {
		return action.Progress{}, err
	}
	if waits := slices.Concat(found.Refusals, found.Waits); len(waits) > 0 {
		return action.Progress{Message: fmt.Sprintf("host %s was declared off (--offline)",
			j.Host.Name), WaitsFor: strings.Join(waits, "; ")}, nil
	}
	return action.Progress{Done: true, Message: j.unconfirmed(left)}, nil
}

func (j *job) unconfirmed(left []string) string {
	if len(left) == 0 {
		return fmt.Sprintf("host %s is in maintenance", j.Host.Name)
	}
	return fmt.Sprintf("host %s is in maintenance. Not confirmed: that %s stopped, because its agent is disconnected "+
		"and you gave --offline", j.Host.Name, words.Few(left))
}

// settled says whether the agent reports a state of a daemon as it is wanted now.
func settled(d *api.Daemon, state api.DaemonState) bool {
	return d.DeletionTimestamp == nil && d.Status.State == state && d.Status.ObservedGeneration == d.Generation
}

// count makes the progress of a step that ends when no daemon is left and no cluster waits.
func (j *job) count(left, waits []string, what string) action.Progress {
	total := max(int64(len(left)), int64(len(j.Daemons)), j.total())
	p := action.Progress{
		Done: len(left)+len(waits) == 0, Count: total - int64(len(left)), Total: total, Unit: "daemons",
		Message: fmt.Sprintf("%d of %d daemons are %s", total-int64(len(left)), total, what),
	}
	switch {
	case len(waits) > 0:
		p.WaitsFor = strings.Join(waits, "; ")
	case len(left) > 0:
		p.WaitsFor = words.Few(left) + " to be " + what
	}
	return p
}

// total is how many daemons the step that is under way had to do with so far. Those that are gone count as well.
func (j *job) total() int64 {
	for _, s := range j.action.Status.Steps {
		if s.State == api.StepRunning {
			return s.Total
		}
	}
	return 0
}

// exit gives a host back to its storage systems, from maintenance or from draining.
func (c Config) exit() *handler {
	return &handler{
		Config: c,
		kind: action.Kind{
			Name: ExitMaintenance, Mode: action.Shared, Timeout: shortly, ExpiresAfter: shortly,
			Summary: "return a host to service and start its daemons",
		},
		check: func(ctx context.Context, j *job) error { return j.allow(ctx, api.HostActive) },
		steps: []step{giveBack(), {name: "start-daemons", do: started}},
	}
}

// giveBack makes the host active. Who cancels that gets back what was before; but when the time is over because one daemon of
// many does not start, those that run are not stopped again, and data that came back does not move away again.
func giveBack() step {
	return tell(api.HostActive).unlessCancelled(func(j *job) string {
		return fmt.Sprintf("host %s stays in mode %s", j.Host.Name, j.Host.ModeOf())
	})
}

// unlessCancelled leaves what a step did as it is, with a word on that, where nobody cancelled the action but its time is over or
// it was refused on its way. But a host that was said to be gone and is heard again was no dead one.
func (s step) unlessCancelled(stays func(*job) string) step {
	undo := s.undo
	s.undo = func(ctx context.Context, j *job) (action.Progress, error) {
		c := meta.FindStatusCondition(j.action.Status.Conditions, api.ActionEffective)
		returned := c != nil && c.Reason == action.ReasonRefused && saysGone(j.action)
		if c != nil && c.Reason != action.ReasonCancelled && !returned {
			return action.Progress{Done: true, Message: stays(j)}, nil
		}
		return undo(ctx, j)
	}
	return s
}

// started waits until every daemon on the host is as its cluster wants it, and no cluster waits for anything.
func started(ctx context.Context, j *job) (action.Progress, error) {
	found, err := j.judge(ctx, nil)
	if err != nil {
		return action.Progress{}, err
	}
	left := j.left(func(d *api.Daemon) bool {
		return d.DeletionTimestamp != nil || found.changes[d.Namespace+"/"+d.Name] ||
			d.Spec.State == api.WantRunning && !settled(d, api.DaemonRunning)
	})
	waits := slices.Concat(found.Refusals, found.Waits)
	p := j.count(left, waits, "in their desired state")
	if p.Done {
		p.Message = fmt.Sprintf("host %s is active: %s", j.Host.Name, runningText(j.Daemons))
	} else if j.silent() {
		p.WaitsFor = fmt.Sprintf("the agent of host %s, which is disconnected", j.Host.Name)
	}
	return p, nil
}

// runningText says of the daemons of a host in service that they run, where there are any.
func runningText(daemons []api.Daemon) string {
	if len(daemons) == 0 {
		return "it has no daemons"
	}
	return "its daemons run"
}
