package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
	"github.com/holdfast-storage/holdfast/test/kstatus"
)

// The ids of two machines.
const (
	board1 = "11111111111111111111111111111111"
	board2 = "22222222222222222222222222222222"
)

// pair is a server in memory, a clock, and the machines that run as host h4.
type pair struct {
	t    *testing.T
	api  client.WithWatch
	time time.Time
	// fails is what the server answers to a write of the Lease, and lost has it write all the same.
	fails error
	lost  bool
}

func newPair(t *testing.T) *pair {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	p := &pair{t: t, time: time.Unix(1_000_000_000, 0)}
	p.api = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if p.fails != nil && !apierrors.IsForbidden(p.fails) {
				return p.fails
			}
			return c.Get(ctx, key, o, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return p.write(o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return p.write(o, func() error { return c.Patch(ctx, o, patch, opts...) })
		},
	})
	return p
}

func (p *pair) write(o client.Object, effect func() error) error {
	if apierrors.IsForbidden(p.fails) && len(o.GetAnnotations()) == 0 {
		return effect()
	}
	if p.lost {
		_ = effect()
	}
	if p.fails != nil {
		return p.fails
	}
	return effect()
}

// machine is the agent on one machine.
type machine struct {
	*agent
	p *pair
}

// start starts an agent with a data directory on a machine with a boot.
func (p *pair) start(dir, board, boot, address string, change ...func(*Config)) *machine {
	p.t.Helper()
	rt, err := detached.New(detached.Config{Dir: p.t.TempDir()})
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = rt.Close() })
	cfg := Config{
		Name: "h4", DataDir: dir, RunDir: p.t.TempDir(), Runtime: rt, Inventory: &fixedDevices{}, Machine: board, Address: address,
		client: p.api, now: func() time.Time { return p.time },
	}
	for _, c := range change {
		c(&cfg)
	}
	a, err := newAgent(cfg)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(a.work.queue.ShutDown)
	p.t.Cleanup(a.acts.queue.ShutDown)
	p.t.Cleanup(a.reports.queue.ShutDown)
	a.sole.self.Boot = boot
	return &machine{a, p}
}

// beats lets time pass, in which the agents of some machines beat.
func (p *pair) beats(length time.Duration, machines ...*machine) {
	p.t.Helper()
	for end := p.time.Add(length); ; p.time = p.time.Add(BeatInterval) {
		for _, m := range machines {
			_ = m.renew(p.t.Context())
			m.noticeTwin(p.t.Context())
		}
		if !p.time.Before(end) {
			return
		}
	}
}

// want checks the standing of a machine.
func (m *machine) want(want standing, when string) {
	m.p.t.Helper()
	if is, _ := m.sole.standing(); is != want || (m.sole.holds() == "") != (want == alone) {
		m.p.t.Errorf("%s: standing %d, want %d: %q", when, is, want, m.sole.holds())
	}
}

// elsewhere checks whether the daemons of a directory may run on another machine.
func (p *pair) elsewhere(dir, board string, want bool, when string) {
	p.t.Helper()
	if got, err := Elsewhere(dir, board); err != nil || got != want {
		p.t.Errorf("%s: the daemons may run elsewhere: %v, %v; want %v", when, got, err, want)
	}
}

// clone copies a data directory.
func (p *pair) clone(dir string) string {
	p.t.Helper()
	to := p.t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		p.t.Fatal(err)
	}
	return to
}

const boot1, boot2 = "8f0f1d4e-4f8a-4f0e-8d55-9d7d3b1f0a11", "1c2d1d4e-4f8a-4f0e-8d55-9d7d3b1f0a22"

// A process that is started again, and a machine that boots, go on at once, wherever the last run was killed.
func TestTwin_restartAndBoot(t *testing.T) {
	for _, killed := range []time.Duration{0, BeatInterval, quiet} {
		for _, boot := range []string{boot1, boot2} {
			p, dir := newPair(t), t.TempDir()
			p.beats(killed, p.start(dir, board1, boot1, "10.0.0.4"))
			again := p.start(dir, board1, boot, "10.0.0.4")
			again.want(unsure, "before the first answer")
			p.beats(0, again)
			again.want(alone, "after the first beat")
			p.beats(time.Minute, again)
			again.want(alone, "later")
		}
	}
}

// An agent without a first answer starts nothing; one that was alone stays so while the servers are away.
func TestTwin_serverAway(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	p.fails = errors.New("connection refused")
	a := p.start(dir, board1, boot1, "10.0.0.4")
	p.beats(time.Minute, a)
	a.want(unsure, "no server answers")
	p.fails = nil
	p.beats(0, a)
	a.want(alone, "a server answers")
	p.fails = errors.New("connection refused")
	p.beats(time.Hour, a)
	a.want(alone, "the servers are away for an hour")
	p.fails = nil
	p.beats(time.Minute, a)
	a.want(alone, "the servers are back")
}

