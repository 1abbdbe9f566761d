package agent

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/holdfast-storage/holdfast/agent/runtime/detached"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// teller is an agent that does nothing by itself. Its clock stands still.
type teller struct {
	*agent
	w    *world
	time time.Time
}

func (w *world) teller() *teller {
	w.t.Helper()
	rt, err := detached.New(detached.Config{Dir: w.t.TempDir()})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = rt.Close() })
	x := &teller{w: w, time: time.Unix(1_000_000_000, 0)}
	x.agent, err = newAgent(Config{
		Name: "h1", DataDir: w.t.TempDir(), RunDir: w.t.TempDir(), Runtime: rt, Inventory: w.devices, client: w.flaky(),
		retryMax: w.retryMax, now: func() time.Time { return x.time },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(x.work.queue.ShutDown)
	w.t.Cleanup(x.acts.queue.ShutDown)
	w.t.Cleanup(x.reports.queue.ShutDown)
	x.sole.is = alone
	return x
}

// watch brings the daemon as it is.
func (x *teller) watch() {
	x.w.t.Helper()
	if err := x.work.daemons.Update(x.w.daemon("one")); err != nil {
		x.w.t.Fatal(err)
	}
}

// says tells of the daemon as the watch brought it.
func (x *teller) says(status api.DaemonStatus) {
	x.w.t.Helper()
	d, _ := x.work.daemons.get(client.ObjectKey{Namespace: "default", Name: "one"})
	if err := x.tell(x.w.t.Context(), d, status); err != nil {
		x.w.t.Fatal(err)
	}
}

// inLine waits until the daemon is in line, and takes it out.
func (x *teller) inLine() {
	x.w.t.Helper()
	x.w.await("the daemon in line", func() bool { return x.work.queue.Len() > 0 })
	key, _ := x.work.queue.Get()
	x.work.queue.Done(key)
}

// writes counts the statuses that agents wrote while something is done.
func (w *world) writes(do func()) int {
	before := w.told
	do()
	return w.told - before
}

func withPID(pid int32) api.DaemonStatus { return api.DaemonStatus{State: api.DaemonRunning, PID: pid} }

// TestOverwritten_twins: agents on two machines, which both run a daemon, write over each other
// less and less often, and not at all while each knows of the other. Afterwards the one that is
// left tells what holds.
func TestOverwritten_twins(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	a, b := w.teller(), w.teller()
	first := withPID(1)
	pass := func(length time.Duration) int {
		return w.writes(func() {
			for range int(length / time.Second) {
				for x, says := range map[*teller]api.DaemonStatus{a: first, b: withPID(2)} {
					x.watch()
					x.says(says)
					x.time = x.time.Add(time.Second)
				}
			}
		})
	}
	// Each pauses for 1, 2, 4, 8, 16, 32 and 60 seconds, or half of that, and then for the other
	// one.
	if n := pass(3 * time.Minute); n < 6 || n > 26 {
		t.Errorf("they wrote %d times in 3 minutes", n)
	}
	if n := pass(10 * time.Minute); n < 8 || n > 21 {
		t.Errorf("they wrote %d times in 10 minutes", n)
	}
	a.sole.is, b.sole.is = contested, contested
	if n := pass(10 * time.Minute); n != 0 {
		t.Errorf("they know of each other and wrote %d times", n)
	}
	first = withPID(3)
	if n := pass(time.Minute); n != 1 || w.daemon("one").Status.PID != 3 {
		t.Errorf("a process was started again, which was told %d times: %+v", n, w.daemon("one").Status)
	}
	b.sole.is = alone
	if n := w.writes(func() {
		b.time = b.time.Add(time.Hour)
		b.says(withPID(2))
		b.time = b.time.Add(time.Second)
		b.says(withPID(2))
	}); n != 1 {
		t.Errorf("the one that is left wrote %d times", n)
	}
	if s := w.daemon("one").Status; s.PID != 2 {
		t.Errorf("it is not told what holds: %+v", s)
	}
}

// TestOverwritten_order: what somebody else writes is found, whatever comes first: that write, the
// agent's own, the answer to it, and what the watch brings.
func TestOverwritten_order(t *testing.T) {
	var before, after, later func()
	for name, does := range map[string]func(w *world, x *teller, forge func()){
		"after the write, seen before its answer": func(_ *world, x *teller, forge func()) {
			after = func() { forge(); x.watch() }
		},
		"after the write, seen after its answer": func(_ *world, x *teller, forge func()) {
			after, later = forge, x.watch
		},
		"before the write, seen before its answer": func(_ *world, x *teller, forge func()) {
			before, after = forge, x.watch
		},
		"before the write, seen after its answer": func(_ *world, x *teller, forge func()) {
			before, later = forge, x.watch
		},
		"after a start with nothing to tell": func(w *world, x *teller, forge func()) {
			d := w.daemon("one")
			d.Status = withPID(2)
			d.Status.ObservedGeneration = d.Generation
			if err := w.api.Status().Update(w.t.Context(), d); err != nil {
				w.t.Fatal(err)
			}
			x.told.forget(client.ObjectKeyFromObject(d))
			x.watch()
			x.says(withPID(2))
			forge()
			later = x.watch
		},
		"while the watch was cut off": func(w *world, x *teller, forge func()) {
			x.says(withPID(2))
			forge()
			if err := x.work.daemons.Replace([]any{w.daemon("one")}, ""); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			before, after, later = nil, nil, func() {}
			w := newWorld(t, sleeperDaemon("one"))
			w.retryMax = time.Millisecond
			plain := w.api
			w.api = interceptor.NewClient(plain, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
				o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
			) error {
				first, then := before, after
				before, after = nil, nil
				if first != nil {
					first()
				}
				err := c.SubResource(sub).Patch(ctx, o, p, opts...)
				if then != nil {
					then()
				}
				return err
			}})
			x := w.teller()
			x.watch()
			x.inLine()
			x.says(withPID(1))
			x.watch()
			does(w, x, func() {
				d := w.daemon("one")
				d.Status.Message = "its disk is broken: wipe it"
				if err := plain.Status().Update(t.Context(), d); err != nil {
					t.Error(err)
				}
			})
			x.says(withPID(2))
			later()
			x.inLine()
			x.time = x.time.Add(time.Second)
			x.says(withPID(2))
			if s := w.daemon("one").Status; s.Message != "" || s.PID != 2 {
				t.Errorf("it stays as somebody else wrote it: %+v", s)
			}
			x.watch()
			if n := w.writes(func() { x.time = x.time.Add(time.Hour); x.says(withPID(2)) }); n != 0 {
				t.Errorf("it is written %d times more", n)
			}
		})
	}
}

