package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/agent/runtime"
	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const deadline = time.Minute

// world is one host with a server in memory, real processes, and devices and a service agent made up.
type world struct {
	t       *testing.T
	dir     string
	api     client.WithWatch
	devices *fixedDevices
	service *sleeper
	// also are further service agents.
	also    []service.ServiceAgent
	runtime *detached.Runtime
	stop    func()

	mu   sync.Mutex
	down bool
	// watching counts the watches of the agent.
	watching int
	// told counts the statuses of daemons that the agent wrote.
	told int
	// life is the agent's, where a test ends it.
	life *life
	// hasty cuts off a Stop of the agent, where it is set.
	hasty *hasty
	// wrap makes the agent's runtime of the world's, where it is set.
	wrap func(runtime.Runtime) runtime.Runtime
	// retryMax, proc and sys are the agent's, where they are set.
	retryMax time.Duration
	proc     string
	sys      string
	now      func() time.Time
	// ticks are the agent's beats but the first, where a story has them come; ticked is when the last one did. later is how much the
	// agent's clock is ahead then.
	ticks  chan time.Time
	ticked time.Time
	later  atomic.Int64
	// early has the server be one of an earlier version, which takes no instance with a Lease.
	early atomic.Bool
}

func newWorld(t *testing.T, objs ...client.Object) *world {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), devices: &fixedDevices{}, service: &sleeper{}}
	w.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objs...).
		WithStatusSubresource(&api.Daemon{}, &api.Host{}, &api.Action{}).
		WithIndex(&api.Action{}, "spec.host", func(o client.Object) []string { return []string{o.(*api.Action).Spec.Host} }).
		WithIndex(&api.Daemon{}, "spec.host", func(o client.Object) []string { return []string{o.(*api.Daemon).Spec.Host} }).
		Build()
	unwatch := atomicfile.Watch(w.dir, func(effect func() error) error { return w.life.do(effect) })
	t.Cleanup(func() {
		w.halt()
		unwatch()
		w.killAll()
	})
	return w
}

// run starts the agent.
func (w *world) run() {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.t.Output(), nil))
	var err error
	w.runtime, err = detached.New(detached.Config{
		Dir: filepath.Join(w.dir, "runtime"), Log: log,
		BackOff: detached.BackOff{First: time.Millisecond, Min: 50 * time.Millisecond, Max: 100 * time.Millisecond, Reset: time.Minute},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	var rt runtime.Runtime = mortalRuntime{w.runtime, w.life}
	if w.wrap != nil {
		rt = w.wrap(rt)
	}
	if w.hasty != nil {
		w.hasty.Runtime, rt = rt, w.hasty
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- Run(ctx, Config{
			Name: "h1", DataDir: filepath.Join(w.dir, "data"), RunDir: filepath.Join(w.dir, "run"), Version: "v9", Log: log,
			Runtime: rt, RuntimeKind: api.RuntimeDetached, Inventory: w.devices,
			Services: append([]service.ServiceAgent{w.service, mute{w.service}}, w.also...),
			client:   w.flaky(), reportEvery: 20 * time.Millisecond, retryMax: w.retryMax, proc: w.proc, sys: w.sys, now: w.now, ticks: w.ticks,
		})
	}()
	w.stop = func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the agent ended: %v", err)
		}
		if err := w.runtime.Close(); err != nil {
			w.t.Error(err)
		}
	}
	w.awaitWatch()
}

// awaitWatch waits until the agent watches, if it can. The server in memory tells of no change that was made between a list
// and the watch that follows it.
func (w *world) awaitWatch() {
	w.t.Helper()
	w.await("watch", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.down || w.watching >= 2
	})
}

// halt ends the agent, and lets daemons run on.
func (w *world) halt() {
	if w.stop != nil {
		w.stop()
		w.stop, w.watching = nil, 0
	}
}

func (w *world) killAll() {
	r, err := detached.New(detached.Config{Dir: filepath.Join(w.dir, "runtime")})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range r.Names() {
		if err := r.Stop(context.Background(), name); err != nil {
			w.t.Error(err)
		}
	}
	if err := r.Close(); err != nil {
		w.t.Error(err)
	}
}

