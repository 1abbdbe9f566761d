package gluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// bricksOf are the bricks that a command names.
func bricksOf(cmd service.Command) ([]string, error) {
	bricks := strings.Fields(cmd.Params[glusterd.ParamBricks])
	if len(bricks) == 0 {
		return nil, errors.New("the command names no bricks")
	}
	return bricks, nil
}

func names(v *glusterd.Volume) []string {
	var all []string
	for i := range v.Bricks {
		all = append(all, v.Bricks[i].Name())
	}
	return all
}

// layout are the words that say how bricks make up sets.
func layout(cmd service.Command) []string {
	var words []string
	for _, name := range []string{glusterd.ParamReplica, glusterd.ParamArbiter, glusterd.ParamDisperse, glusterd.ParamRedundancy} {
		if value := cmd.Params[name]; value != "" {
			words = append(words, name, value)
		}
	}
	return words
}

func (p pool) create(ctx context.Context, cmd service.Command) error {
	bricks, err := bricksOf(cmd)
	if err != nil {
		return err
	}
	v, err := p.volume(ctx, cmd.Object)
	switch {
	case err != nil:
		return err
	case v != nil && slices.Equal(names(v), bricks):
		return nil
	case v != nil:
		return fmt.Errorf("the pool has a volume of this name already, with the bricks %s", strings.Join(names(v), " "))
	}
	return p.do(ctx, slices.Concat([]string{"volume", "create", cmd.Object}, layout(cmd), bricks, force(cmd))...)
}

// addBricks adds the bricks, all or none of which are there already.
func (p pool) addBricks(ctx context.Context, cmd service.Command) error {
	bricks, err := bricksOf(cmd)
	if err != nil {
		return err
	}
	v, err := p.existing(ctx, cmd.Object)
	if err != nil || all(v, bricks) {
		return err
	}
	if has := strings.Fields(cmd.Params[glusterd.ParamHas]); len(has) > 0 && !same(names(v), has) {
		return fmt.Errorf("the volume has %d bricks (%s), but had %d when the leader decided: the leader decides "+
			"again after the next report",
			len(v.Bricks), strings.Join(names(v), " "), len(has))
	}
	return p.do(ctx, slices.Concat([]string{"volume", "add-brick", cmd.Object}, layout(cmd), bricks, force(cmd))...)
}