// TestOverwritten_earlierServer: a server that drops a field, which it does not know, has not been
// written over.
func TestOverwritten_earlierServer(t *testing.T) {
	w := newWorld(t, sleeperDaemon("one"))
	w.api = interceptor.NewClient(w.api, interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string,
		o client.Object, p client.Patch, opts ...client.SubResourcePatchOption,
	) error {
		data, err := p.Data(o)
		if err != nil {
			return err
		}
		var patch map[string]map[string]any
		if err := json.Unmarshal(data, &patch); err != nil {
			return err
		}
		delete(patch["status"], "version")
		if len(patch["status"]) == 0 {
			return c.Get(ctx, client.ObjectKeyFromObject(o), o)
		}
		if data, err = json.Marshal(patch); err != nil {
			return err
		}
		return c.SubResource(sub).Patch(ctx, o, client.RawPatch(types.MergePatchType, data), opts...)
	}})
	x := w.teller()
	status := withPID(1)
	status.Version = "9"
	n := w.writes(func() {
		for range 600 {
			x.watch()
			x.says(status)
			x.time = x.time.Add(time.Second)
		}
	})
	if s := w.daemon("one").Status; n > 2 || s.PID != 1 {
		t.Errorf("it was written %d times: %+v", n, s)
	}
}