// flaky is the API as the agent sees it: it can be made to go away, and what it has in its cache is old.
func (w *world) flaky() client.WithWatch {
	check := func() error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.down {
			return errors.New("connection refused")
		}
		return nil
	}
	return interceptor.NewClient(w.api, interceptor.Funcs{
		Watch: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
			if err := check(); err != nil {
				return nil, err
			}
			got, err := c.Watch(ctx, l, opts...)
			w.mu.Lock()
			w.watching++
			w.mu.Unlock()
			return got, err
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := check(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if err := check(); err != nil {
				return err
			}
			if asked := (&client.ListOptions{}).ApplyOptions(opts); asked.Raw != nil && asked.Raw.ResourceVersion != "" {
				return nil // what a server knows that missed everything
			}
			return c.List(ctx, l, opts...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			return w.write(o, func() error { return c.Create(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return w.write(o, func() error { return c.Patch(ctx, o, p, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o kruntime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return w.life.do(func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			if err := check(); err != nil {
				return err
			}
			return w.life.do(func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := check(); err != nil {
				return err
			}
			w.mu.Lock()
			w.told++
			w.mu.Unlock()
			return w.life.do(func() error { return c.SubResource(sub).Patch(ctx, o, p, opts...) })
		},
	})
}

func (w *world) setDown(down bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = down
	if down {
		w.watching = 0
	}
}

func (w *world) create(objs ...client.Object) {
	w.t.Helper()
	for _, o := range objs {
		if err := w.api.Create(w.t.Context(), o); err != nil {
			w.t.Fatal(err)
		}
	}
}

// change writes the spec of a daemon as the engine would.
func (w *world) change(name string, change func(*api.Daemon)) {
	w.t.Helper()
	d := w.daemon(name)
	change(d)
	d.Generation++
	if err := w.api.Update(w.t.Context(), d); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) delete(name string) {
	w.t.Helper()
	if err := w.api.Delete(w.t.Context(), w.daemon(name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) daemon(name string) *api.Daemon {
	w.t.Helper()
	d := &api.Daemon{}
	if err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, d); err != nil {
		w.t.Fatal(err)
	}
	return d
}

// await waits until a condition holds. The server in memory is asked again and again: it is the test's own.
func (w *world) await(what string, ok func() bool) {
	w.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(deadline)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			l := &api.DaemonList{}
			_ = w.api.List(context.Background(), l)
			w.t.Fatalf("not seen: %s; daemons: %+v", what, l.Items)
		}
	}
}

func (w *world) awaitState(name string, state api.DaemonState) *api.Daemon {
	w.t.Helper()
	var d *api.Daemon
	w.await(fmt.Sprintf("%s %s", name, state), func() bool {
		d = w.daemon(name)
		return d.Status.State == state && d.Status.ObservedGeneration == d.Generation
	})
	return d
}

func (w *world) awaitGone(name string) {
	w.t.Helper()
	w.await(name+" gone", func() bool {
		err := w.api.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: name}, &api.Daemon{})
		return client.IgnoreNotFound(err) == nil && err != nil
	})
}

func (w *world) data(name string) string {
	return filepath.Join(w.dir, "data/agent/daemons", "default."+name, "data")
}

// sleeperDaemon is a Daemon whose process sleeps.
func sleeperDaemon(name string, change ...func(*api.Daemon)) *api.Daemon {
	d := &api.Daemon{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1, Finalizers: []string{api.FinalizerDaemon},
		},
		Spec: api.DaemonSpec{
			Cluster: "c", Type: "sleeper", ID: name, Host: "h1", State: api.WantRunning,
			Command: []string{"sleep", "1000"}, StopTimeout: metav1.Duration{Duration: 5 * time.Second}, OnRemoval: api.DeletionRetain,
		},
	}
	for _, c := range change {
		c(d)
	}
	return d
}

// fixedDevices is an inventory.
type fixedDevices struct {
	mu      sync.Mutex
	devices []api.Device
	rescans int
}

func (f *fixedDevices) Devices(context.Context) ([]api.Device, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.devices), nil
}

func (f *fixedDevices) Rescan(ctx context.Context) ([]api.Device, error) {
	f.mu.Lock()
	f.rescans++
	f.mu.Unlock()
	return f.Devices(ctx)
}

// sleeper is a service agent that notes what it is asked.
type sleeper struct {
	mu         sync.Mutex
	fail       error
	block      chan struct{}
	configured []string
	destroyed  []string
	locals     map[string]*service.Local
	perform    func(context.Context, *service.Local, service.Command) (string, error)
	report     func(*service.Local) (string, error)
	awaits     string
}

func (*sleeper) Name() string                                    { return "sleeper" }
func (*sleeper) Initialize(context.Context, *service.Host) error { return nil }
func (*sleeper) Version(context.Context) (string, error)         { return "1.2.3", nil }

func (s *sleeper) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	s.mu.Lock()
	block, fail := s.block, s.fail
	s.configured = append(s.configured, l.Daemon.Name)
	if s.locals == nil {
		s.locals = map[string]*service.Local{}
	}
	s.locals[l.Daemon.Name] = l
	s.mu.Unlock()
	if block != nil {
		select {
		case <-block:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return fail
}

func (s *sleeper) Awaits(context.Context, *service.Local) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.awaits, nil
}

func (s *sleeper) DestroyLocalService(_ context.Context, l *service.Local) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.destroyed = append(s.destroyed, l.Daemon.Name)
	return nil
}

func (s *sleeper) set(change func(*sleeper)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *sleeper) count(list *[]string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(*list)
}

func TestRun_startsADaemon(t *testing.T) {
	w := newWorld(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"k": []byte("secret ${DATA}")}})
	w.devices.devices = []api.Device{{ID: "wwn-1", Path: "/dev/zero"}}
	w.run()
	text := "data=${DATA} run=${RUN} log=${LOG} dev=${DEVICE:block} other=${HOME}\n"
	w.create(sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Command = []string{"sh", "-c", "echo $0 $1; exec sleep 1000", "${DEVICE:block}", "${LOG}"}
		d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}
		d.Spec.Parameters = map[string]string{"p": "${RUN}/x"}
		d.Spec.Files = []api.DaemonFile{
			{Path: "conf", Sources: []api.FileSource{{Text: &text}}},
			{Path: "sub/key", Sources: []api.FileSource{{Text: &text}, {Secret: &api.SecretKey{Name: "s", Key: "k"}}}},
		}
	}))
	d := w.awaitState("one", api.DaemonRunning)
	if !runtimetest.Alive(int(d.Status.PID)) || d.Status.Started == nil || d.Status.Version != "1.2.3" {
		t.Errorf("status %+v", d.Status)
	}
	data, run := w.data("one"), filepath.Join(w.dir, "run/default.one")
	log := filepath.Join(filepath.Dir(data), "log")
	plain := fmt.Sprintf("data=%s run=%s log=%s dev=/dev/zero other=${HOME}\n", data, run, log)
	checkFile(t, filepath.Join(data, "conf"), plain, 0o644)
	checkFile(t, filepath.Join(data, "sub/key"), plain+"secret ${DATA}", 0o600)
	if got := w.service.locals["one"].Parameters["p"]; got != run+"/x" {
		t.Errorf("parameter %q", got)
	}
	w.await("output", func() bool {
		b, _ := os.ReadFile(filepath.Join(log, "daemon.log"))
		return string(b) == "/dev/zero "+log+"\n"
	})
	if w.devices.rescans == 0 {
		t.Error("the devices were not looked at anew")
	}
}

