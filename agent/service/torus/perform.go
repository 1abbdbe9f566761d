package torus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/torus"
)

// Perform carries out a command of the driver.
func (*Torusd) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	args, err := torus.Arguments(cmd.Verb, cmd.Object, cmd.Params)
	if err != nil {
		return "", fmt.Errorf("%w: upgrade Holdfast on this host", err)
	}
	what := strings.TrimSpace("torusctl " + cmd.Verb + " " + cmd.Object)
	if done, err := isDone(ctx, l, cmd); done || err != nil {
		return "was so already: " + what, err
	}
	_, err = ctl(ctx, l.Parameters[torus.ParamEtcd], args...)
	f := (*failure)(nil)
	switch {
	case errors.As(err, &f) && torus.Done(cmd.Verb, f.words):
		return "was so already: " + what, nil
	case f != nil && torus.InUse(cmd.Verb, f.words):
		return "", fmt.Errorf("cannot delete volume %s: a client uses it; detach the volume there "+
			"(after a crash of the client Torus takes 30 s to notice)", cmd.Object)
	case err != nil:
		return "", fmt.Errorf("%s: %w", what, err)
	}
	return "done: " + what, nil
}

// isDone looks whether a command that may be repeated was carried out: torusctl's own words do not tell a volume of this size from
// another one of its name.
func isDone(ctx context.Context, l *service.Local, cmd service.Command) (bool, error) {
	if cmd.Verb != torus.VerbCreate {
		return false, nil
	}
	out, err := ctl(ctx, l.Parameters[torus.ParamEtcd], "volume", "list", "--csv")
	if err != nil {
		return false, fmt.Errorf("torusctl volume list: %w", err)
	}
	volumes, err := torus.ParseVolumes(out)
	c := torus.Cluster{Volumes: volumes}
	return c.Volume(cmd.Object) != nil, err
}