// An answer that is lost on its way makes nobody another machine.
func TestTwin_lostAnswers(t *testing.T) {
	p := newPair(t)
	a := p.start(t.TempDir(), board1, boot1, "10.0.0.4")
	for range 3 {
		p.fails, p.lost = errors.New("connection reset"), true
		p.beats(0, a)
		p.fails, p.lost = nil, false
		p.beats(BeatInterval, a)
		a.want(alone, "an answer was lost")
	}
}

// The disk in another machine, whose old one is dead, goes on after a moment of silence; after that, a restart does at once.
func TestTwin_replacedMachine(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	p.elsewhere(dir, board1, false, "before the first start")
	p.beats(time.Minute, p.start(dir, board1, boot1, "10.0.0.4"))
	p.elsewhere(dir, board1, false, "on the same machine")
	p.elsewhere(dir, board2, true, "on another machine")
	b := p.start(dir, board2, boot2, "10.0.0.4")
	p.beats(quiet-BeatInterval, b)
	b.want(waiting, "whether the old machine lives is not known")
	p.beats(BeatInterval, b)
	b.want(alone, "the old machine is silent")
	p.elsewhere(dir, board2, false, "it is at home here now")
	again := p.start(dir, board2, boot2, "10.0.0.4")
	p.beats(0, again)
	again.want(alone, "the agent was started again")
}

// An upgrade gives the machine another id. The note and the Lease of the earlier version are of
// this machine all the same, and the note is written anew.
func TestTwin_upgrade(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	p.beats(time.Minute, p.start(dir, board1, boot1, "10.0.0.4"))
	upgraded := func(c *Config) { c.FormerMachine = board1 }
	if got, err := Elsewhere(dir, board2, board1); err != nil || got {
		t.Errorf("the daemons of the same machine may run elsewhere: %v, %v", got, err)
	}
	a := p.start(dir, board2, boot1, "10.0.0.4", upgraded)
	if a.sole.moved {
		t.Error("the machine is taken for another one")
	}
	p.beats(0, a)
	a.want(alone, "after the upgrade")
	p.elsewhere(dir, board2, false, "the note is written anew")
	b := p.start(p.clone(dir), strings.Repeat("3", 32), boot2, "10.0.0.9", func(c *Config) { c.FormerMachine = strings.Repeat("4", 32) })
	p.beats(0, b)
	b.want(waiting, "an upgraded clone")
}

// A clone on another board writes nothing before it has seen that the machine lives; then both know, and neither starts anything.
func TestTwin_clone(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	a := p.start(dir, board1, boot1, "10.0.0.4")
	p.beats(time.Minute, a)
	b := p.start(p.clone(dir), board2, boot2, "10.0.0.9")
	p.beats(0, b)
	b.want(waiting, "the first look of the clone")
	p.beats(3*BeatInterval, a, b)
	a.want(contested, "the machine sees the clone")
	b.want(contested, "the clone sees the machine")
	for _, m := range []*machine{a, b} {
		for _, want := range []string{"two machines run as host h4", "10.0.0.4 (boot id " + boot1, "10.0.0.9 (boot id " + boot2} {
			if !strings.Contains(m.sole.holds(), want) {
				t.Errorf("nothing of %q in %q", want, m.sole.holds())
			}
		}
		if n, err := instance.ReadNote(m.paths.machine()); err != nil || n.Other == nil || n.Machine != board1 {
			t.Errorf("the note is %+v: %v", n, err)
		}
	}
	if a.sole.holds() != b.sole.holds() {
		t.Errorf("they say %q and %q", a.sole.holds(), b.sole.holds())
	}
	p.elsewhere(dir, board1, true, "while a clone runs")
	p.beats(time.Hour, a, b)
	a.want(contested, "an hour later, the machine")
	b.want(contested, "an hour later, the clone")
	p.beats(quiet, a)
	a.want(alone, "the clone was stopped")
	if n, err := instance.ReadNote(a.paths.machine()); err != nil || n.Other != nil {
		t.Errorf("the note is %+v: %v", n, err)
	}
}

// When the machine of the disk falls silent, as in a boot, the clone does not take its place for some minutes.
func TestTwin_machineReboots(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	a := p.start(dir, board1, boot1, "10.0.0.4")
	p.beats(time.Minute, a)
	b := p.start(p.clone(dir), board2, boot2, "10.0.0.9")
	p.beats(time.Minute, a, b)
	p.beats(movedQuiet-BeatInterval, b)
	b.want(contested, "the machine may be booting")
	p.beats(2*BeatInterval, b)
	b.want(alone, "a person has stopped the machine")
}

