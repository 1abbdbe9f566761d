package ceph

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// What Ceph says decides the status. Each case changes one thing of a cluster that is well.
func TestStatus(t *testing.T) {
	all := func(o *Observation, change func(*OSD)) {
		for id, d := range o.OSDs {
			change(&d)
			o.OSDs[id] = d
		}
	}
	for _, tt := range []struct {
		name   string
		change func(o *Observation)
		status api.StorageState
		reason string
	}{
		{"well", func(*Observation) {}, api.StorageOnline, ""},
		{"one placement group is not clean", func(o *Observation) { o.PGs, o.PGsActive, o.PGsClean = 9, 9, 8 }, api.StorageDegraded, "8 of 9 placement groups are active+clean"},
		{"none is active", func(o *Observation) { o.PGsActive, o.PGsClean = 0, 0 }, api.StorageOffline, "0 of 1 placement groups"},
		{"more to be reported", func(o *Observation) { o.PGsWanted = 33 }, api.StorageDegraded, "the mgr has not reported on all placement groups yet (1 of 33)"},
		{"a standby is missing", func(o *Observation) { o.Standbys = 0 }, api.StorageDegraded, "1 of 2 mgrs are available"},
		{"no mgr", func(o *Observation) { o.MgrAvailable = false }, api.StorageDegraded, "no mgr is active yet"},
		{"a mon is missing", func(o *Observation) { o.Quorum = []string{"a", "c"} }, api.StorageDegraded, "mon.b on h2 is not in the quorum"},
		{"no OSD is up", func(o *Observation) { all(o, func(d *OSD) { d.Up = false }) }, api.StorageOffline, "osd.0 on h1 is down"},
		{"an OSD is out", func(o *Observation) { o.OSDs[1] = OSD{UUID: o.OSDs[1].UUID, Up: true} }, api.StorageDegraded, "osd.1 on h2 is out"},
		{"a check", func(o *Observation) {
			o.Health, o.Checks = "HEALTH_ERR", []api.HealthCheck{{Code: "X", Severity: "HEALTH_ERR", Message: "bad"}}
		}, api.StorageDegraded, "HEALTH_ERR: X: bad"},
		{"a word without a check", func(o *Observation) { o.Health = "HEALTH_WARN" }, api.StorageDegraded, "Ceph reports HEALTH_WARN"},
		{"silence", func(o *Observation) { *o = Observation{Error: "no answer"} }, api.StorageOffline, "waiting for 2 of 3 mons to form a quorum"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			v, _, err := f.observed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tt.change(v.System.(*Observation))
			p := f.planAt(v, f.now)
			if p.Status.Status != tt.status || p.Done != (tt.status == api.StorageOnline) {
				t.Errorf("%s, done %v: %v", p.Status.Status, p.Done, p.Status.Reasons)
			}
			if tt.reason != "" && (!contains(p.Status.Reasons, tt.reason) || p.Status.Message != p.Status.Reasons[0]) {
				t.Errorf("%q is not among the reasons %q, message %q", tt.reason, p.Status.Reasons, p.Status.Message)
			}
		})
	}
}

// While a new cluster comes up it is OFFLINE, also when the first of its OSDs is up already.
func TestStatus_offlineUntilAllIsUp(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := v.System.(*Observation)
	o.OSDs[2] = OSD{UUID: o.OSDs[2].UUID, In: true}
	started := metav1.NewMicroTime(f.now)
	v.Daemons[0].Status.Started = &started
	v.Status.Status.Status = api.StorageOffline
	if p := f.planAt(v, f.now); p.Status.Status != api.StorageOffline || p.Status.Nodes != 2 {
		t.Errorf("%+v", p.Status)
	}
	// What does not come for long is missing, and the rest serves data.
	if p := f.planAt(v, f.now.Add(2*lively)); p.Status.Status != api.StorageDegraded {
		t.Errorf("later: %+v", p.Status)
	}
}

func TestStatus_bounded(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := v.System.(*Observation)
	o.Health = "HEALTH_WARN"
	for i := range 100 {
		o.Checks = append(o.Checks, api.HealthCheck{Code: fmt.Sprintf("CHECK_%d", i), Message: strings.Repeat("ä", 1024)})
	}
	s := f.planAt(v, f.now).Status
	if len(s.Reasons) != 64 || s.Reasons[64-1] != "and 37 more" || len(s.Checks) > 64 || len(s.Message) > 1024 {
		t.Errorf("%d reasons, %d checks, a message of %d bytes", len(s.Reasons), len(s.Checks), len(s.Message))
	}
}

// A Daemon that is being removed is left to its agent.
func TestPlan_daemonOnItsWayOut(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	now := f.daemons["c-osd-1"].CreationTimestamp
	f.daemons["c-osd-1"].DeletionTimestamp = &now
	f.cluster.Spec.Network.Public = "10.0.0.0/16" // changes every Daemon
	p := f.plan()
	if len(p.Daemons) != 7 || contains(daemonNames(p), "c-osd-1") ||
		!contains(decisions(p, api.VerdictWait), "being removed from host h2; created again afterwards") {
		t.Errorf("%v %v", daemonNames(p), decisions(p, api.VerdictWait))
	}
	for _, c := range p.Daemons {
		if c.Reason != "its files change (used from its next start)" {
			t.Errorf("%s: %s", c.Daemon.Name, c.Reason)
		}
	}
}

