package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action/logaction"
	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	"github.com/holdfast-storage/holdfast/agent/service"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// story is what happens on a host, step by step.
type story struct {
	name    string
	objects []client.Object
	set     func(*world)
	steps   []step
	check   func(*world)
}

// once are the stories in which something happens that is not tried again when it fails.
var once = []string{"slow", api.ActionServiceCommand}

// step is what somebody does, and what comes of it.
type step struct {
	what string
	do   func(*world)
	ends func(*world) bool
}

// frail is a service agent that does nothing any more when its agent is dead.
type frail struct {
	*sleeper
	w *world
}

func (f frail) Initialize(ctx context.Context, h *service.Host) error {
	return f.w.life.do(func() error { return f.sleeper.Initialize(ctx, h) })
}

func (f frail) ConfigureLocalService(ctx context.Context, l *service.Local) error {
	return f.w.life.do(func() error { return f.sleeper.ConfigureLocalService(ctx, l) })
}

func (f frail) DestroyLocalService(ctx context.Context, l *service.Local) error {
	return f.w.life.do(func() error { return f.sleeper.DestroyLocalService(ctx, l) })
}

// Perform implements service.Performer. Of one that was killed nobody hears anything.
func (f frail) Perform(ctx context.Context, l *service.Local, cmd service.Command) (message string, err error) {
	err = f.w.life.do(func() error { message, err = f.sleeper.Perform(ctx, l, cmd); return err })
	if errors.Is(err, errKilled) {
		<-ctx.Done()
	}
	return message, err
}

// frailKeeper makes and keeps devices, and leaves processes behind: it notes what it has done in files.
type frailKeeper struct{ frail }

func (frailKeeper) Name() string { return "keeper" }

func (f frailKeeper) note(l *service.Local, name, text string) error {
	return f.w.life.do(func() error {
		err := os.WriteFile(filepath.Join(l.Data, name), []byte(text), 0o600)
		if errors.Is(err, os.ErrNotExist) {
			return nil // it was removed already
		}
		return err
	})
}

// MakeDevices implements service.DeviceMaker.
func (f frailKeeper) MakeDevices(_ context.Context, l *service.Local) error {
	return f.w.life.do(func() error {
		f.w.devices.mu.Lock()
		defer f.w.devices.mu.Unlock()
		f.w.devices.devices = append(f.w.devices.devices, api.Device{ID: "part", Path: "/dev/a1"})
		return nil
	})
}

// ConfigureDevices implements service.DeviceKeeper.
func (f frailKeeper) ConfigureDevices(_ context.Context, l *service.Local) error {
	return f.note(l, "configured", fmt.Sprint(len(l.Devices)))
}

// CloseDevices implements service.DeviceCloser.
func (f frailKeeper) CloseDevices(_ context.Context, l *service.Local) error {
	return f.note(l, "closed", "")
}

// EndOthers implements service.Forker.
func (f frailKeeper) EndOthers(_ context.Context, l *service.Local) error {
	return f.note(l, "ended", "")
}

// is returns whether a daemon is in a state, with a message.
func is(name string, state api.DaemonState, message string) func(*world) bool {
	return func(w *world) bool {
		d := w.daemon(name)
		return d.Status.State == state && d.Status.ObservedGeneration == d.Generation && strings.Contains(d.Status.Message, message)
	}
}

// runs returns whether a daemon runs, and was started so often at least.
func runs(name string, starts int) func(*world) bool {
	return func(w *world) bool {
		return is(name, api.DaemonRunning, "")(w) && w.starts(name) >= starts && runtimetest.Alive(int(w.daemon(name).Status.PID))
	}
}

func created(d *api.Daemon) step {
	return step{"a daemon that runs", func(w *world) { w.create(d.DeepCopy()) }, runs(d.Name, 1)}
}

func wanted(state api.WantedState, ends func(*world) bool) step {
	return step{"the daemon " + string(state), func(w *world) { w.change("one", func(d *api.Daemon) { d.Spec.State = state }) }, ends}
}

