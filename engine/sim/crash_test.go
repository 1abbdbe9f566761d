package sim_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// say carries out commands as a scenario file has them.
func (s *stage) say(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		d := &datadriven.TestData{}
		for i, word := range strings.Fields(line) {
			if i == 0 {
				d.Cmd = word
				continue
			}
			key, value, set := strings.Cut(word, "=")
			arg := datadriven.CmdArg{Key: key}
			if set {
				arg.Vals = []string{value}
			}
			d.CmdArgs = append(d.CmdArgs, arg)
		}
		if _, err := s.do(d); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
	}
}

// killed counts the writes of the leader, the engine's and the actions' records, those that change nothing among them, and kills
// it before one of them. Before it
// dies the write is refused, as by a server that is gone.
type killed struct {
	at, writes atomic.Int64
	kill       func()
}

func (k *killed) write() error {
	if k.writes.Add(1) != k.at.Load() {
		return nil
	}
	k.kill()
	return context.Canceled
}

// recorder records actions until the leader is killed.
type recorder struct {
	action.Recorder
	killed *killed
}

func (r recorder) PutStatus(ctx context.Context, a *api.Action) (*api.Action, error) {
	if err := r.killed.write(); err != nil {
		return nil, err
	}
	return r.Recorder.PutStatus(ctx, a)
}

// TestHosts_leaderDiesAtEveryWrite kills the leader before each single write, of the engine and of the action's record, while
// an action on a host is carried out. Another leader always brings it to the same end.
func TestHosts_leaderDiesAtEveryWrite(t *testing.T) {
	up := []string{
		"add-host h1 disks=d1", "add-host h2 disks=d2", "add-host h3 disks=d3", "add-host h4 disks=d3", "add-cluster t",
		"add-node n1 host=h1 devices=d1", "add-node n2 host=h2 devices=d2", "add-node n3 host=h3 devices=d3", "tick 2s",
	}
	for _, c := range []struct {
		name   string
		before []string
		action string
		// want is the host h3 at the end.
		want string
	}{
		{"maintenance", nil, "action a host.enter-maintenance host=h3", "h3 Maintenance \"\"\n  node n3\n  t-toy-n3 wanted Stopped is Stopped\n"},
		{"exit", []string{"host-mode h3 Maintenance", "tick 2s"}, "action a host.exit-maintenance host=h3",
			"h3 Active \"\"\n  node n3\n  t-toy-n3 wanted Running is Running\n"},
		{"drain", nil, "action a host.drain host=h3", "h3 Drain \"\"\n  node n3\n"},
		{"remove", nil, "action a host.remove host=h3 storageNodes=Delete", "gone"},
		{"remove the dead", []string{"fail-host h3"}, "action a host.remove host=h3 storageNodes=Delete gone=Yes", "gone"},
		{"replace", []string{"fail-host h3"}, "action a host.replace host=h3 by=h4", "gone"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			writes := int64(1)
			for at := int64(0); at <= writes; at++ {
				synctest.Test(t, func(t *testing.T) {
					writes = dieAt(t, at, slices.Concat(up, c.before), c.action, c.want)
				})
			}
			t.Logf("the leader was killed before each of %d writes", writes)
			if writes < 8 {
				t.Errorf("there were only %d writes: are they counted?", writes)
			}
		})
	}
}

// dieAt plays one action in which the leader dies before the write of this number; 0 means never. It returns how many writes
// there were.
func dieAt(t *testing.T, at int64, before []string, act, want string) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newStage(ctx)
	s.killed = &killed{kill: func() { s.leader.cancel() }}
	s.Fail = func(string, string) error { return s.killed.write() }
	s.lead()
	s.say(t, before...)
	if err := s.Run(ctx, 10*time.Second, 150*time.Second); err != nil { // a dead host is dead for long enough
		t.Fatal(err)
	}
	s.killed.writes.Store(0)
	s.killed.at.Store(at)
	s.say(t, act)
	s.pass(t)
	s.killed.at.Store(0)
	if s.leader.ctx.Err() != nil {
		s.leader.work.Wait() // what it did was cut off: its error is of no interest
		s.lead()
		s.pass(t)
	}
	defer func() {
		if err := s.standDown(); err != nil {
			t.Error(err)
		}
	}()
	if a, err := s.actions.Get(ctx, actionNamed("a")); err != nil || a.Status.State != api.ActionDone {
		t.Errorf("killed before write %d: the action is %s: %s (%v)", at, a.Status.State, a.Status.Message, err)
	}
	have, err := s.showHost("h3")
	if err != nil {
		have = "gone"
	}
	if have != want {
		t.Errorf("killed before write %d: the host is %q, want %q", at, have, want)
	}
	if all, err := s.show("t"); err != nil || want == "gone" && !strings.Contains(all, "Ready=True") {
		t.Errorf("killed before write %d: the cluster is not well (%v):\n%s", at, err, all)
	}
	return s.killed.writes.Load()
}

// pass lets time pass until the action has ended, at most five minutes, and then agents and engine come to rest.
func (s *stage) pass(t *testing.T) {
	t.Helper()
	for range 30 {
		if err := s.Run(s.ctx, time.Second, 10*time.Second); err != nil {
			t.Fatal(err)
		}
		a, err := s.actions.Get(s.ctx, actionNamed("a"))
		if err != nil || a.Status.State.Final() || s.leader.ctx.Err() != nil {
			break
		}
	}
	if err := s.Run(s.ctx, time.Second, 10*time.Second); err != nil {
		t.Fatal(err)
	}
}

// newStage is a world with a toy storage system, and nobody who leads.
func newStage(ctx context.Context) *stage {
	toy := sim.NewToy()
	return &stage{
		World: sim.NewWorld(toy), ctx: ctx, toy: toy, told: map[string]int{}, actions: actiontest.NewMemory(),
		killed: &killed{kill: func() {}},
	}
}
