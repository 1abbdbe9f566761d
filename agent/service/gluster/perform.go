package gluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/agent/service"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// pool carries out commands by the glusterd of this node.
type pool struct {
	ask glusterd.Asker
	l   *service.Local
}

// verbs are the commands. Each looks at what is so before it changes anything, and at what has become of it after a failure: it
// may be the repetition of one whose end nobody saw.
var verbs = map[string]func(pool, context.Context, service.Command) error{
	glusterd.VerbProbe:        pool.probe,
	glusterd.VerbDetach:       pool.detach,
	glusterd.VerbCreate:       pool.create,
	glusterd.VerbStart:        pool.start,
	glusterd.VerbStop:         pool.stop,
	glusterd.VerbDelete:       pool.remove,
	glusterd.VerbSet:          pool.set,
	glusterd.VerbReset:        pool.reset,
	glusterd.VerbAddBrick:     pool.addBricks,
	glusterd.VerbRebalance:    pool.rebalance,
	glusterd.VerbRemoveStart:  pool.removeStart,
	glusterd.VerbRemoveStop:   pool.removeStop,
	glusterd.VerbRemoveCommit: pool.removeCommit,
	glusterd.VerbReplace:      pool.replace,
	glusterd.VerbResetBrick:   pool.resetBrick,
	glusterd.VerbHeal:         pool.heal,
	glusterd.VerbResolve:      pool.resolve,
	glusterd.VerbQuota:        pool.quota,
	glusterd.VerbOpVersion:    pool.opVersion,
	glusterd.VerbDropBrick:    pool.dropBrick,
}

// Perform carries out a command of the driver.
func (Glusterd) Perform(ctx context.Context, l *service.Local, cmd service.Command) (string, error) {
	return perform(ctx, pool{asker(l), l}, cmd)
}

func perform(ctx context.Context, p pool, cmd service.Command) (string, error) {
	verb, ok := verbs[cmd.Verb]
	if !ok {
		return "", fmt.Errorf("this agent does not know the command %q: upgrade Holdfast on this host", cmd.Verb)
	}
	what := strings.TrimSpace(cmd.Verb + " " + cmd.Object)
	if err := verb(p, ctx, cmd); err != nil {
		return "", fmt.Errorf("gluster %s: %w", what, err)
	}
	return "done: gluster " + what, nil
}

func (p pool) do(ctx context.Context, args ...string) error { return do(ctx, p.ask, args...) }

// volume returns nil when the pool has no such volume.
func (p pool) volume(ctx context.Context, name string) (*glusterd.Volume, error) {
	out, err := p.ask(ctx, "volume", "info", "all")
	if err != nil {
		return nil, err
	}
	all, err := glusterd.ParseVolumes(out)
	if err != nil {
		return nil, fmt.Errorf("while reading the volumes: %w", err)
	}
	if i := slices.IndexFunc(all, func(v glusterd.Volume) bool { return v.Name == name }); i >= 0 {
		return &all[i], nil
	}
	return nil, nil //nolint:nilnil // a volume that is not there is an answer
}

// existing is volume for commands that need one.
func (p pool) existing(ctx context.Context, name string) (*glusterd.Volume, error) {
	v, err := p.volume(ctx, name)
	if err == nil && v == nil {
		err = errors.New("the pool has no such volume")
	}
	return v, err
}

// refused says whether a command failed with a text in which one of these words stands.
func refused(err error, words ...string) bool {
	f := (*glusterd.Failure)(nil)
	return errors.As(err, &f) && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(f.Text, w) })
}

// force is the word that ends a command, if it is asked for.
func force(cmd service.Command) []string {
	if cmd.Params[glusterd.ParamForce] == "true" {
		return []string{"force"}
	}
	return nil
}

func (p pool) probe(ctx context.Context, cmd service.Command) error {
	err := p.do(ctx, "peer", "probe", cmd.Object)
	if refused(err, "already part of another cluster") {
		return fmt.Errorf("%w: wipe the node's glusterd if nothing of that pool is needed", err)
	}
	return err
}

func (p pool) detach(ctx context.Context, cmd service.Command) error {
	err := p.do(ctx, append([]string{"peer", "detach", cmd.Object}, force(cmd)...)...)
	if refused(err, "is not part of cluster") {
		return nil
	}
	return err
}

func (p pool) start(ctx context.Context, cmd service.Command) error {
	v, err := p.existing(ctx, cmd.Object)
	if err != nil || v.State == glusterd.VolumeStarted && len(force(cmd)) == 0 {
		return err
	}
	return p.do(ctx, append([]string{"volume", "start", cmd.Object}, force(cmd)...)...)
}

func (p pool) stop(ctx context.Context, cmd service.Command) error {
	v, err := p.meant(ctx, cmd)
	if err != nil || v == nil || v.State != glusterd.VolumeStarted {
		return err
	}
	return p.do(ctx, append([]string{"volume", "stop", cmd.Object}, force(cmd)...)...)
}

func (p pool) remove(ctx context.Context, cmd service.Command) error {
	v, err := p.meant(ctx, cmd)
	if err != nil || v == nil {
		return err
	}
	return p.do(ctx, "volume", "delete", cmd.Object)
}

// meant is the volume that a command is about, or nil. Where the command names an identity, another volume by that name is not it.
func (p pool) meant(ctx context.Context, cmd service.Command) (*glusterd.Volume, error) {
	v, err := p.volume(ctx, cmd.Object)
	if id := cmd.Params[glusterd.ParamVolumeID]; v != nil && id != "" && v.ID != id {
		return nil, fmt.Errorf("the pool's volume of this name is another one (id %s, not %s): it was not touched", v.ID, id)
	}
	return v, err
}

// sorted are the parameters as pairs, in the order of their names.
func sorted(params map[string]string) (pairs []string) {
	for _, name := range slices.Sorted(maps.Keys(params)) {
		pairs = append(pairs, name, params[name])
	}
	return pairs
}

func (p pool) heal(ctx context.Context, cmd service.Command) error {
	args := []string{"volume", "heal", cmd.Object}
	if cmd.Params[glusterd.ParamFull] == "true" {
		args = append(args, "full")
	}
	return p.do(ctx, args...)
}

// quota limits the volume as a whole. Its size is looked at with each write: by default it would be looked at once a minute, in
// which a volume can grow far beyond its limit.
func (p pool) quota(ctx context.Context, cmd service.Command) error {
	limit := cmd.Params[glusterd.ParamLimit]
	if limit == "" {
		err := p.do(ctx, "volume", "quota", cmd.Object, "disable")
		if refused(err, "Quota is disabled", "Quota is already disabled", "not enabled") {
			return nil
		}
		return err
	}
	if err := p.do(ctx, "volume", "quota", cmd.Object, "enable"); err != nil && !refused(err, "Quota is already enabled") {
		return err
	}
	for _, timeout := range []string{"hard-timeout", "soft-timeout"} {
		if err := p.do(ctx, "volume", "quota", cmd.Object, timeout, "0"); err != nil {
			return err
		}
	}
	return p.do(ctx, "volume", "quota", cmd.Object, "limit-usage", "/", limit)
}

func (p pool) opVersion(ctx context.Context, cmd service.Command) error {
	out, err := p.ask(ctx, "volume", "get", "all", "cluster.op-version")
	if err != nil {
		return err
	}
	if now, err := glusterd.ParseOpVersion(out); err == nil && fmt.Sprint(now) == cmd.Object {
		return nil
	}
	return p.do(ctx, "volume", "set", "all", "cluster.op-version", cmd.Object)
}
