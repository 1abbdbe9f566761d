package gluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// resolve ends the split-brain of files.
func (p pool) resolve(ctx context.Context, cmd service.Command) error {
	return resolveAll(ctx, cmd.Params, func(args ...string) (string, error) {
		out, err := runHeal(ctx, socketOf(p.l), append([]string{cmd.Object}, args...)...)
		return string(out), err
	})
}

// resolveAll goes on where one file cannot be had.
func resolveAll(ctx context.Context, params map[string]string, heal func(args ...string) (string, error)) error {
	var errs []error
	patience := awayPause
	for _, file := range strings.Split(params[glusterd.ParamFiles], "\n") {
		err := resolveOne(heal, params, file)
		for ; errors.Is(err, errAway) && patience <= maxAwayPause && wait(ctx, patience); patience *= 2 {
			err = resolveOne(heal, params, file)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
	}
	return errors.Join(errs...)
}

// A network that has only just become whole lets a brick's connections come back one by one.
const (
	awayPause    = time.Second
	maxAwayPause = 8 * time.Second
)

// errAway is wrapped by the word that a copy cannot be reached. It is waited for, for some seconds in all.
var errAway = errors.New("a copy cannot be reached at the moment. Choose again when all bricks serve")

// wait says whether ctx goes on for so long.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

// resolveOne tries each of the bricks that can be meant: a file is in one set, and a node may have bricks in several.
func resolveOne(heal func(args ...string) (string, error), params map[string]string, file string) error {
	ways := [][]string{{params[glusterd.ParamKeep], file}}
	if params[glusterd.ParamKeep] == glusterd.KeepBrick {
		ways = nil
		for _, brick := range strings.Fields(params[glusterd.ParamBricks]) {
			ways = append(ways, []string{glusterd.KeepBrick, brick, file})
		}
	}
	last := errors.New("no brick is named")
	for _, way := range ways {
		out, err := heal(way...)
		if err != nil {
			return err
		}
		if last = resolved(out); last == nil {
			return nil
		}
	}
	return last
}

// resolved reads what came of it: the exit status says nothing of a file that is another one on each copy (10.3). "Not in
// split-brain" is the word on a file that was resolved before.
func resolved(out string) error {
	done := []string{"Healed ", "GFID split-brain resolved", "File not in split-brain"}
	if slices.ContainsFunc(done, func(words string) bool { return strings.Contains(out, words) }) {
		return nil
	}
	why := strings.Join(strings.Fields(out), " ")
	switch {
	case strings.Contains(why, "No difference in mtime"), strings.Contains(why, "No bigger file"):
		return fmt.Errorf("gluster says %q: several copies are equal in that. Name the node whose copy is right", why)
	case strings.Contains(why, "Transport endpoint is not connected"):
		return fmt.Errorf("gluster says %q: %w", why, errAway)
	case strings.Contains(why, "Operation not permitted"):
		return fmt.Errorf("gluster says %q: it is a directory. Name the files in it that cannot be read", why)
	}
	return fmt.Errorf("gluster says %q", why)
}