func deleted(what string, names ...string) step {
	return step{what, func(w *world) {
		for _, name := range names {
			w.delete(name)
		}
	}, func(w *world) bool {
		for _, name := range names {
			if w.api.Get(context.Background(), client.ObjectKey{Namespace: "default", Name: name}, &api.Daemon{}) == nil {
				return false
			}
		}
		return true
	}}
}

// filed is a daemon with a file, a secret and a device.
func filed(d *api.Daemon) {
	d.Spec.Files = []api.DaemonFile{
		{Path: "conf", Sources: []api.FileSource{{Text: new("old")}}},
		{Path: "sub/key", Sources: []api.FileSource{{Secret: &api.SecretKey{Name: "s", Key: "k"}}}},
	}
	d.Spec.Devices = []api.DaemonDevice{{Name: "block", ID: "disk"}}
}

func secret() *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}, Data: map[string][]byte{"k": []byte("key")}}
}

// wantLeft: the host has so much of the daemons that it had, and no process.
func wantLeft(w *world, retired int) {
	w.t.Helper()
	for pattern, want := range map[string]int{"data/agent/daemons/*": 0, "data/agent/retired/*": retired, "run/*": 0, "data/agent/*/.*": 0} {
		if found, err := filepath.Glob(filepath.Join(w.dir, pattern)); err != nil || len(found) != want {
			w.t.Errorf("of %s there are %v (%v), want %d", pattern, found, err, want)
		}
	}
	if names := w.runtime.Names(); len(names) != 0 {
		w.t.Errorf("processes %v", names)
	}
}

func (w *world) wantStarts(path string, want int) {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.dir, "data/agent", path, "log/daemon.log"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("logs %v (%v)", found, err)
	}
	// Who was just started says so in its own time, and there is nothing more to come of one that has.
	count := func() (n int) {
		text, err := os.ReadFile(found[0])
		if err != nil {
			w.t.Fatal(err)
		}
		return strings.Count(string(text), "started\n")
	}
	for end := time.Now().Add(10 * time.Second); count() < want && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	if n := count(); n != want {
		w.t.Errorf("the process was started %d times, want %d", n, want)
	}
}

func disk(w *world) {
	w.retryMax = 5 * time.Millisecond
	w.devices.devices = []api.Device{{ID: "disk", Path: "/dev/a"}}
	w.also = []service.ServiceAgent{frail{w.service, w}, frailKeeper{frail{w.service, w}}}
}

func stories() []story {
	return slices.Concat(lives(), deeds(), hardwareStories(), twins(), heirs())
}