func checkFile(t *testing.T, path, want string, perm os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(b) != want || st.Mode().Perm() != perm {
		t.Errorf("%s: %q %v, want %q %v", path, b, st.Mode().Perm(), want, perm)
	}
}

func TestRun_registersTheHost(t *testing.T) {
	w := newWorld(t)
	w.devices.devices = []api.Device{{ID: "wwn-1", Path: "/dev/zero", Availability: api.DeviceAvailable}}
	w.run()
	h := &api.Host{}
	w.await("host", func() bool {
		return w.api.Get(t.Context(), client.ObjectKey{Name: "h1"}, h) == nil && h.Status.BootID != ""
	})
	if h.Labels[api.LabelHostname] != "h1" || h.Status.AgentVersion != "v9" || h.Status.Runtime != api.RuntimeDetached ||
		len(h.Status.Devices) != 1 || h.Status.Release("sleeper") != "1.2.3" {
		t.Errorf("host %+v", h)
	}
	l := &coordv1.Lease{}
	w.await("lease", func() bool {
		return w.api.Get(t.Context(), client.ObjectKey{Namespace: api.SystemNamespace, Name: "host-h1"}, l) == nil
	})
	if *l.Spec.HolderIdentity != "h1" || time.Since(l.Spec.RenewTime.Time) > time.Minute {
		t.Errorf("lease %+v", l.Spec)
	}
}

