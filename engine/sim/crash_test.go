package sim_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/datadriven"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/action/actiontest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
	"github.com/holdfast-storage/holdfast/internal/failpoint"
	"github.com/holdfast-storage/holdfast/test/tier"
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
// it before one of them. Before it dies the write is refused, as by a server that is gone.
type killed struct {
	at, writes atomic.Int64
	kill       func()
	// code, when set, is told where in the code it was.
	code *failpoint.Points
}

func (k *killed) write() error {
	if k.writes.Add(1) != k.at.Load() {
		return nil
	}
	if k.code != nil {
		k.code.Note()
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

// reads are the methods of an engine.Store that change nothing. A new one is a write, unless it is named here.
var reads = []string{"Clusters", "Cluster", "View", "Lock", "Secrets", "Told", "Hosts", "Host", "Notify"}

// hostWrites are the places in the code of the actions on hosts that lead to a write.
func hostWrites(t *testing.T) *failpoint.Points {
	t.Helper()
	var writes []string
	for m := range reflect.TypeFor[engine.Store]().Methods() {
		if !slices.Contains(reads, m.Name) {
			writes = append(writes, m.Name)
		}
	}
	code, err := failpoint.List("../hosts", writes...)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// hostStory is an action on the host h3 of a cluster on three hosts.
type hostStory struct {
	name   string
	before []string
	action string
	// then is what happens while the action goes on, and end how it ends.
	then func(*testing.T, *stage)
	end  api.ActionState
	// want is the host h3 at the end.
	want string
}

// says makes a part of a story of commands.
func says(lines ...string) func(*testing.T, *stage) {
	return func(t *testing.T, s *stage) { s.say(t, lines...) }
}

// lateRun is a run of the cluster that began before the action: once more it writes the old host into a node that was moved.
func lateRun(t *testing.T, s *stage) {
	for s.leader.ctx.Err() == nil {
		synctest.Wait() // the leader does nothing between what is read and what is written here
		a, err := s.actions.Get(s.ctx, actionNamed("a"))
		if err != nil || a.Status.State.Final() {
			t.Fatalf("the action ended too soon: %v", err)
		}
		if emptying(a) {
			break
		}
		s.say(t, "tick 10ms")
	}
	if a, err := s.actions.Get(s.ctx, actionNamed("a")); err != nil || !emptying(a) {
		return // the leader died in another step
	}
	n := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "n3"}}
	if err := s.Get(s.ctx, n); err != nil {
		t.Fatal(err)
	}
	n.Status.Host = "h3"
	if err := s.UpdateStatus(s.ctx, n); err != nil {
		t.Fatal(err)
	}
}

func emptying(a *api.Action) bool {
	return slices.ContainsFunc(a.Status.Steps, func(x api.ActionStep) bool { return x.Name == "empty-host" && x.State == api.StepRunning })
}

func hostStories() []hostStory {
	const well = "h3 Active \"\"\n  node n3\n  t-toy-n3 wanted Running is Running\n"
	dead := []string{"fail-host h3"}
	cancelled := says("tick 2s", "cancel a", "restore-host h3")
	return []hostStory{
		{"maintenance", nil, "action a host.enter-maintenance host=h3", nil, api.ActionDone, "h3 Maintenance \"\"\n  node n3\n  t-toy-n3 wanted Stopped is Stopped\n"},
		{"maintenance, cancelled", dead, "action a host.enter-maintenance host=h3", cancelled, api.ActionCancelled, well},
		{"exit", []string{"host-mode h3 Maintenance", "tick 2s"}, "action a host.exit-maintenance host=h3", nil, api.ActionDone, well},
		{"drain", nil, "action a host.drain host=h3", nil, api.ActionDone, "h3 Drain \"\"\n  node n3\n"},
		{"drain, cancelled", dead, "action a host.drain host=h3", cancelled, api.ActionCancelled, well},
		{"remove", nil, "action a host.remove host=h3 storageNodes=Delete", nil, api.ActionDone, "gone"},
		{"remove the dead", dead, "action a host.remove host=h3 storageNodes=Delete gone=Yes", nil, api.ActionDone, "gone"},
		{"remove, cancelled", nil, "action a host.remove host=h3 storageNodes=Delete", says("fail-host h3", "tick 2s", "cancel a", "restore-host h3"), api.ActionCancelled, well},
		{"replace", dead, "action a host.replace host=h3 gone=Yes by=h4", nil, api.ActionDone, "gone"},
		{"replace beside a run", dead, "action a host.replace host=h3 gone=Yes by=h4", lateRun, api.ActionDone, "gone"},
	}
}

// TestHosts_leaderDiesAtEveryWrite kills the leader before each single write, of the engine and of the action's record, while
// an action on a host is carried out. Another leader always brings it to the same end. Which places write is read from the code:
// one that no leader was killed at fails the test.
func TestHosts_leaderDiesAtEveryWrite(t *testing.T) {
	code := hostWrites(t)
	missing, all := code.Missing()
	// Under the race detector goroutines take turns at random, and the write of a number is another one each time.
	for n := 0; n < 3 && len(missing) > 0 && (n == 0 || !testing.Short()); n++ {
		killAtEveryWrite(t, code)
		missing, all = code.Missing()
	}
	if (len(missing) > 0 && !testing.Short()) || all < 5 {
		t.Errorf("of %d places in the code no leader was killed at these: %s", all, strings.Join(missing, ", "))
	}
	t.Logf("%d places in the code", all)
}

func killAtEveryWrite(t *testing.T, code *failpoint.Points) {
	t.Run("stories", func(t *testing.T) {
		for _, story := range hostStories() {
			t.Run(story.name, func(t *testing.T) {
				t.Parallel()
				writes := int64(1)
				for at := int64(0); at <= writes; at++ {
					if at > 0 && !tier.Tries(t, int(at), 5) {
						continue
					}
					synctest.Test(t, func(t *testing.T) { writes = story.dieAt(t, at, code) })
				}
				t.Logf("the leader was killed before each of %d writes", writes)
				if writes < 8 {
					t.Errorf("there were only %d writes: are they counted?", writes)
				}
			})
		}
	})
}

// dieAt plays the story; the leader dies before the write of this number, 0 means never. It returns how many writes there were.
func (c hostStory) dieAt(t *testing.T, at int64, code *failpoint.Points) int64 {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := newStage(ctx)
	s.killed = &killed{kill: func() { s.leader.cancel() }, code: code}
	s.Fail = func(string, string) error { return s.killed.write() }
	s.lead()
	s.say(t, "add-host h1 disks=d1", "add-host h2 disks=d2", "add-host h3 disks=d3", "add-host h4 disks=d3", "add-cluster t",
		"add-node n1 host=h1 devices=d1", "add-node n2 host=h2 devices=d2", "add-node n3 host=h3 devices=d3", "tick 2s")
	s.say(t, c.before...)
	if err := s.Run(ctx, 10*time.Second, 150*time.Second); err != nil { // a dead host is dead for long enough
		t.Fatal(err)
	}
	s.killed.writes.Store(0)
	s.killed.at.Store(at)
	s.say(t, c.action)
	if c.then != nil {
		c.then(t, s)
	}
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
	if a, err := s.actions.Get(ctx, actionNamed("a")); err != nil || a.Status.State != c.end {
		t.Errorf("killed before write %d: the action is %s: %s (%v)", at, a.Status.State, a.Status.Message, err)
	}
	have, err := s.showHost("h3")
	if err != nil {
		have = "gone"
	}
	if have != c.want {
		t.Errorf("killed before write %d: the host is %q, want %q", at, have, c.want)
	}
	if all, err := s.show("t"); err != nil || c.want == "gone" && !strings.Contains(all, "Ready=True") {
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
