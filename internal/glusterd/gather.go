package glusterd

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Asker runs 'gluster --mode=script --xml' with further arguments on a node and returns what it printed. An error means that
// it could not be run. Several questions may be asked at a time.
type Asker func(ctx context.Context, args ...string) ([]byte, error)

// Gather asks glusterd for everything that a report of this depth says beside what the agent itself knows (UUID, Version, Stores).
// What could not be asked for is said in Problem, or in Volume.Unknown; an error means that glusterd does not answer at all.
func Gather(ctx context.Context, ask Asker, depth string) (*Report, error) {
	peers, err := get(ctx, ask, ParsePeers, "peer", "status")
	if err != nil {
		return nil, err
	}
	r := &Report{Peers: peers}
	if depth == DepthPool {
		r.gatherPool(ctx, ask)
	}
	return r, nil
}

// gatherPool asks for the pool. Pool stays nil when the volumes cannot be told: no volumes would be another word.
func (r *Report) gatherPool(ctx context.Context, ask Asker) {
	var problems [3]error
	r.OpVersion, problems[0] = get(ctx, ask, ParseOpVersion, "volume", "get", "all", "cluster.op-version")
	volumes, err := get(ctx, ask, ParseVolumes, "volume", "info", "all")
	if err == nil {
		r.Pool = &Pool{Volumes: volumes}
	}
	problems[1] = err
	// All questions up to here are answered by this node alone. The others wait for a node that was cut off until it is given up; bricks are
	// asked as clients ask them, whatever the glusterds do meanwhile.
	bricks := askAhead(ctx, ask, healQuestions(volumes))
	status := func(out []byte) (struct{}, error) { return struct{}{}, AddStatus(volumes, out) }
	_, silent := getTwice(ctx, ask, status, "volume", "status", "all")
	if silent == nil { // or this question to all nodes has no answer either
		r.MaxOpVersion, problems[2] = getTwice(ctx, ask, ParseOpVersion, "volume", "get", "all", "cluster.max-op-version")
	}
	if peers, err := get(ctx, ask, ParsePeers, "peer", "status"); err == nil {
		r.Peers = peers // a node may have been given up meanwhile
	}
	for i := range volumes {
		if v := &volumes[i]; v.State == VolumeStarted {
			v.gather(ctx, bricks, silent)
		}
	}
	if err := errors.Join(problems[:]...); err != nil {
		r.Problem = err.Error()
	}
}

// healQuestions ask for what is to be healed in each started volume that has copies.
func healQuestions(volumes []Volume) (questions [][]string) {
	for i := range volumes {
		if v := &volumes[i]; v.State == VolumeStarted && v.SetSize() > 1 {
			questions = append(questions, append([]string{"volume"}, v.healQuestion()...))
		}
	}
	return questions
}

func (v *Volume) healQuestion() []string { return []string{"heal", v.Name, "info", "summary"} }

// gather asks for what only single volumes tell. silent is why the status of the volumes could not be asked, or nil.
func (v *Volume) gather(ctx context.Context, ask Asker, silent error) {
	into := func(f func(*Volume, []byte) error, args ...string) error {
		_, err := get(ctx, ask, func(out []byte) (struct{}, error) { return struct{}{}, f(v, out) }, append([]string{"volume"}, args...)...)
		return err
	}
	errs := []error{silent}
	v.Silent = silent != nil
	if v.SetSize() > 1 {
		err := into(AddHeals, v.healQuestion()...)
		v.Silent = v.Silent && err != nil
		errs = append(errs, err)
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

// healsAtOnce is how many volumes are asked at the same time for what is to be healed. Of one with a brick that cannot be reached the program
// waits 10 s for it (10.3).
const healsAtOnce = 8

// askAhead begins to ask some questions, a few at a time, and returns an Asker that has their answers and asks all else itself.
func askAhead(ctx context.Context, ask Asker, questions [][]string) Asker {
	ahead := map[string]func() ([]byte, error){}
	tickets := make(chan struct{}, healsAtOnce)
	for _, args := range questions {
		var out []byte
		var err error
		done := make(chan struct{})
		go func() {
			defer close(done)
			tickets <- struct{}{}
			defer func() { <-tickets }()
			out, err = ask(ctx, args...)
		}()
		ahead[strings.Join(args, " ")] = func() ([]byte, error) { <-done; return out, err }
	}
	return func(ctx context.Context, args ...string) ([]byte, error) {
		if answer := ahead[strings.Join(args, " ")]; answer != nil {
			return answer()
		}
		return ask(ctx, args...)
	}
}

// getTwice is get of what all nodes are asked for. One that goes away in the middle of it fails the question, and not the next one.
func getTwice[T any](ctx context.Context, ask Asker, parse func([]byte) (T, error), args ...string) (T, error) {
	t, err := get(ctx, ask, parse, args...)
	if err != nil && ctx.Err() == nil {
		t, err = get(ctx, ask, parse, args...)
	}
	return t, err
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