// A host whose clock is wrong says so, and says nothing again when nothing has changed.
func TestReport_clock(t *testing.T) {
	w := newWorld(t)
	h := &api.Host{}
	key := client.ObjectKey{Name: "h1"}
	r, err := detached.New(detached.Config{Dir: w.dir})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, err := newAgent(Config{Name: "h1", DataDir: w.dir, RunDir: w.dir, Runtime: r, RuntimeKind: api.RuntimeDetached, Inventory: w.devices, client: w.api})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	defer a.work.queue.ShutDown()
	defer a.acts.queue.ShutDown()
	defer a.reports.queue.ShutDown()
	a.clock.Note(now.Add(-time.Hour).UTC().Format(time.RFC1123[:len(time.RFC1123)-3]+"GMT"), now, now)
	if err := a.reportOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Get(t.Context(), key, h); err != nil {
		t.Fatal(err)
	}
	skew := meta.FindStatusCondition(h.Status.Conditions, api.HostClockInSync)
	if skew == nil || skew.Status != metav1.ConditionFalse || !strings.Contains(skew.Message, "1h0m0s ahead") {
		t.Errorf("conditions %+v", h.Status.Conditions)
	}
	version := h.ResourceVersion
	if err := a.reportOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.api.Get(t.Context(), key, h); err != nil || h.ResourceVersion != version {
		t.Errorf("a host that did not change was written again (%v): %s, was %s", err, h.ResourceVersion, version)
	}
}

func TestRun_adoptsWithoutTheServer(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	w.halt()
	if !runtimetest.Alive(int(first.Status.PID)) {
		t.Fatal("the daemon ended with the agent")
	}
	w.setDown(true)
	w.run()
	if s, known := w.runtime.State("default.one"); !known || s.PID != int(first.Status.PID) {
		t.Fatalf("not adopted: %+v", s)
	}
	w.setDown(false)
	w.awaitWatch()
	w.create(sleeperDaemon("two"))
	w.awaitState("two", api.DaemonRunning)
	w.await("report of the adopted daemon", func() bool { return w.daemon("one").Status.PID == first.Status.PID })
	if again := w.daemon("one"); again.ResourceVersion != first.ResourceVersion {
		t.Errorf("status of the adopted daemon was written again: %+v, was %+v", again.Status, first.Status)
	}
}

// TestRun_oldAnswer: a process is not taken for a stray because a server's cache has missed its Daemon.
func TestRun_oldAnswer(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	w.halt()
	w.run()
	// By the time that another one runs, what the list brought up has been worked on.
	w.create(sleeperDaemon("two"))
	w.awaitState("two", api.DaemonRunning)
	if s, known := w.runtime.State("default.one"); !known || s.PID != int(first.Status.PID) {
		t.Errorf("the daemon ran as process %d, and now is %+v", first.Status.PID, s)
	}
}

func TestRun_restarts(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	p, err := os.FindProcess(int(first.Status.PID))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	w.await("restart", func() bool {
		s := w.daemon("one").Status
		return s.State == api.DaemonRunning && s.Restarts == 1
	})
	if s := w.daemon("one").Status; s.PID == first.Status.PID || s.LastExit == nil || s.LastExit.Reason != "signal: killed" {
		t.Errorf("status %+v", s)
	}
}

// A daemon that ended because its disk came back by another name is started again on that one.
func TestRun_renamedDevice(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Command = []string{"sh", "-c", "test $0 = /dev/b && exec sleep 1000", "${DEVICE:block}"}
		d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}
	}))
	w.devices.devices = []api.Device{{ID: "wwn-1", Path: "/dev/a"}}
	w.run()
	w.awaitState("one", api.DaemonBackOff)
	w.devices.mu.Lock()
	w.devices.devices = []api.Device{{ID: "wwn-1", Path: "/dev/b"}}
	w.devices.mu.Unlock()
	w.await("the daemon to be made ready on /dev/b", func() bool {
		w.service.mu.Lock()
		defer w.service.mu.Unlock()
		return w.service.locals["one"].Devices["block"].Path == "/dev/b"
	})
	w.awaitState("one", api.DaemonRunning)
}

