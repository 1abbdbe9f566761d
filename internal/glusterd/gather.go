package glusterd

import (
	"context"
	"errors"
	"fmt"
)

// Asker runs 'gluster --mode=script --xml' with further arguments on a node and returns what it printed. An error means that
// it could not be run.
type Asker func(ctx context.Context, args ...string) ([]byte, error)

// Gather asks glusterd for everything that a report of this depth says beside what the agent itself knows (UUID, Version, Stores).
// What could not be asked for is said in Problem, or in Volume.Unknown; an error means that glusterd does not answer at all.
func Gather(ctx context.Context, ask Asker, depth string) (*Report, error) {
	peers, err := get(ctx, ask, ParsePeers, "peer", "status")
	if err != nil {
		return nil, err
	}
	r := &Report{Peers: peers}
	if depth != DepthPool {
		return r, nil
	}
	var problems [3]error
	r.OpVersion, problems[0] = get(ctx, ask, ParseOpVersion, "volume", "get", "all", "cluster.op-version")
	r.MaxOpVersion, problems[1] = get(ctx, ask, ParseOpVersion, "volume", "get", "all", "cluster.max-op-version")
	r.Pool, problems[2] = gatherPool(ctx, ask)
	if err := errors.Join(problems[:]...); err != nil {
		r.Problem = err.Error()
	}
	return r, nil
}

// gatherPool returns nil when the volumes cannot be told: no volumes would be another word.
func gatherPool(ctx context.Context, ask Asker) (*Pool, error) {
	volumes, err := get(ctx, ask, ParseVolumes, "volume", "info", "all")
	if err != nil {
		return nil, err
	}
	p := &Pool{Volumes: volumes}
	status := func(out []byte) (struct{}, error) { return struct{}{}, AddStatus(volumes, out) }
	_, err = get(ctx, ask, status, "volume", "status", "all")
	for i := range volumes {
		v := &volumes[i]
		if v.State != VolumeStarted {
			continue
		}
		if err != nil {
			v.Unknown = err.Error()
			continue
		}
		v.gather(ctx, ask)
	}
	return p, nil
}

// gather asks for what only single volumes tell.
func (v *Volume) gather(ctx context.Context, ask Asker) {
	into := func(f func(*Volume, []byte) error, args ...string) error {
		_, err := get(ctx, ask, func(out []byte) (struct{}, error) { return struct{}{}, f(v, out) }, append([]string{"volume"}, args...)...)
		return err
	}
	var errs []error
	if v.SetSize() > 1 {
		errs = append(errs, into(AddHeals, "heal", v.Name, "info", "summary"))
	}
	if v.splitBrain() && v.Disperse == 0 {
		errs = append(errs, into(AddSplitBrains, "heal", v.Name, "info", "split-brain"))
	}
	switch t := v.Task; {
	case t == nil:
	case t.Kind == TaskRemoveBrick:
		errs = append(errs, into(AddTask, append(append([]string{"remove-brick", v.Name}, t.Bricks...), "status")...))
	case t.Kind == TaskRebalance:
		// A node that lost its power meanwhile has forgotten the rebalance, and glusterd then refuses to tell anything of it (10.3).
		// What 'volume status' said has to do.
		if err := into(AddTask, "rebalance", v.Name, "status"); !errors.As(err, new(*Failure)) {
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		v.Unknown = err.Error()
	}
}

func (v *Volume) splitBrain() bool {
	for _, b := range v.Bricks {
		if b.Heal != nil && b.Heal.SplitBrain > 0 {
			return true
		}
	}
	return false
}

func get[T any](ctx context.Context, ask Asker, parse func([]byte) (T, error), args ...string) (T, error) {
	out, err := ask(ctx, args...)
	if err == nil {
		var t T
		if t, err = parse(out); err == nil {
			return t, nil
		}
	}
	var none T
	return none, fmt.Errorf("while asking gluster for %v: %w", args, err)
}
