package ceph

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// bounce has an OSD go down and come back so many times, each followed by a pause. Each time another leader looks.
func (f *fakeWorld) bounce(t *testing.T, name string, times int, pause time.Duration) {
	t.Helper()
	for range times {
		f.driver = &Driver{Dial: f.ceph.Dial, Now: radostest.Clock()}
		for _, broken := range []bool{true, false} {
			f.broken[name] = broken
			for range 4 {
				f.agents()
				f.round(t)
			}
		}
		f.now = f.now.Add(pause)
	}
}

// start has a daemon that is held back try again, as 'holdfast daemon start' does.
func (f *fakeWorld) start(d *api.Daemon) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	d.Annotations[api.AnnotationStart] = f.now.Format(time.RFC3339)
}

// An OSD that comes back for the fifth time within ten minutes is held back, and says why and what to do. It tries again when it is told to, and is
// counted anew.
func TestFlaps_heldBack(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.bounce(t, "c-osd-7", flapCount-1, time.Minute)
	if d := f.daemons["c-osd-7"]; told(d) || len(memory.FlapsOf(d)) != flapCount-1 {
		t.Fatalf("%s after %v", d.Spec.State, d.Spec.Parameters)
	}
	f.bounce(t, "c-osd-7", 1, 0)
	p := f.settle(t)
	d := f.daemons["c-osd-7"]
	const want = "went down and came back 5 times within 10m0s"
	if w := word(decisions(p, api.VerdictSkip), "osd.7"); d.Spec.State != api.WantStopped || !strings.Contains(w, want) || !strings.Contains(w, "run 'holdfast daemon start osd.7'") {
		t.Errorf("%s, %q of %v", d.Spec.State, w, decisions(p))
	}
	if !contains(p.Status.Reasons, "osd.7 on h4 is down: held back since") || !p.Empty() {
		t.Errorf("%v", p.Status.Reasons)
	}
	f.now = f.now.Add(time.Hour)
	if p = f.settle(t); !told(f.daemons["c-osd-7"]) {
		t.Errorf("it started by itself: %v", decisions(p))
	}
	f.start(d)
	f.now = f.now.Add(time.Minute)
	if p = f.settle(t); !p.Done || told(f.daemons["c-osd-7"]) {
		t.Errorf("%v", decisions(p))
	}
	f.bounce(t, "c-osd-7", flapCount-1, time.Second)
	if told(f.daemons["c-osd-7"]) {
		t.Error("what was before it tried again counts")
	}
	f.bounce(t, "c-osd-7", 1, time.Second)
	if !told(f.daemons["c-osd-7"]) {
		t.Error("it is not held back a second time")
	}
}

// What does not come often enough, or was done on purpose, holds nothing back; nor is an OSD held back that data needs, or one on another host than
// one that is.
func TestFlaps_notHeldBack(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(*testing.T, *fakeWorld)
		want string
	}{
		"too seldom": {func(t *testing.T, f *fakeWorld) { f.bounce(t, "c-osd-7", 12, 3*time.Minute) }, ""},
		"maintenance": {func(t *testing.T, f *fakeWorld) {
			for range flapCount + 1 {
				f.mode(4, api.HostMaintenance)
				f.settle(t)
				f.mode(4, api.HostActive)
				f.settle(t)
			}
		}, ""},
		"others fall, too": {func(t *testing.T, f *fakeWorld) {
			for range flapCount + 1 {
				for i := 1; i <= 4; i++ {
					f.powerOff(i, 0)
				}
				f.agents()
				for i := 1; i <= 4; i++ {
					f.powerOn(i)
					f.agents()
					f.round(t)
				}
				f.settle(t)
			}
		}, ""},
		"all are killed, and come back one after the other": {func(t *testing.T, f *fakeWorld) {
			for range flapCount + 1 {
				for _, name := range []string{"c-osd-0", "c-osd-3", "c-osd-7"} {
					for _, broken := range []bool{true, false} {
						f.broken[name] = broken
						f.agents()
					}
					f.round(t)
				}
				f.settle(t)
				f.now = f.now.Add(time.Second)
			}
		}, ""},
		"restarted by a person": {func(t *testing.T, f *fakeWorld) {
			goesOn, began := restartOf("c-osd-7", 0), metav1.NewTime(f.now)
			goesOn.Status.Started = &began
			f.actions = []api.Action{goesOn}
			f.bounce(t, "c-osd-7", flapCount+1, time.Second)
		}, ""},
		"another host": {func(t *testing.T, f *fakeWorld) {
			f.bounce(t, "c-osd-5", flapCount, time.Second)
			if !told(f.daemons["c-osd-5"]) {
				t.Error("osd.5 is not held back")
			}
			f.bounce(t, "c-osd-7", flapCount+1, time.Second)
		}, "because osd.5 on host h3 is already held back"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(twoDisks())
			f.settle(t)
			tt.do(t, f)
			p := f.round(t)
			if w := word(decisions(p), "osd.7"); told(f.daemons["c-osd-7"]) || tt.want != "" && !strings.Contains(w, tt.want) {
				t.Errorf("%s: %q of %v", f.daemons["c-osd-7"].Spec.State, w, decisions(p))
			}
		})
	}
}

