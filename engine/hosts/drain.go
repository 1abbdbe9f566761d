package hosts

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/words"
)

func isGone(err error) bool { return errors.Is(err, engine.ErrNotFound) }

// drain moves data and daemons to other hosts.
func (c Config) drain() *handler {
	return &handler{
		Config: c,
		kind: action.Kind{
			Name: Drain, Mode: action.Rolling, Timeout: slowly,
			Summary: "move data and daemons from a host to others, and place no new daemons there",
		},
		check: func(ctx context.Context, j *job) error { return j.allow(ctx, api.HostDrain) },
		steps: []step{beginDrain(), {name: "move-daemons", do: moved}},
	}
}

// beginDrain has the clusters move everything off the host. Who cancels that gets back the mode that was before; when the time is over,
// what was moved for days is not moved back by the clock, and what is left goes on moving.
func beginDrain() step {
	return tell(api.HostDrain).unlessCancelled(func(j *job) string {
		name := j.Host.Name
		if j.Host.ModeOf() != api.HostDrain {
			return fmt.Sprintf("host %s is in mode %s", name, j.Host.ModeOf())
		}
		return fmt.Sprintf("host %s stays in mode Drain and its data keeps moving: run the same command again to "+
			"continue, or 'holdfast host maintenance exit %s' to return the host", name, name)
	})
}

// moved waits until nothing is left on the host.
func moved(ctx context.Context, j *job) (action.Progress, error) {
	p, err := j.emptying(ctx)
	cleared := j.left(func(d *api.Daemon) bool { return d.DeletionTimestamp != nil })
	switch {
	case err != nil:
		return p, err
	case p.Done:
		p.Message, err = j.isEmpty(ctx)
		return p, err
	case j.silent() && len(cleared) > 0:
		p.WaitsFor = fmt.Sprintf("the agent of host %s, disconnected, to remove %s; if the machine will not come back, "+
			"cancel this and use 'holdfast host remove %s --gone'", j.Host.Name, words.Few(cleared), j.Host.Name)
	}
	return p, nil
}

// emptying is how far a host is from being empty. What a cluster refuses now may become possible again, as when a disk that
// failed elsewhere is replaced: to take data that was moved for hours back again would help nobody.
func (j *job) emptying(ctx context.Context) (action.Progress, error) {
	found, err := j.judge(ctx, nil)
	if err != nil {
		return action.Progress{}, err
	}
	left := j.left(func(*api.Daemon) bool { return true })
	return j.count(left, slices.Concat(found.Refusals, found.Waits), "gone"), nil
}