// An agent that is killed and started again while another machine runs as the host does not begin anew.
func TestTwin_killedWhileContested(t *testing.T) {
	for _, board := range []string{board1, board2} {
		p, dir := newPair(t), t.TempDir()
		a := p.start(dir, board1, boot1, "10.0.0.4")
		p.beats(time.Minute, a)
		b := p.start(p.clone(dir), board, boot2, "10.0.0.9")
		p.beats(time.Minute, a, b)
		a = p.start(dir, board1, boot1, "10.0.0.4")
		a.want(contested, "started again")
		p.beats(0, a)
		a.want(contested, "after the first beat")
		p.beats(time.Minute, a, b)
		a.want(contested, "the clone goes on")
		b.want(contested, "the machine was started again")
		p.beats(quiet, a)
		a.want(alone, "the clone was stopped")
	}
}

// Machines that cannot be told apart by their boards are by their turns, within one beat.
func TestTwin_sameBoard(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	a := p.start(dir, "", boot1, "10.0.0.4")
	p.beats(time.Minute, a)
	b := p.start(p.clone(dir), "", boot1, "10.0.0.9")
	p.beats(BeatInterval, a, b)
	a.want(contested, "the machine")
	b.want(contested, "the clone")
	p.beats(time.Minute, b)
	b.want(alone, "the machine was stopped")
}

// A copy of the memory, too, has the same instance.
func TestTwin_sameMemory(t *testing.T) {
	p := newPair(t)
	a := p.start(t.TempDir(), board1, boot1, "10.0.0.4")
	b := p.start(t.TempDir(), board1, boot1, "10.0.0.4")
	b.sole.self = a.sole.self
	p.beats(BeatInterval, a)
	p.time = p.time.Add(time.Second)
	p.beats(BeatInterval, a, b)
	a.want(contested, "the machine")
}

// An earlier version on the host writes no instance: after it, this one goes on at once.
func TestTwin_earlierAgent(t *testing.T) {
	p := newPair(t)
	now := metav1.NowMicro()
	old := &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.HostLease("h4")}, Spec: coordv1.LeaseSpec{RenewTime: &now}}
	if err := p.api.Create(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	a := p.start(t.TempDir(), board1, boot1, "10.0.0.4")
	p.beats(0, a)
	a.want(alone, "after an earlier version")
}

// Servers of an earlier version refuse an instance: then the heartbeat goes on without one.
func TestTwin_earlierServer(t *testing.T) {
	p := newPair(t)
	p.fails = apierrors.NewForbidden(schema.GroupResource{Resource: "leases"}, "host-h4", errors.New("no annotations"))
	a := p.start(t.TempDir(), board1, boot1, "10.0.0.4")
	p.beats(time.Minute, a)
	a.want(alone, "with an earlier server")
	var l coordv1.Lease
	if err := p.api.Get(t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: api.HostLease("h4")}, &l); err != nil || len(l.Annotations) != 0 {
		t.Errorf("annotations %v: %v", l.Annotations, err)
	}
	p.fails = nil
	p.beats(time.Minute, a)
	a.want(alone, "the servers were upgraded")
}

// A backup that is restored brings the Lease of an earlier run back: nothing is started for a moment, and then it goes on.
func TestTwin_restoredBackup(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	a := p.start(dir, board1, boot1, "10.0.0.4")
	p.beats(BeatInterval, a)
	var saved, now coordv1.Lease
	key := client.ObjectKey{Namespace: api.SystemNamespace, Name: api.HostLease("h4")}
	if err := p.api.Get(t.Context(), key, &saved); err != nil {
		t.Fatal(err)
	}
	b := p.start(dir, board1, boot2, "10.0.0.4")
	p.beats(time.Minute, b)
	if err := p.api.Get(t.Context(), key, &now); err != nil {
		t.Fatal(err)
	}
	saved.ResourceVersion = now.ResourceVersion
	if err := p.api.Update(t.Context(), &saved); err != nil {
		t.Fatal(err)
	}
	p.beats(0, b)
	b.want(contested, "an earlier instance in the Lease")
	p.beats(time.Minute, b)
	b.want(alone, "a minute later")
}

