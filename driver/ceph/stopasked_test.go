package ceph

import (
	"maps"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/asked"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// withServices is a world of four hosts with a filesystem and an object store.
func withServices() *fakeWorld {
	w := fourHosts()
	w.filesystems = append(w.filesystems, filesystemOf("home", func(*api.Filesystem) {}))
	w.objects = []api.Resource{storeOf("s3")}
	return withFake(w)
}

// A daemon that a person had stopped stops, stays stopped and is not replaced, whatever its type; the report
// says why. When the word is taken back it runs again.
func TestStopAsked(t *testing.T) {
	for _, name := range []string{"c-mon-a", "c-mgr-a", "c-osd-0", "c-mds-home-a", "c-rgw-s3-a"} {
		t.Run(name, func(t *testing.T) {
			f := withServices()
			f.settle(t)
			all := len(f.daemons)
			f.asks(name, api.AnnotationStop)
			p := f.settle(t)
			d := f.daemons[name]
			if d.Spec.State != api.WantStopped || d.Status.State != api.DaemonStopped || len(f.daemons) != all {
				t.Errorf("%s is %s; %d daemons, and %d before", name, d.Status.State, len(f.daemons), all)
			}
			if got := reasonOf(p, api.VerdictSkip, label(d)); got != api.ReasonStopAsked {
				t.Errorf("%q of %v", got, decisions(p))
			}
			for range 6 { // no wait lets another one take its place
				f.now = f.now.Add(waits.Default().ReplicaLost)
				f.agents()
				if f.round(t); len(f.daemons) != all || f.daemons[name].Spec.State != api.WantStopped {
					t.Fatalf("%d daemons, and %d before; it is wanted %s", len(f.daemons), all, f.daemons[name].Spec.State)
				}
			}
			delete(f.daemons[name].Annotations, api.AnnotationStop)
			if p = f.settle(t); f.daemons[name].Status.State != api.DaemonRunning {
				t.Errorf("%s is %s: %v", name, f.daemons[name].Status.State, decisions(p))
			}
		})
	}
}

// Others count it as down: a second OSD may not stop, nor may a host go into maintenance that has one.
func TestStopAsked_countsAsDown(t *testing.T) {
	f := withServices()
	f.settle(t)
	f.asks("c-osd-0", api.AnnotationStop)
	f.settle(t)
	if word := f.againstRestart(t, "c-osd-1"); word == "" || word[:7] != "Refuse:" {
		t.Errorf("the restart of another OSD: %q", word)
	}
	at := slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == f.daemons["c-osd-1"].Spec.Host })
	f.mode(at+1, api.HostMaintenance)
	p := f.settle(t)
	if got := reasonOf(p, api.VerdictRefuse, "host/"+f.hosts[at].Name); got != api.ReasonNotOkToStop {
		t.Errorf("maintenance of a second host: %q of %v", got, decisions(p))
	}
	f.mode(at+1, api.HostActive)
	at = slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == f.daemons["c-osd-0"].Spec.Host })
	f.mode(at+1, api.HostMaintenance)
	f.settle(t)
	for _, d := range f.daemons {
		if d.Spec.Host == f.hosts[at].Name && d.Status.State != api.DaemonStopped {
			t.Errorf("maintenance of its own host: %s is %s", d.Name, d.Status.State)
		}
	}
	f.mode(at+1, api.HostActive)
	p = f.settle(t)
	for _, d := range f.daemons {
		want := map[bool]api.DaemonState{true: api.DaemonStopped, false: api.DaemonRunning}[d.Name == "c-osd-0"]
		if d.Spec.Host == f.hosts[at].Name && d.Status.State != want {
			t.Errorf("after the maintenance %s is %s: %v", d.Name, d.Status.State, decisions(p))
		}
	}
}

// A mon on a drained host moves although it was stopped, and an OSD's device is freed.
func TestStopAsked_drained(t *testing.T) {
	f := withServices()
	f.settle(t)
	f.asks("c-mon-a", api.AnnotationStop)
	f.settle(t)
	f.mode(1, api.HostDrain)
	f.until(t, "h1 is drained", func() bool { return len(f.states("h1")) == 0 })
	f.checkMons(t, "b@h2", "c@h3", "d@h4")
}

// A restart that is asked for is done once, of one daemon after the other.
func TestRestartAsked_once(t *testing.T) {
	f := withServices()
	f.settle(t)
	start := func(d *api.Daemon) { d.Status.Started = &metav1.MicroTime{Time: f.now.Add(-time.Hour)} }
	for _, d := range f.daemons {
		start(d)
	}
	for _, name := range []string{"c-osd-0", "c-osd-1", "c-osd-2"} {
		d := f.asks(name, api.AnnotationRestart)
		d.Annotations[api.AnnotationRestart] = asked.RestartValue(d, "uid")
	}
	var stopped []string
	for range 40 {
		f.round(t)
		var now []string
		for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
			if d := f.daemons[name]; d.Spec.State == api.WantStopped {
				now = append(now, name)
				d.Status.Started = &metav1.MicroTime{Time: f.now.Add(time.Duration(len(stopped)) * time.Second)}
			}
		}
		if len(now) > 1 {
			t.Fatalf("at once: %v", now)
		}
		if len(now) == 1 && !slices.Contains(stopped, now[0]) {
			stopped = append(stopped, now[0])
		}
		f.agents()
	}
	if want := []string{"c-osd-0", "c-osd-1", "c-osd-2"}; !slices.Equal(stopped, want) {
		t.Errorf("restarted: %v, and not %v", stopped, want)
	}
}
