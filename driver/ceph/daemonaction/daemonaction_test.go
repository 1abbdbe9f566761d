package daemonaction

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// says is a stand-in for the driver: what it has against the stop of any daemon.
type says struct {
	engine.Driver
	verdict api.Verdict
	reason  api.Reason
}

func (says) Observe(context.Context, *engine.View, engine.SecretReader) (any, error) { return nil, nil }

func (s says) Plan(v *engine.View, _ time.Time) *engine.Plan {
	p := &engine.Plan{}
	if s.verdict != "" {
		p.Decide(s.verdict, s.reason, engine.RestartObject(v.Restart), "not now")
	}
	return p
}

var core = []string{"ceph-mon", "ceph-mgr", "ceph-osd", "ceph-mds"}

// bench is a cluster with daemons on host h1: mon.a, osd.0, osd.1, and mds.home-a and -b.
type bench struct {
	*testing.T
	*sim.World
	says
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, World: sim.NewWorld()}
	b.must(b.AddHost(t.Context(), "h1", nil))
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	c.Spec.Type = api.StorageCeph
	b.must(b.Create(t.Context(), c))
	for _, d := range [][2]string{{"mon", "a"}, {"osd", "0"}, {"osd", "1"}, {"mds", "home-a"}, {"mds", "home-b"}} {
		b.must(b.PutDaemon(t.Context(), c, engine.DaemonChange{New: true, Daemon: api.Daemon{
			ObjectMeta: metav1.ObjectMeta{Name: "c-" + d[0] + "-" + d[1]},
			Spec:       api.DaemonSpec{Cluster: "c", Type: "ceph-" + d[0], ID: d[1], Host: "h1", State: api.WantRunning},
		}}))
		b.runs("c-"+d[0]+"-"+d[1], api.WantRunning, time.Unix(1, 0))
	}
	return b
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) daemon(name string) *api.Daemon {
	b.Helper()
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	b.must(b.Get(b.Context(), d))
	return d
}

// runs has a daemon wanted in a state, and its agent bring it there.
func (b *bench) runs(name string, want api.WantedState, started time.Time) {
	b.Helper()
	d := b.daemon(name)
	d.Spec.State = want
	b.must(b.Update(b.Context(), d))
	d = b.daemon(name)
	d.Status = api.DaemonStatus{ObservedGeneration: d.Generation, State: want.Reached()}
	d.Status.Started = &metav1.MicroTime{Time: started}
	b.must(b.UpdateStatus(b.Context(), d))
}

func (b *bench) handler(kind string) action.Handler {
	for _, h := range Handlers(Config{b.World, b.says, core}) {
		if h.Kind().Name == kind {
			return h
		}
	}
	b.Fatalf("there is no kind %s", kind)
	return nil
}

func actionOf(kind, target string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: types.UID(kind),
			CreationTimestamp: metav1.NewTime(time.Now().Add(time.Minute)),
		},
		Spec: api.ActionSpec{Kind: kind, Target: target, Cluster: "c", Requester: "ann"},
	}
}

// step calls the only step of an Action.
func (b *bench) step(a *api.Action) action.Progress {
	b.Helper()
	h := b.handler(a.Spec.Kind)
	p, err := h.Step(b.Context(), a, h.Kind().Steps[0])
	b.must(err)
	return p
}

func TestCheck(t *testing.T) {
	const refused, waits = "refused", "waits"
	for name, tt := range map[string]struct {
		kind, target string
		change       func(*bench)
		want         string
	}{
		"a stop":                    {api.ActionDaemonStop, "daemon/c-osd-0", nil, ""},
		"a start":                   {api.ActionDaemonStart, "daemon/c-osd-0", nil, ""},
		"a restart":                 {RestartService, "service/mon", nil, ""},
		"no daemon":                 {api.ActionDaemonStop, "daemon/c-osd-9", nil, refused},
		"another target":            {api.ActionDaemonStop, "host/h1", nil, refused},
		"no service":                {RestartService, "service/mds.work", nil, refused},
		"a service's other target":  {RestartService, "daemon/c-mon-a", nil, refused},
		"Ceph says no":              {api.ActionDaemonStop, "daemon/c-osd-0", refusing(api.ReasonNotOkToStop), refused},
		"the quorum would be lost":  {api.ActionDaemonStop, "daemon/c-mon-a", refusing(api.ReasonQuorumAtRisk), refused},
		"Ceph does not answer":      {api.ActionDaemonStop, "daemon/c-osd-0", refusing(api.ReasonNotAnswering), waits},
		"a start, and Ceph says no": {api.ActionDaemonStart, "daemon/c-osd-0", refusing(api.ReasonNotOkToStop), ""},
		"Ceph says later":           {api.ActionDaemonStop, "daemon/c-osd-0", waiting, waits},
		"what does not run": {api.ActionDaemonStop, "daemon/c-osd-0", func(b *bench) {
			refusing(api.ReasonNotOkToStop)(b)
			b.runs("c-osd-0", api.WantStopped, time.Unix(1, 0))
		}, refused},
		"a host in maintenance":      {api.ActionDaemonStop, "daemon/c-osd-0", inMode(api.HostMaintenance), refused},
		"a start in maintenance":     {api.ActionDaemonStart, "daemon/c-osd-0", inMode(api.HostMaintenance), refused},
		"a cluster that is observed": {api.ActionDaemonStop, "daemon/c-osd-0", observed, refused},
		"a service that is observed": {RestartService, "service/osd", observed, refused},
		"a daemon that is watched":   {api.ActionDaemonStart, "daemon/c-osd-0", wanted(api.WantWatched), refused},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if tt.change != nil {
				tt.change(b)
			}
			err := b.handler(tt.kind).Check(t.Context(), actionOf(tt.kind, tt.target))
			got := map[bool]string{true: refused, false: waits}[errors.Is(err, action.ErrRefused)]
			if err == nil {
				got = ""
			}
			if got != tt.want {
				t.Errorf("%q (%v), want %q", got, err, tt.want)
			}
		})
	}
}