// lives are those of daemons.
func lives() []story {
	wipe := func(d *api.Daemon) { d.Spec.OnRemoval = api.DeletionWipe }
	keeper := talker("one", func(d *api.Daemon) {
		d.Spec.Type, d.Spec.Devices = "keeper", []api.DaemonDevice{{Name: "block", ID: "part", Of: "disk"}}
	})
	return []story{
		{"a daemon's life", []client.Object{secret()}, disk, []step{
			created(talker("one", filed)),
			{
				"the file's new text", func(w *world) { w.change("one", func(d *api.Daemon) { d.Spec.Files[0].Sources[0].Text = new("new") }) },
				func(w *world) bool { return runs("one", 1)(w) && w.read("one", "conf") == "new" },
			},
			wanted(api.WantStopped, is("one", api.DaemonStopped, "")),
			wanted(api.WantPrepared, is("one", api.DaemonPrepared, "")),
			wanted(api.WantRunning, runs("one", 2)),
			deleted("the end of the daemon", "one"),
		}, func(w *world) {
			wantLeft(w, 1)
			w.wantStarts("retired/*", 2)
			for file, want := range map[string]string{"data/conf": "new", "data/sub/key": "key", filePaths: `{"block":"/dev/a"}`} {
				found, _ := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/*", file))
				if text, err := os.ReadFile(strings.Join(found, " ")); string(text) != want {
					w.t.Errorf("%s is %q (%v)", file, text, err)
				}
			}
		}},
		{"wiped", []client.Object{secret()}, disk, []step{created(talker("one", filed, wipe)), deleted("the end of all that it had", "one")}, func(w *world) { wantLeft(w, 0) }},
		{"a keeper's life", nil, disk, []step{created(keeper), wanted(api.WantStopped, is("one", api.DaemonStopped, "")), deleted("the end of the keeper", "one")}, func(w *world) {
			wantLeft(w, 1)
			w.wantStarts("retired/*", 1)
			if n := len(w.devices.devices); n != 2 {
				w.t.Errorf("there are %d devices", n)
			}
			for _, file := range []string{"configured", "closed", "ended"} {
				if found, err := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/*/data", file)); len(found) != 1 {
					w.t.Errorf("%s: %v (%v)", file, found, err)
				}
			}
		}},
		{"a daemon that nobody wants any more", nil, disk, []step{
			created(talker("one", func(d *api.Daemon) { d.Finalizers = nil })),
			{"the end of the process", func(w *world) { w.delete("one") }, func(w *world) bool { return len(w.runtime.Names()) == 0 }},
		}, func(w *world) { w.wantStarts("daemons/*", 1) }},
		{"what is not there yet", nil, disk, []step{
			{"an unknown type", func(w *world) { w.create(talker("one", filed, func(d *api.Daemon) { d.Spec.Type = "unknown" })) }, is("one", api.DaemonFailed, "does not know")},
			{"no secret", func(w *world) { w.change("one", func(d *api.Daemon) { d.Spec.Type = "sleeper" }) }, is("one", api.DaemonPending, "Secret s")},
			{"a secret", func(w *world) { w.create(secret()) }, runs("one", 1)},
		}, func(w *world) { w.wantStarts("daemons/*", 1) }},
		slow(), ordered(), watched(),
	}
}

// slow is a daemon whose preparation takes long enough to be told of.
func slow() story {
	return story{"slow", nil, func(w *world) { disk(w); w.service.block = make(chan struct{}) }, []step{
		{"the preparation", func(w *world) { w.create(talker("one")) }, func(w *world) bool { return w.daemon("one").Status.State == api.DaemonPreparing }},
		{"the start", func(w *world) { close(w.service.block) }, runs("one", 1)},
	}, func(w *world) { w.wantStarts("daemons/*", 1) }}
}

// ordered are two daemons that are removed one after the other, also by an agent that was killed on the way. The first one takes its
// time to end, and each writes down when it did.
func ordered() story {
	ends := func(order int32, pause string) func(*api.Daemon) {
		return func(d *api.Daemon) {
			d.Spec.StopOrder = order
			d.Spec.Command = []string{"sh", "-c", "trap 'sleep " + pause + "; date +%s%N > ${DATA}/ended; exit' TERM; echo started; while :; do sleep 0.02; done"}
		}
	}
	last, first := sleeperDaemon("last", ends(20, "0")), sleeperDaemon("first", ends(10, "0.2"))
	return story{"in order", nil, disk, []step{created(last), created(first), deleted("the end of both", "first", "last")}, func(w *world) {
		wantLeft(w, 2)
		if first, last := w.ended("first"), w.ended("last"); first >= last {
			w.t.Errorf("the first one ended at %d, and the last one at %d", first, last)
		}
	}}
}

// ended is when a daemon that is gone wrote down that it ended.
func (w *world) ended(name string) (at int64) {
	w.t.Helper()
	found, _ := filepath.Glob(filepath.Join(w.dir, "data/agent/retired/default."+name+"-*/data/ended"))
	text, err := os.ReadFile(strings.Join(found, " "))
	if err == nil {
		at, err = strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	}
	if err != nil {
		w.t.Errorf("when daemon %s ended: %v", name, err)
	}
	return at
}