func TestRun_stopsStrays(t *testing.T) {
	w := newWorld(t)
	r, err := detached.New(detached.Config{Dir: filepath.Join(w.dir, "runtime")})
	if err != nil {
		t.Fatal(err)
	}
	err = r.Start(t.Context(), runtime.Process{Name: "default.old", Command: []string{"sleep", "1000"}, Dir: w.dir, LogFile: w.dir + "/log", StopTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := r.State("default.old")
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w.setDown(true)
	w.run()
	w.create(sleeperDaemon("one"))
	if !runtimetest.Alive(s.PID) {
		t.Fatal("stopped although the server did not answer")
	}
	w.setDown(false)
	w.await("end of the stray process", func() bool { return !runtimetest.Alive(s.PID) })
	w.awaitState("one", api.DaemonRunning)
}

func TestRun_preparedAndStopped(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) { d.Spec.State = api.WantPrepared }))
	w.run()
	if d := w.awaitState("one", api.DaemonPrepared); d.Status.PID != 0 {
		t.Errorf("status %+v", d.Status)
	}
	w.change("one", func(d *api.Daemon) { d.Spec.State = api.WantRunning })
	pid := int(w.awaitState("one", api.DaemonRunning).Status.PID)
	w.change("one", func(d *api.Daemon) { d.Spec.State = api.WantStopped })
	if d := w.awaitState("one", api.DaemonStopped); d.Status.PID != 0 || runtimetest.Alive(pid) {
		t.Errorf("status %+v, alive %v", d.Status, runtimetest.Alive(pid))
	}
}

// A changed file is written and the process goes on; a daemon that did not change is not prepared again.
func TestRun_changedFile(t *testing.T) {
	old, fresh := "old", "new"
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Files = []api.DaemonFile{{Path: "conf", Sources: []api.FileSource{{Text: &old}}}}
	}))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	w.change("one", func(d *api.Daemon) { d.Spec.Files[0].Sources[0].Text = &fresh })
	again := w.awaitState("one", api.DaemonRunning)
	checkFile(t, filepath.Join(w.data("one"), "conf"), "new", 0o644)
	if again.Status.PID != first.Status.PID {
		t.Errorf("restarted: %+v, was %+v", again.Status, first.Status)
	}
	if n := w.service.count(&w.service.configured); n != 1 {
		t.Errorf("configured %d times", n)
	}
}

func TestRun_failureIsToldAndTriedAgain(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.service.set(func(s *sleeper) { s.fail = errors.New("the disk is not empty: wipe it") })
	w.run()
	if d := w.awaitState("one", api.DaemonFailed); !strings.Contains(d.Status.Message, "wipe it") {
		t.Errorf("status %+v", d.Status)
	}
	w.service.set(func(s *sleeper) { s.fail = nil })
	if d := w.awaitState("one", api.DaemonRunning); d.Status.Message != "" {
		t.Errorf("status %+v", d.Status)
	}
}

// TestRun_labels: a Daemon that gets labels and an owner is not prepared anew, and its process goes
// on.
func TestRun_labels(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.run()
	first := w.awaitState("one", api.DaemonRunning)
	d := w.daemon("one")
	d.Labels = map[string]string{"app.kubernetes.io/managed-by": "holdfast"}
	d.OwnerReferences = []metav1.OwnerReference{{Kind: "StorageCluster", Name: "c", UID: "u"}}
	if err := w.api.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	w.create(sleeperDaemon("two")) // the agent has seen the first one by then
	w.awaitState("two", api.DaemonRunning)
	if again := w.daemon("one"); again.Status.PID != first.Status.PID || w.service.count(&w.service.configured) != 2 {
		t.Errorf("%+v, was %+v; configured %v", again.Status, first.Status, w.service.configured)
	}
}

func TestRun_waitsForASecret(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Files = []api.DaemonFile{{Path: "key", Sources: []api.FileSource{{Secret: &api.SecretKey{Name: "late", Key: "k"}}}}}
	}))
	w.run()
	if d := w.awaitState("one", api.DaemonPending); !strings.Contains(d.Status.Message, "Secret late") {
		t.Errorf("status %+v", d.Status)
	}
	w.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "late"}, Data: map[string][]byte{"k": []byte("v")}})
	w.awaitState("one", api.DaemonRunning)
}