func refusing(reason api.Reason) func(*bench) {
	return func(b *bench) { b.says = says{nil, api.VerdictRefuse, reason} }
}

func waiting(b *bench) { b.says = says{nil, api.VerdictWait, api.ReasonOneAtATime} }

func wanted(state api.WantedState) func(*bench) {
	return func(b *bench) { b.runs("c-osd-0", state, time.Unix(1, 0)) }
}

func inMode(mode api.HostMode) func(*bench) {
	return func(b *bench) { b.must(b.PutHost(b.Context(), "h1", func(h *api.Host) { h.Spec.Mode = mode })) }
}

func observed(b *bench) {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	b.must(b.Get(b.Context(), c))
	c.Spec.Mode = api.ClusterObserved
	b.must(b.Update(b.Context(), c))
}

// A stop is done when the daemon is stopped, and a start when it runs. The word of another Action stays.
func TestStopStart(t *testing.T) {
	b := newBench(t)
	stop, start := actionOf(api.ActionDaemonStop, "daemon/c-osd-0"), actionOf(api.ActionDaemonStart, "daemon/c-osd-0")
	for range 2 {
		if p := b.step(stop); p.Done || p.WaitsFor == "" || !asked.Stopped(b.daemon("c-osd-0")) {
			t.Errorf("at once: %+v", p)
		}
	}
	b.runs("c-osd-0", api.WantStopped, time.Unix(1, 0))
	if p := b.step(stop); !p.Done {
		t.Errorf("when it is stopped: %+v", p)
	}
	if p := b.step(start); p.Done || asked.Stopped(b.daemon("c-osd-0")) {
		t.Errorf("at once: %+v", p)
	}
	b.runs("c-osd-0", api.WantRunning, time.Unix(2, 0))
	if p := b.step(start); !p.Done {
		t.Errorf("when it runs: %+v", p)
	}
	b.step(stop)
	other := actionOf(api.ActionDaemonStop, "daemon/c-osd-0")
	other.Spec.Requester = "bob"
	for _, x := range []struct {
		by    *api.Action
		stays bool
	}{{other, true}, {stop, false}} {
		p, err := b.handler(api.ActionDaemonStop).Undo(t.Context(), x.by, stepStop)
		if err != nil || !p.Done || asked.Stopped(b.daemon("c-osd-0")) != x.stays {
			t.Errorf("undone by %s: %+v, %v; stopped: %v", x.by.Spec.Requester, p, err, !x.stays)
		}
	}
}

// A service is restarted when the process of each of its daemons is another one; one that is
// stopped by request stays so.
func TestRestartService(t *testing.T) {
	b := newBench(t)
	a := actionOf(RestartService, "service/osd")
	for range 2 {
		if p := b.step(a); p.Done || p.Total != 2 || p.Count != 0 {
			t.Errorf("at once: %+v", p)
		}
	}
	if !asked.Restart(b.daemon("c-osd-0")) || asked.Restart(b.daemon("c-mon-a")) {
		t.Error("the restart of others was asked for")
	}
	b.runs("c-osd-0", api.WantRunning, time.Unix(2, 0))
	if p := b.step(a); p.Done || p.Count != 1 || asked.Restart(b.daemon("c-osd-0")) {
		t.Errorf("after one: %+v", p)
	}
	second := types.NamespacedName{Namespace: "default", Name: "c-osd-1"}
	b.must(b.AnnotateDaemon(t.Context(), second, func(all map[string]string) {
		all[api.AnnotationStop] = asked.Value(time.Unix(3, 0), "ann")
	}))
	if p := b.step(a); !p.Done {
		t.Errorf("after both: %+v", p)
	}
	b.step(actionOf(RestartService, "service/mon"))
	_, err := b.handler(RestartService).Undo(t.Context(), actionOf(RestartService, "service/mon"), stepDaemons)
	if err != nil || asked.Restart(b.daemon("c-mon-a")) {
		t.Errorf("undone: %v", err)
	}
}

// A service without data is stopped and started as a whole; the mons are not.
func TestRestartService_stop(t *testing.T) {
	b := newBench(t)
	do := func(target, what string) *api.Action {
		a := actionOf(RestartService, target)
		a.Spec.Parameters = map[string]api.ActionParameter{ParamDo: api.ActionParameter(what)}
		return a
	}
	for target, refused := range map[string]bool{"service/mon": true, "service/osd": true, "service/mds.home": false} {
		err := b.handler(RestartService).Check(t.Context(), do(target, Stop))
		if errors.Is(err, action.ErrRefused) != refused {
			t.Errorf("%s: %v", target, err)
		}
	}
	err := b.handler(RestartService).Check(t.Context(), do("service/mds.home", "dance"))
	if !errors.Is(err, action.ErrRefused) {
		t.Errorf("another word: %v", err)
	}
	for _, x := range []struct {
		do   string
		want api.WantedState
	}{{Stop, api.WantStopped}, {Start, api.WantRunning}} {
		a := do("service/mds.home", x.do)
		if p := b.step(a); p.Done || asked.Stopped(b.daemon("c-mds-home-b")) != (x.do == Stop) {
			t.Errorf("%s: %+v", x.do, p)
		}
		b.runs("c-mds-home-a", x.want, time.Unix(4, 0))
		b.runs("c-mds-home-b", x.want, time.Unix(4, 0))
		if p := b.step(a); !p.Done {
			t.Errorf("%s, when it is so: %+v", x.do, p)
		}
	}
}