// What an agent cannot read of its last run keeps it from nothing.
func TestTwin_damagedNote(t *testing.T) {
	p, dir := newPair(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "agent"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "agent", instance.NoteFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := p.start(dir, board1, boot1, "10.0.0.4")
	p.beats(0, a)
	a.want(alone, "after a damaged note")
}

// While two machines run as the host, what runs goes on, and nothing is started, stopped, removed or told of the host. Afterwards all of that is done.
func TestRun_twins(t *testing.T) {
	w := newWorld(t, sleeperDaemon("runs"), sleeperDaemon("leaves"), sleeperDaemon("stray"), sleeperDaemon("stops"))
	w.run()
	pids := map[string]int{}
	for _, name := range []string{"runs", "leaves", "stray", "stops"} {
		pids[name] = int(w.awaitState(name, api.DaemonRunning).Status.PID)
	}
	w.halt()
	self, err := instance.New("")
	if err != nil {
		t.Fatal(err)
	}
	note, err := json.Marshal(instance.Note{Self: &self, Other: &instance.Instance{Boot: boot2, Process: strings.Repeat("0", 16), Address: "10.0.0.9"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "data/agent", instance.NoteFile), note, 0o600); err != nil {
		t.Fatal(err)
	}
	w.delete("leaves")
	w.change("stops", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	stray := w.daemon("stray")
	stray.Finalizers = nil
	if err := errors.Join(w.api.Update(t.Context(), stray), w.api.Delete(t.Context(), stray), client.IgnoreNotFound(w.api.Delete(t.Context(), &api.Host{ObjectMeta: metav1.ObjectMeta{Name: "h1"}}))); err != nil {
		t.Fatal(err)
	}
	var later atomic.Int64
	w.now = func() time.Time { return time.Now().Add(time.Duration(later.Load())) }
	w.run()
	w.create(sleeperDaemon("new"))
	d := w.awaitState("new", api.DaemonPending)
	if !strings.Contains(d.Status.Message, "two machines run as host h1: ") || !strings.Contains(d.Status.Message, "10.0.0.9 (boot id "+boot2) {
		t.Errorf("message %q", d.Status.Message)
	}
	w.await("the first heartbeat", func() bool {
		return w.api.Get(t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: api.HostLease("h1")}, &coordv1.Lease{}) == nil
	})
	for name, pid := range pids {
		if !runtimetest.Alive(pid) {
			t.Errorf("%s was ended", name)
		}
	}
	if len(w.runtime.Names()) != len(pids) || w.service.count(&w.service.destroyed) != 0 {
		t.Errorf("running %v, destroyed %v", w.runtime.Names(), w.service.destroyed)
	}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: "h1"}, &api.Host{}); !apierrors.IsNotFound(err) {
		t.Errorf("the host was reported: %v", err)
	}
	later.Store(int64(quiet))
	w.awaitState("new", api.DaemonRunning)
	w.awaitGone("leaves")
	w.awaitState("stops", api.DaemonStopped)
	w.await("the end of the stray process", func() bool { return !runtimetest.Alive(pids["stray"]) })
	w.await("a report of the host", func() bool { return w.api.Get(t.Context(), client.ObjectKey{Name: "h1"}, &api.Host{}) == nil })
	if s := w.awaitState("runs", api.DaemonRunning).Status; int(s.PID) != pids["runs"] {
		t.Errorf("it was started again: %+v", s)
	}
}

// TestHeld: what is told of a running daemon while nothing may be done about it, by what was told before.
func TestHeld(t *testing.T) {
	yes, no := metav1.ConditionTrue, metav1.ConditionFalse
	for name, test := range map[string]struct {
		state          api.DaemonState
		seen           int64
		ready, stalled metav1.ConditionStatus
		want           string
		wants          kstatus.State
	}{
		"as it was":             {api.DaemonRunning, 2, yes, no, "", kstatus.Ready},
		"back from a pause":     {api.DaemonBackOff, 2, no, no, "", kstatus.Ready},
		"a new spec":            {api.DaemonRunning, 1, yes, no, notInEffect + "waiting for another", kstatus.Reconciling},
		"a newer spec":          {api.DaemonRunning, 1, no, yes, notInEffect + "waiting for another", kstatus.Reconciling},
		"a spec that waits":     {api.DaemonRunning, 2, no, no, notInEffect + "waiting for another", kstatus.Reconciling},
		"a spec that is faulty": {api.DaemonRunning, 2, no, yes, "as told", kstatus.Stalled},
	} {
		d := sleeperDaemon("one", func(d *api.Daemon) {
			d.Generation = 2
			d.Status = api.DaemonStatus{State: test.state, ObservedGeneration: test.seen, Message: "as told"}
			told := map[string]metav1.ConditionStatus{api.ConditionReady: test.ready, api.ConditionStalled: test.stalled}
			for kind, status := range told {
				meta.SetStatusCondition(&d.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Told"})
			}
		})
		w := newWorld(t, d)
		a := newPair(t).start(t.TempDir(), board1, boot1, "10.0.0.4")
		a.client = w.api
		if err := a.tellHeld(t.Context(), w.daemon("one"), runtime.State{Running: true, PID: 7}, "another"); err != nil {
			t.Fatal(err)
		}
		is := w.daemon("one")
		if is.Status.State != api.DaemonRunning || is.Status.Message != test.want {
			t.Errorf("%s: it is %s: %q", name, is.Status.State, is.Status.Message)
		}
		kstatus.Check(t, test.wants, is)
	}
}
