package daemonaction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
)

// The steps.
const (
	stepStop  = "stop"
	stepStart = "start"
)

// stop carries out Actions of the kind api.ActionDaemonStop.
type stop struct{ Config }

var _, _ action.Handler = stop{}, start{}

// Kind implements action.Handler.
func (stop) Kind() action.Kind {
	return action.Kind{
		Name: api.ActionDaemonStop, Executor: api.ByLeader, Mode: action.Rolling, Asks: true, Steps: []string{stepStop},
		Timeout: 15 * time.Minute, ExpiresAfter: time.Hour,
		Summary: "stops a daemon of Ceph until daemon.start starts it (target daemon/NAME)",
	}
}

// Check implements action.Handler.
func (x stop) Check(ctx context.Context, a *api.Action) error {
	j, d, err := x.find(ctx, a)
	if err != nil {
		return err
	}
	if err := cmp.Or(j.active(), j.inService(d)); err != nil || asked.Stopped(d) {
		return err
	}
	if d.Spec.State != api.WantRunning {
		return refuse("the desired state of daemon %s is %s, not Running: see 'holdfast why %s'",
			d.Name, d.Spec.State, d.Name)
	}
	return j.may(ctx, d)
}

// find reads the daemon of an Action.
func (c Config) find(ctx context.Context, a *api.Action) (*job, *api.Daemon, error) {
	j, err := c.open(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	d, err := j.target()
	return j, d, err
}

// Step implements action.Handler.
func (x stop) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	j, d, err := x.find(ctx, a)
	if err != nil {
		return action.Progress{}, err
	}
	return j.stop(ctx, d)
}

// stop has a daemon stay stopped, and says how far that is.
func (j *job) stop(ctx context.Context, d *api.Daemon) (action.Progress, error) {
	if !asked.Stopped(d) {
		err := j.annotate(ctx, d, func(all map[string]string) { all[api.AnnotationStop] = j.word() })
		if err != nil {
			return action.Progress{}, err
		}
	} else if reached(d, api.WantStopped) {
		return action.Progress{Done: true, Message: d.Name + " is stopped"}, nil
	}
	return action.Progress{Message: d.Name + " is being stopped", WaitsFor: j.awaits(d, "stop"), Recheck: soon}, nil
}

// word is what the Action writes into api.AnnotationStop.
func (j *job) word() string {
	return asked.Value(j.action.CreationTimestamp.Time, j.action.Spec.Requester)
}

// Undo implements action.Handler: the daemon starts again, if it was this Action that had it stopped.
func (x stop) Undo(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	j, d, err := x.find(ctx, a)
	if errors.Is(err, action.ErrRefused) {
		return action.Progress{Done: true, Message: "the daemon is gone"}, nil
	}
	if err == nil {
		err = j.takeBack(ctx, d)
	}
	return action.Progress{Done: err == nil, Message: "the daemon is started again"}, err
}

// takeBack takes the word of this Action from a daemon.
func (j *job) takeBack(ctx context.Context, d *api.Daemon) error {
	return j.annotate(ctx, d, func(all map[string]string) {
		if all[api.AnnotationStop] == j.word() {
			delete(all, api.AnnotationStop)
		}
		if asked.RestartBy(d, j.action.UID) {
			delete(all, api.AnnotationRestart)
		}
	})
}

// start carries out Actions of the kind api.ActionDaemonStart.
type start struct{ Config }

// Kind implements action.Handler.
func (start) Kind() action.Kind {
	return action.Kind{
		Name: api.ActionDaemonStart, Executor: api.ByLeader, Mode: action.Rolling, Steps: []string{stepStart}, Final: true,
		Timeout: 15 * time.Minute, ExpiresAfter: time.Hour,
		Summary: "starts a daemon of Ceph that daemon.stop stopped, or that is held back (target daemon/NAME)",
	}
}

// Check implements action.Handler.
func (x start) Check(ctx context.Context, a *api.Action) error {
	j, d, err := x.find(ctx, a)
	if err != nil {
		return err
	}
	if d.Spec.State == api.WantPrepared || d.Spec.State == api.WantWatched {
		return refuse("the desired state of daemon %s is %s: see 'holdfast why %s'", d.Name, d.Spec.State, d.Name)
	}
	return cmp.Or(j.active(), j.inService(d))
}

// Step implements action.Handler.
func (x start) Step(ctx context.Context, a *api.Action, _ string) (action.Progress, error) {
	j, d, err := x.find(ctx, a)
	if err != nil {
		return action.Progress{}, err
	}
	return j.start(ctx, d)
}

// start takes back that a daemon stays stopped, and says how far that is.
func (j *job) start(ctx context.Context, d *api.Daemon) (action.Progress, error) {
	err := j.annotate(ctx, d, func(all map[string]string) {
		delete(all, api.AnnotationStop)
		if since := memory.Of(d, memory.HeldSince); since != "" {
			all[api.AnnotationStart] = since
		}
	})
	if err != nil {
		return action.Progress{}, err
	}
	if !asked.Stopped(d) && reached(d, api.WantRunning) {
		return action.Progress{Done: true, Message: d.Name + " runs"}, nil
	}
	return action.Progress{
		Message: d.Name + " is being started", WaitsFor: j.awaits(d, "start"), Recheck: soon,
	}, nil
}

// Undo implements action.Handler. A daemon that was started stays so.
func (start) Undo(_ context.Context, a *api.Action, _ string) (action.Progress, error) {
	return action.Progress{Done: true, Message: fmt.Sprintf("%s stays started", a.Spec.Target)}, nil
}