// watched is a daemon that somebody else is to run, on a host whose processes cannot be seen at first.
func watched() story {
	d := sleeperDaemon("one", func(d *api.Daemon) { d.Spec.Type, d.Spec.ID, d.Spec.State = "ceph-mon", "none", api.WantWatched })
	return story{"watched", nil, func(w *world) { disk(w); w.proc = filepath.Join(w.dir, "proc") }, []step{
		{"no processes", func(w *world) { w.create(d.DeepCopy()) }, is("one", api.DaemonFailed, "while looking for daemons")},
		{"processes", func(w *world) {
			if err := os.Symlink("/proc", w.proc); err != nil {
				w.t.Fatal(err)
			}
		}, is("one", api.DaemonStopped, "was not handed over")},
		deleted("the end of what was watched", "one"),
	}, func(w *world) { wantLeft(w, 0) }}
}

// remember leaves behind what an agent remembered of an action.
func (w *world) remember(uid types.UID, p process) {
	w.t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		w.t.Fatal(err)
	}
	file := paths{data: filepath.Join(w.dir, "data/agent")}.actionOf(uid)
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, data, 0o600)); err != nil {
		w.t.Fatal(err)
	}
}

// deeds are actions. Each of their kinds is there.
func deeds() []story {
	ended := func(w *world) bool {
		a := w.action()
		if a.Status.State.Final() && a.Status.State != api.ActionDone {
			w.t.Fatalf("it ended as %s: %s", a.Status.State, a.Status.Message)
		}
		left, _ := filepath.Glob(filepath.Join(w.dir, "data/agent/actions/*"))
		// What stays behind is removed by the next agent.
		return a.Status.State == api.ActionDone && (len(left) == 0 || w.life != nil)
	}
	restart := story{restartKind.Name, nil, func(w *world) {
		disk(w)
		w.remember("uid-gone", process{})
	}, []step{
		created(talker("one")),
		{"the restart", func(w *world) { w.create(restartOf("one")) }, ended},
	}, func(w *world) { w.wantStarts("daemons/*", 2) }}
	cancelled := story{restartKind.Name + " cancelled", nil, disk, []step{
		created(talker("one", stubborn)),
		{"the restart", func(w *world) { w.create(restartOf("one")) }, func(w *world) bool {
			s, _ := w.runtime.State("default.one")
			return s.Stopping && w.action().Status.Message == "the process is ending" || w.action().Status.State == api.ActionDone
		}},
		{"the cancel", func(w *world) { w.cancelAction() }, func(w *world) bool { return w.action().Status.State.Final() && runs("one", 2)(w) }},
	}, func(w *world) { w.wantStarts("daemons/*", 2) }}
	command := story{api.ActionServiceCommand, nil, func(w *world) {
		disk(w)
		done := new(atomic.Int32)
		w.service.report = func(*service.Local) (string, error) { return fmt.Sprint("done ", done.Load()), nil }
		w.service.perform = func(context.Context, *service.Local, service.Command) (string, error) {
			return fmt.Sprint("done ", done.Add(1)), nil
		}
	}, []step{
		created(talker("one", reporting)),
		{"the command", func(w *world) {
			a := commandTo(w.t, "restart", "one")
			a.UID = types.UID("uid-command")
			w.create(a)
		}, func(w *world) bool { return ended(w) && w.daemon("one").Status.Report == w.action().Status.Message }},
	}, func(w *world) {
		if is := w.action().Status.Message; is != "done 1" && is != "done 2" {
			w.t.Errorf("it says %s: it is to be done, and again where it is not known that it was", is)
		}
	}}
	look := story{logaction.Kind.Name, nil, disk, []step{
		created(talker("one")),
		{"the look into its log", func(w *world) {
			w.await("the first line", func() bool { return w.starts("one") == 1 })
			a := restartOf("one")
			a.Spec = logaction.For(w.daemon("one"), logaction.Ask{Tail: 1}).Spec
			w.create(a)
		}, func(w *world) bool { return w.action().Status.State == api.ActionDone }},
	}, func(w *world) {
		is := w.action().Status
		if is.Output != "started\n" || is.Next == "" || strings.Contains(is.Message, "started") {
			w.t.Errorf("it says %+v", is)
		}
	}}
	return []story{restart, cancelled, command, look}
}