func TestRun_deviceMissingOrAmbiguous(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) {
		d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "wwn-1"}}
	}))
	w.run()
	if d := w.awaitState("one", api.DaemonFailed); !strings.Contains(d.Status.Message, "wwn-1 is missing on this host") {
		t.Errorf("status %+v", d.Status)
	}
	w.devices.mu.Lock()
	w.devices.devices = []api.Device{{ID: "wwn-1", Path: "/dev/a"}, {ID: "wwn-1", Path: "/dev/b"}}
	w.devices.mu.Unlock()
	w.await("ambiguity", func() bool { return strings.Contains(w.daemon("one").Status.Message, "2 devices") })
	if n := w.service.count(&w.service.configured); n != 0 {
		t.Errorf("configured %d times", n)
	}
}

func TestRun_unknownType(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) { d.Spec.Type = "glusterd" }))
	w.run()
	if d := w.awaitState("one", api.DaemonFailed); !strings.Contains(d.Status.Message, "upgrade Holdfast") {
		t.Errorf("status %+v", d.Status)
	}
}

func TestRun_otherHostsDaemonIsLeftAlone(t *testing.T) {
	w := newWorld(t, sleeperDaemon("theirs", func(d *api.Daemon) { d.Spec.Host = "h2" }))
	w.run()
	w.create(sleeperDaemon("ours"))
	w.awaitState("ours", api.DaemonRunning)
	if s := w.daemon("theirs").Status; s.State != "" || len(w.runtime.Names()) != 1 {
		t.Errorf("status %+v, running %v", s, w.runtime.Names())
	}
}

func TestRun_removal(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		t.Run(string(policy), func(t *testing.T) {
			w := newWorld(t, sleeperDaemon("one", func(d *api.Daemon) { d.Spec.OnRemoval = policy }))
			w.run()
			pid := int(w.awaitState("one", api.DaemonRunning).Status.PID)
			if err := os.WriteFile(filepath.Join(w.data("one"), "kept"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			w.delete("one")
			w.awaitGone("one")
			if runtimetest.Alive(pid) || w.service.count(&w.service.destroyed) != 1 {
				t.Errorf("alive %v, destroyed %v", runtimetest.Alive(pid), w.service.destroyed)
			}
			for _, dir := range []string{filepath.Dir(w.data("one")), filepath.Join(w.dir, "run/default.one")} {
				if _, err := os.Stat(dir); !os.IsNotExist(err) {
					t.Errorf("%s: %v, want none", dir, err)
				}
			}
			retired, err := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/default.one-*/data/kept"))
			if want := policy == api.DeletionRetain; err != nil || len(retired) == 1 != want {
				t.Errorf("retired %v (%v)", retired, err)
			}
		})
	}
}

// Daemons that are removed together end in their order.
func TestRun_removalInOrder(t *testing.T) {
	order := filepath.Join(t.TempDir(), "order")
	script := func(name string, pause string) func(*api.Daemon) {
		return func(d *api.Daemon) {
			d.Spec.Command = []string{"sh", "-c", fmt.Sprintf("trap 'sleep %s; echo %s >> %s; exit' TERM; touch ${DATA}/ready; while :; do sleep 0.02; done", pause, name, order)}
		}
	}
	w := newWorld(t,
		sleeperDaemon("mon", script("mon", "0"), func(d *api.Daemon) { d.Spec.StopOrder = 20 }),
		sleeperDaemon("osd", script("osd", "0.4"), func(d *api.Daemon) { d.Spec.StopOrder = 10 }))
	w.run()
	for _, name := range []string{"mon", "osd"} {
		w.awaitState(name, api.DaemonRunning)
		w.await(name+" ready", func() bool {
			_, err := os.Stat(filepath.Join(w.data(name), "ready"))
			return err == nil
		})
	}
	w.delete("osd")
	w.delete("mon")
	w.awaitGone("osd")
	w.awaitGone("mon")
	if b, err := os.ReadFile(order); err != nil || string(b) != "osd\nmon\n" {
		t.Errorf("order %q (%v)", b, err)
	}
}