func TestObserve_nothingToAsk(t *testing.T) {
	f := withFake(threeHosts())
	system, err := f.driver.Observe(t.Context(), f.view(), f)
	if system != nil || err != nil {
		t.Errorf("without daemons: %v, %v", system, err)
	}
	f.round(t)
	if system, err = f.driver.Observe(t.Context(), f.view(), f); system != nil || err != nil {
		t.Errorf("before a mon runs: %v, %v", system, err)
	}
	f.daemons["c-mon-a"].Status.State = api.DaemonRunning
	system, err = f.driver.Observe(t.Context(), f.view(), f)
	if o, ok := system.(*Observation); !ok || err != nil || o.Reachable || o.Error == "" {
		t.Errorf("without a quorum: %+v, %v", system, err)
	}
	delete(f.secrets, "c-key-client.admin")
	if _, err = f.driver.Observe(t.Context(), f.view(), f); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("without a key: %v", err)
	}
}

// The connection is kept as long as addresses and key are the same, and ended by Forget.
func TestConnections(t *testing.T) {
	f := withFake(threeHosts())
	var dialled []rados.Config
	closed := make(chan rados.Config, 4)
	f.driver.Dial = func(cfg rados.Config) rados.Client {
		dialled = append(dialled, cfg)
		return closer{f.ceph.Dial(cfg), func() { closed <- cfg }}
	}
	f.settle(t)
	want := rados.Config{
		FSID: worldUID, Entity: entityAdmin, Key: string(f.secrets["c-key-client.admin"].data[secretKey]),
		MonHost: "[v2:10.0.0.1:3300,v1:10.0.0.1:6789],[v2:10.0.0.2:3300,v1:10.0.0.2:6789],[v2:10.0.0.3:3300,v1:10.0.0.3:6789]",
	}
	if diff := cmp.Diff([]rados.Config{want}, dialled); diff != "" {
		t.Fatalf("dialled (-want +got):\n%s", diff)
	}
	f.secrets["c-key-client.admin"].data[secretKey] = []byte("another")
	f.round(t)
	if len(dialled) != 2 || dialled[1].Key != "another" || (<-closed).Key != want.Key {
		t.Errorf("dialled %+v", dialled)
	}
	f.driver.Forget("default", "other")
	f.driver.Forget("default", "c")
	if got := <-closed; got.Key != "another" {
		t.Errorf("closed %+v", got)
	}
	f.round(t)
	if len(dialled) != 3 {
		t.Errorf("after Forget, dialled %d times", len(dialled))
	}
}

type closer struct {
	rados.Client
	closed func()
}

func (c closer) Close() error {
	c.closed()
	return c.Client.Close()
}

// A manager that is added later was not among those that the mons were made with: its key is imported.
func TestMissingEntity(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.cluster.Spec.Ceph.Mgr.Count = 3
	p := f.round(t)
	if len(p.Commands) != 1 || p.Commands[0].Verb != verbAuthImport || p.Commands[0].Object != "mgr.c" {
		t.Errorf("%+v", p.Commands)
	}
	if p = f.settle(t); !p.Done {
		t.Errorf("%v", p.Status.Reasons)
	}
}

func TestParseVersions(t *testing.T) {
	for text, want := range map[string]string{
		`{"mon":{"ceph version 16.2.15 (x) pacific (stable)":3}}`:                                                     "16.2.15",
		`{"mon":{"ceph version 16.2.15 (x) pacific (stable)":1,"ceph version 16.2.9 (x) pacific (stable)":2}}`:        "16.2.9",
		`{"mon":{"ceph version 18.2.7 (x) reef (stable)":1,"ceph version 20.2.4 (x) tentacle (stable - Release)":2}}`: "18.2.7",
		`{}`: "",
	} {
		if got, err := parseVersions([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", text, got, err, want)
		}
	}
}

// A manager that became active long after it was started is given time for its own pool; a cluster that is ONLINE
// stays so.
func TestStatus_newMgr(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.now = f.now.Add(time.Hour)
	for status, want := range map[api.StorageState]bool{api.StorageOffline: false, api.StorageOnline: true} {
		for after, done := range map[time.Duration]bool{time.Second: want, firstPool + time.Second: true} {
			v, _, err := f.observed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o := v.System.(*Observation)
			o.PGs, o.PGsWanted, o.PGsActive, o.PGsClean, o.MgrSince = 0, 0, 0, 0, metav1.NewTime(f.now.Add(-after))
			v.Status.Status.Status = status
			if p := f.planAt(v, f.now); (p.Status.Status == api.StorageOnline) != done {
				t.Errorf("%s, active for %v: %s %v", status, after, p.Status.Status, p.Status.Reasons)
			}
		}
	}
}

// A mgr whose process runs while Ceph has none is started again, and the next one not before that.
func TestRestart_mgrHangs(t *testing.T) {
	hung := waits.Default().MgrHangs
	f := withFake(threeHosts())
	f.settle(t)
	f.now = f.now.Add(hung + time.Minute)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	o := v.System.(*Observation)
	o.MgrAvailable, o.ActiveMgr, o.Standbys = false, "", 0
	for i := range v.Daemons {
		v.Daemons[i].Status.Started = &metav1.MicroTime{Time: f.now.Add(-hung - time.Second)}
	}
	for name, want := range map[string]api.WantedState{"c-mgr-a": api.WantStopped, "c-mgr-b": api.WantRunning} {
		if got := wantedOf(f.planAt(v, f.now), v, name); got != want {
			t.Errorf("%s is to be %s, want %s", name, got, want)
		}
	}
	if got := wantedOf(f.planAt(v, f.now.Add(-2*time.Minute)), v, "c-mgr-a"); got != api.WantRunning {
		t.Errorf("early: %s", got)
	}
}

func wantedOf(p *engine.Plan, v *engine.View, name string) api.WantedState {
	for _, c := range p.Daemons {
		if c.Daemon.Name == name {
			return c.Daemon.Spec.State
		}
	}
	for i := range v.Daemons {
		if v.Daemons[i].Name == name {
			return v.Daemons[i].Spec.State
		}
	}
	return ""
}