// restartOf is an Action that restarts a daemon, and ended so long ago; zero is not yet.
func restartOf(daemon string, ago time.Duration) api.Action {
	a := api.Action{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: api.ActionSpec{Kind: api.ActionDaemonRestart, Target: "daemon/" + daemon}}
	ended := metav1.NewTime(testTime.Add(-ago))
	a.Status.Started = &ended
	if ago > 0 {
		a.Status.Finished = &ended
	}
	return a
}

// A restart accounts for what is seen of its own daemon while it goes on, and shortly after.
func TestRestarted(t *testing.T) {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c-osd-7"}}
	notBegun, other := restartOf("c-osd-7", 0), restartOf("c-osd-7", 0)
	notBegun.Status.Started, other.Namespace = nil, "other"
	stuck, ahead := restartOf("c-osd-7", waits.Default().RestartEnd+time.Second), restartOf("c-osd-7", -time.Hour)
	stuck.Status.Finished, ahead.Status.Finished = nil, ahead.Status.Started
	for name, tt := range map[string]struct {
		action api.Action
		want   bool
	}{
		"it goes on":           {restartOf("c-osd-7", 0), true},
		"it has ended":         {restartOf("c-osd-7", waits.Default().RestartBack), true},
		"it ended long ago":    {restartOf("c-osd-7", waits.Default().RestartBack+time.Second), false},
		"it is not begun":      {notBegun, false},
		"nobody ends it":       {stuck, false},
		"its clock is ahead":   {ahead, false},
		"of another daemon":    {restartOf("c-osd-70", 0), false},
		"of another namespace": {other, false},
	} {
		if got := restarted(d, []api.Action{tt.action}, testTime, waits.Default()); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// The only OSD is not held back, and that it flaps is told.
func TestFlaps_dataNeedsIt(t *testing.T) {
	w := newWorld(1, 1)
	w.host(1, 1)
	w.node(1, "wwn-10")
	f := withFake(w)
	f.settle(t)
	f.bounce(t, "c-osd-0", flapCount+1, time.Second)
	p := f.round(t)
	if w := word(decisions(p, api.VerdictSkip), "osd.0"); told(f.daemons["c-osd-0"]) || !strings.Contains(w, "not held back because Ceph says \"unsafe to stop") {
		t.Errorf("%q", w)
	}
}

// An OSD that is held back is let go when data is out of reach: it may have the last copy of it.
func TestFlaps_lastCopy(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.bounce(t, "c-osd-7", flapCount, time.Second)
	f.settle(t)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := v.System.(*Observation)
	o.Checks = append(o.Checks, api.HealthCheck{Code: checkAvailability, Message: "Reduced data availability: 1 pg inactive"})
	p := f.planAt(v, f.now)
	if !slices.Contains(daemonNames(p), "c-osd-7@h4=Running") || !contains(decisions(p, api.VerdictDo), "starting the held-back OSD") {
		t.Errorf("%v %v", daemonNames(p), decisions(p))
	}
}

// Ceph's word that an OSD may stop does not count beside another one that stops in the same run.
func TestFlaps_notBesideAnother(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.bounce(t, "c-osd-7", flapCount-1, time.Second)
	f.bounce(t, "c-osd-7", 1, 0)
	d := f.daemons["c-osd-7"]
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := newPlanner(v, f.now)
	p.identity()
	p.seen.Holdable = map[string]StopAnswer{label(d): {OSDs: []int{7}, OK: true}}
	if why := p.mayNotHold(d, nil); why != "" {
		t.Errorf("alone: %q", why)
	}
	p.stop["c-osd-2"] = true
	if why := p.mayNotHold(d, nil); !strings.Contains(why, "checking with Ceph") {
		t.Errorf("beside one that stops: %q", why)
	}
}

// An OSD that is held back counts as failed: the disk that is named in the place of its own takes its number.
func TestFlaps_replaced(t *testing.T) {
	f := withFake(twoDisks())
	f.settle(t)
	f.bounce(t, "c-osd-7", flapCount, time.Second)
	f.settle(t)
	h := &f.hosts[3]
	h.Status.Devices = append(h.Status.Devices, api.Device{ID: "wwn-4x", Path: "/dev/sdz", Availability: api.DeviceAvailable})
	f.nodes[3].Spec.Devices = []string{"wwn-40", "wwn-4x"}
	p := f.settle(t)
	if d := f.daemons["c-osd-7"]; d == nil || placeOf(d).device != "wwn-4x" || told(d) || !p.Done {
		t.Errorf("%v", decisions(p))
	}
}

func TestFlaps_text(t *testing.T) {
	all := []memory.Flap{{Epoch: 7}, {Epoch: 41, At: testTime}}
	d := &api.Daemon{}
	memory.Set(d, memory.Flaps, memory.FlapsText(all))
	if diff := cmp.Diff(all, memory.FlapsOf(d)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