// same says whether two lists name the same bricks, in whatever order.
func same(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// all says whether the volume has all of the bricks.
func all(v *glusterd.Volume, bricks []string) bool {
	return !slices.ContainsFunc(bricks, func(b string) bool { return v.Brick(b) == nil })
}

func (p pool) rebalance(ctx context.Context, cmd service.Command) error {
	err := p.do(ctx, slices.Concat([]string{"volume", "rebalance", cmd.Object, "start"}, force(cmd))...)
	if refused(err, "is already started") {
		return nil
	}
	return err
}

// task is what the volume is busy with, or nil.
func (p pool) task(ctx context.Context, v *glusterd.Volume) (*glusterd.Task, error) {
	out, err := p.ask(ctx, "volume", "status", v.Name)
	if err != nil {
		return nil, err
	}
	one := []glusterd.Volume{*v}
	if err := glusterd.AddStatus(one, out); err != nil {
		return nil, err
	}
	return one[0].Task, nil
}

// draining says whether the volume has a remove-brick of exactly these bricks.
func draining(t *glusterd.Task, bricks []string) bool {
	return t != nil && t.Kind == glusterd.TaskRemoveBrick &&
		slices.Equal(slices.Sorted(slices.Values(t.Bricks)), slices.Sorted(slices.Values(bricks)))
}

func (p pool) removeStart(ctx context.Context, cmd service.Command) error {
	bricks, err := bricksOf(cmd)
	if err != nil {
		return err
	}
	v, err := p.existing(ctx, cmd.Object)
	if err != nil {
		return err
	}
	t, err := p.task(ctx, v)
	if err != nil {
		return err
	}
	if draining(t, bricks) && t.State != glusterd.TaskStopped && t.State != glusterd.TaskFailed {
		return nil
	}
	return p.do(ctx, slices.Concat([]string{"volume", "remove-brick", cmd.Object}, layout(cmd), bricks, []string{"start"})...)
}

func (p pool) removeStop(ctx context.Context, cmd service.Command) error {
	bricks, err := bricksOf(cmd)
	if err != nil {
		return err
	}
	err = p.do(ctx, slices.Concat([]string{"volume", "remove-brick", cmd.Object}, layout(cmd), bricks, []string{"stop"})...)
	if refused(err, "remove-brick not started") {
		return nil
	}
	return err
}

// removeCommit lets drained bricks go. With force they go as they are: that is how a set loses a copy.
func (p pool) removeCommit(ctx context.Context, cmd service.Command) error {
	bricks, err := bricksOf(cmd)
	if err != nil {
		return err
	}
	v, err := p.existing(ctx, cmd.Object)
	if err != nil || !slices.ContainsFunc(bricks, func(b string) bool { return v.Brick(b) != nil }) {
		return err
	}
	last := "commit"
	if len(force(cmd)) > 0 {
		last = "force"
	}
	return p.do(ctx, slices.Concat([]string{"volume", "remove-brick", cmd.Object}, layout(cmd), bricks, []string{last})...)
}

func (p pool) replace(ctx context.Context, cmd service.Command) error {
	v, err := p.existing(ctx, cmd.Object)
	if err != nil {
		return err
	}
	from, to := cmd.Params[glusterd.ParamOld], cmd.Params[glusterd.ParamNew]
	if v.Brick(from) == nil && v.Brick(to) != nil {
		return nil
	}
	return p.do(ctx, "volume", "replace-brick", cmd.Object, from, to, "commit", "force")
}

// resetBrick takes a brick that lost its data into use again. Where its process runs there is nothing to do: a brick without its
// data does not start.
func (p pool) resetBrick(ctx context.Context, cmd service.Command) error {
	v, err := p.existing(ctx, cmd.Object)
	if err != nil {
		return err
	}
	brick := cmd.Params[glusterd.ParamOld]
	out, err := p.ask(ctx, "volume", "status", v.Name)
	if err != nil {
		return err
	}
	one := []glusterd.Volume{*v}
	if err := glusterd.AddStatus(one, out); err != nil {
		return err
	}
	switch b := one[0].Brick(brick); {
	case b == nil:
		return fmt.Errorf("the volume has no brick %s", brick)
	case b.State == glusterd.BrickOnline:
		return nil
	}
	if err := p.do(ctx, "volume", "reset-brick", cmd.Object, brick, "start"); err != nil {
		return err
	}
	return p.do(ctx, "volume", "reset-brick", cmd.Object, brick, brick, "commit", "force")
}

// dropBrick removes the directory of a brick that no volume has any more, and nothing else.
func (p pool) dropBrick(ctx context.Context, cmd service.Command) error {
	path := filepath.Clean(cmd.Object)
	if !slices.ContainsFunc(stores(p.l), func(s glusterd.Store) bool { return s.Problem == "" && filepath.Dir(path) == s.Path }) {
		return errors.New("it lies in none of the places for bricks of this node")
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if id, want := volumeID(path), cmd.Params[glusterd.ParamVolumeID]; id != want {
		return fmt.Errorf("it belongs to the volume %q, not to %q: it was not touched", id, want)
	}
	out, err := p.ask(ctx, "volume", "info", "all")
	if err != nil {
		return err
	}
	volumes, err := glusterd.ParseVolumes(out)
	if err != nil {
		return err
	}
	address := p.l.Parameters[glusterd.ParamAddress]
	for i := range volumes {
		if volumes[i].Brick(address+":"+path) != nil {
			return fmt.Errorf("it is a brick of the volume %s: it was not touched", volumes[i].Name)
		}
	}
	return atomicfile.RemoveAll(path)
}
