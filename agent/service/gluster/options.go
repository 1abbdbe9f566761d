package gluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// set sets options together, which is one change of the pool's configuration. GlusterFS sets none of them when it refuses one; then they are set
// one by one, so that only those stay as they were that it refuses, and each is told with its reason.
func (p pool) set(ctx context.Context, cmd service.Command) error {
	if len(cmd.Params) == 0 {
		return nil
	}
	err := p.do(ctx, append([]string{"volume", "set", cmd.Object}, sorted(cmd.Params)...)...)
	failure := (*glusterd.Failure)(nil)
	switch {
	case err == nil:
		for name, value := range cmd.Params {
			err = errors.Join(err, noteRefusal(p.l.Run, cmd.Object, name, value, nil))
		}
		return err
	case !errors.As(err, &failure) || failure.Busy():
		return err
	}
	return p.eachOption(ctx, cmd, "set", func(name string) []string { return []string{name, cmd.Params[name]} })
}

func (p pool) reset(ctx context.Context, cmd service.Command) error {
	return p.eachOption(ctx, cmd, "reset", func(name string) []string { return []string{name} })
}

// eachOption does something to each option of a volume, also after one that GlusterFS refused.
func (p pool) eachOption(ctx context.Context, cmd service.Command, verb string, args func(name string) []string) error {
	var refused []error
	for _, name := range slices.Sorted(maps.Keys(cmd.Params)) {
		err := p.do(ctx, append([]string{"volume", verb, cmd.Object}, args(name)...)...)
		failure := (*glusterd.Failure)(nil)
		if !errors.As(err, &failure) || !failure.Busy() {
			refused = append(refused, noteRefusal(p.l.Run, cmd.Object, name, cmd.Params[name], err))
		}
		switch {
		case err == nil:
		case errors.As(err, &failure) && !failure.Busy():
			refused = append(refused, fmt.Errorf("option %s is refused: %w", name, err))
		default:
			return errors.Join(append(refused, err)...)
		}
	}
	return errors.Join(refused...)
}
