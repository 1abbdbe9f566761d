package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/runtime/runtimetest"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/instance"
)

// twins are stories of a host whose Lease is there before the agent, or which another machine renews.
func twins() []story { return []story{twoMachines(), movedDisk(), earlierServer()} }

// otherMachine is an instance of the host's agent on another machine.
var otherMachine = instance.Instance{
	Machine: board2, Boot: boot2, Process: strings.Repeat("0", 16), Address: "10.0.0.9",
}

// leaseOf is the Lease of host h1 as an agent wrote it long ago.
func leaseOf(annotation string) *coordv1.Lease {
	l := &coordv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: api.HostLease("h1")}}
	long := metav1.NewMicroTime(time.Unix(1_000_000_000, 0))
	l.Spec.RenewTime = &long
	if annotation != "" {
		l.Annotations = map[string]string{instance.Annotation: annotation}
	}
	return l
}

// timed has the story say when the agent's beats come, and how late it is.
func timed(w *world) {
	disk(w)
	w.ticks = make(chan time.Time)
	w.now = func() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }
}

// write writes an object, unless the server is of an earlier version.
func (w *world) write(o client.Object, effect func() error) error {
	return w.life.do(func() error {
		if w.early.Load() && o.GetAnnotations()[instance.Annotation] != "" {
			leases := schema.GroupResource{Resource: "leases"}
			return apierrors.NewForbidden(leases, o.GetName(), errors.New("no annotations"))
		}
		return effect()
	})
}

// tick has the agent beat.
func (w *world) tick() {
	w.t.Helper()
	w.ticked = time.Now()
	select {
	case w.ticks <- w.ticked:
	case <-time.After(deadline):
		w.t.Fatal("the agent does not beat")
	}
}

// unless has something happen and the agent beat every now and then, until a condition holds.
func (w *world) unless(ok bool, do func()) bool {
	if !ok && time.Since(w.ticked) > 200*time.Millisecond {
		do()
		w.tick()
	}
	return ok
}

// nothing happens but the next beat.
func nothing() {}

// passes has it be later by as much as another machine has to be silent to count as ended.
func (w *world) passes() { w.later.Add(int64(quiet)) }

// otherBeats renews the Lease as the agent on another machine does.
func (w *world) otherBeats() {
	w.t.Helper()
	patch, err := json.Marshal(leaseOf(otherMachine.String()))
	if err == nil {
		err = w.api.Patch(w.t.Context(), leaseOf(""), client.RawPatch("application/merge-patch+json", patch))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// heard says whether this agent renewed the Lease last, and whether with its instance.
func (w *world) heard(named bool) bool {
	l := leaseOf("")
	long := l.Spec.RenewTime.Time
	if w.api.Get(w.t.Context(), client.ObjectKeyFromObject(l), l) != nil {
		return false
	}
	i, is := instance.Of(l.Annotations)
	return is == named && i.Machine == "" && l.Spec.RenewTime.After(long)
}

// note is where the agent writes down on which machine it is.
func (w *world) note() string { return paths{data: filepath.Join(w.dir, "data/agent")}.machine() }

// contested says whether the agent has noted another machine.
func (w *world) contested() bool {
	n, err := instance.ReadNote(w.note())
	if err != nil {
		w.t.Fatal(err)
	}
	return n != nil && n.Other != nil
}

// twoMachines: another machine runs as the host for a while. What runs goes on meanwhile, and nothing
// is started or removed.
func twoMachines() story {
	return story{"two machines", nil, timed, []step{
		{"daemons that run", func(w *world) {
			w.create(talker("one"), talker("ends"), talker("leaves"))
		}, func(w *world) bool {
			return w.unless(w.heard(true), nothing) && runs("one", 1)(w) && runs("ends", 1)(w) && runs("leaves", 1)(w)
		}},
		{"another machine", func(w *world) { w.otherBeats(); w.tick() }, func(w *world) bool {
			return w.unless(w.contested(), w.otherBeats)
		}},
		{"a new daemon, one that leaves, a new spec, and a process that ends", func(w *world) {
			w.create(talker("new"))
			w.delete("leaves")
			w.change("one", func(d *api.Daemon) {
				d.Spec.Files = []api.DaemonFile{{Path: "conf", Sources: []api.FileSource{{Text: new("new")}}}}
			})
			if err := syscall.Kill(int(w.daemon("ends").Status.PID), syscall.SIGKILL); err != nil {
				w.t.Fatal(err)
			}
		}, func(w *world) bool {
			told := is("new", api.DaemonPending, "not started: two machines run as host h1")(w) && runs("ends", 2)(w) &&
				is("one", api.DaemonRunning, notInEffect+"waiting for two machines")(w) && !ready(w.daemon("one"))
			return w.unless(told, w.otherBeats)
		}},
		{"the end of the other machine", func(w *world) {
			if d := w.daemon("leaves"); !runtimetest.Alive(int(d.Status.PID)) || w.starts("new") > 0 {
				w.t.Errorf("%s was ended, or a daemon started: %+v", d.Name, d.Status)
			}
			w.passes()
			w.tick()
		}, func(w *world) bool {
			return w.unless(!w.contested() && w.heard(true), w.passes) && runs("new", 1)(w) && gone(w, "leaves") &&
				ready(w.daemon("one")) && w.read("one", "conf") == "new"
		}},
	}, func(w *world) {
		w.wantStarts("daemons/*one", 1)
		w.wantStarts("daemons/*ends", 2)
		w.wantStarts("daemons/*new", 1)
		w.wantStarts("retired/*leaves-*", 1)
	}}
}

// movedDisk is one that was in another machine, of which nothing is heard any more.
func movedDisk() story {
	return story{"a moved disk", []client.Object{leaseOf(otherMachine.String())}, func(w *world) {
		timed(w)
		data, err := json.Marshal(instance.Note{Machine: board2})
		err = errors.Join(err, os.MkdirAll(filepath.Dir(w.note()), 0o700))
		if err := errors.Join(err, os.WriteFile(w.note(), data, 0o600)); err != nil {
			w.t.Fatal(err)
		}
	}, []step{
		{"the silence of the other machine", func(w *world) { w.create(talker("one")) }, func(w *world) bool {
			return w.unless(w.heard(true), w.passes) && runs("one", 1)(w)
		}},
	}, func(w *world) {
		w.wantStarts("daemons/*", 1)
		if n, err := instance.ReadNote(w.note()); err != nil || n.Moved("") {
			w.t.Errorf("the agent noted %+v, %v", n, err)
		}
	}}
}

// earlierServer takes no instance with a Lease until it is upgraded.
func earlierServer() story {
	set := func(w *world) { timed(w); w.early.Store(true) }
	return story{"an earlier server", []client.Object{leaseOf("")}, set, []step{
		{"a heartbeat", func(w *world) { w.create(talker("one")) }, func(w *world) bool {
			return w.unless(w.heard(false), nothing) && runs("one", 1)(w)
		}},
		{"its upgrade", func(w *world) { w.early.Store(false); w.tick() }, func(w *world) bool {
			return w.unless(w.heard(true), nothing)
		}},
	}, func(w *world) { w.wantStarts("daemons/*", 1) }}
}

// ready says whether a daemon is told to be ready.
func ready(d *api.Daemon) bool {
	return meta.IsStatusConditionTrue(d.Status.Conditions, api.ConditionReady)
}

// gone says whether a Daemon is no more.
func gone(w *world, name string) bool {
	key := client.ObjectKey{Namespace: "default", Name: name}
	return apierrors.IsNotFound(w.api.Get(context.Background(), key, &api.Daemon{}))
}
