package ceph

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/optionset"
	"github.com/holdfast-storage/holdfast/engine"
)

func (f *fakeWorld) config(section string, options api.CephOptions) {
	if f.cluster.Spec.Ceph.Config == nil {
		f.cluster.Spec.Ceph.Config = map[string]api.CephOptions{}
	}
	f.cluster.Spec.Ceph.Config[section] = options
}

// confOn is the ceph.conf of a Daemon.
func (f *fakeWorld) confOn(daemon string) string {
	return *f.daemons[daemon].Spec.Files[0].Sources[0].Text
}

// started counts how often daemons were told to run after they had been told to stop.
func (f *fakeWorld) settleCounting(t *testing.T) map[string]int {
	t.Helper()
	restarts := map[string]int{}
	for range 120 {
		f.agents()
		f.stoppedAtOnce(t)
		for _, c := range f.round(t).Daemons {
			if c.Daemon.Spec.State == api.WantStopped {
				restarts[c.Daemon.Name]++
			}
		}
		f.now = f.now.Add(recheckLater)
	}
	return restarts
}

// stoppedAtOnce checks that no two daemons are stopped at one time.
func (f *fakeWorld) stoppedAtOnce(t *testing.T) {
	t.Helper()
	var stopped []string
	for name, d := range f.daemons {
		if d.Spec.State == api.WantStopped {
			stopped = append(stopped, name)
		}
	}
	if len(stopped) > 1 {
		t.Errorf("stopped at one time: %v", stopped)
	}
}

// What is declared is stored in Ceph; what changes is changed there, and what is not declared any more is taken back. What an administrator has
// set stays.
func TestConfig_setChangedUnset(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.ceph.SetOption("osd", "debug_osd", "20/20")
	before := f.confOn("c-osd-0")

	f.config("osd", api.CephOptions{"osd_max_backfills": "3", "osd_memory_target": "4G"})
	f.config("global", api.CephOptions{"mon_max_pg_per_osd": "400"})
	restarts := f.settleCounting(t)
	want := map[string]string{"osd debug_osd": "20/20", "osd osd_max_backfills": "3", "osd osd_memory_target": "4294967296", "global mon_max_pg_per_osd": "400"}
	if diff := cmp.Diff(want, f.ceph.Stored()); diff != "" || len(restarts) > 0 || f.confOn("c-osd-0") != before {
		t.Errorf("restarts %v (-want +got):\n%s", restarts, diff)
	}
	sets := f.ceph.Calls("config set")
	f.settle(t)
	if n := f.ceph.Calls("config set"); n != sets {
		t.Errorf("%d options were set again", n-sets)
	}

	f.config("osd", api.CephOptions{"osd_max_backfills": "5"})
	delete(f.cluster.Spec.Ceph.Config, "global")
	f.settle(t)
	want = map[string]string{"osd debug_osd": "20/20", "osd osd_max_backfills": "5"}
	if diff := cmp.Diff(want, f.ceph.Stored()); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}

	// Somebody changes by hand what is declared: it is set back. What is changed by hand after it was taken out is theirs.
	f.ceph.SetOption("osd", "osd_max_backfills", "9")
	f.settle(t)
	if got := f.ceph.Stored()["osd osd_max_backfills"]; got != "5" {
		t.Errorf("by hand it is %s", got)
	}
	f.ceph.SetOption("osd", "osd_max_backfills", "9")
	f.cluster.Spec.Ceph.Config = nil
	f.settle(t)
	want = map[string]string{"osd debug_osd": "20/20", "osd osd_max_backfills": "9"}
	if diff := cmp.Diff(want, f.ceph.Stored()); diff != "" || len(f.ceph.Keys()) > 0 {
		t.Errorf("unset, keys %v (-want +got):\n%s", f.ceph.Keys(), diff)
	}
}

// A leader that dies after any command, and whose next one remembers nothing, comes to the same end.
func TestConfig_cutOff(t *testing.T) {
	for cut := range 8 {
		f := withFake(threeHosts())
		f.settle(t)
		f.config("osd", api.CephOptions{"osd_max_backfills": "3", "osd_memory_target": "4G"})
		v, p, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		f.ceph.CutAfter(cut, cancel)
		_ = f.apply(ctx, v, p)
		cancel()
		f.driver.Forget("default", "c")
		f.cluster.Spec.Ceph.Config = nil
		f.settle(t)
		if got := f.ceph.Stored(); len(got) > 0 || len(f.ceph.Keys()) > 0 {
			t.Errorf("cut after %d commands: left %v, %v", cut, got, f.ceph.Keys())
		}
	}
}

// An option that was declared after Ceph was asked is not refused: it is set by the next run, which
// asks for it.
func TestConfig_declaredMeanwhile(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f.config("osd", api.CephOptions{"osd_max_backfills": "3"})
	v.Cluster = f.cluster
	p := f.driver.Plan(v, f.now)
	if refused := decisions(p, api.VerdictRefuse); len(refused) > 0 || len(p.Commands) > 0 {
		t.Errorf("it is refused: %v; commands %v", refused, p.Commands)
	}
	if i := slices.IndexFunc(p.Decisions, func(d api.Decision) bool { return d.Object == "config" }); i < 0 ||
		p.Decisions[i].Verdict != api.VerdictWait || p.Decisions[i].Reason != api.ReasonConfiguring {
		t.Errorf("the option is not waited for: %+v", p.Decisions)
	}
	f.settle(t)
	if got := f.ceph.Stored()["osd osd_max_backfills"]; got != "3" {
		t.Errorf("it is set to %q", got)
	}
}

// An option that Ceph does not have, and a value that it does not take, are refused with all that was declared beside them.
func TestConfig_refused(t *testing.T) {
	for _, tt := range []struct {
		section, option, value, want string
	}{
		{"osd", "osd_max_backfill", "3", "Ceph 16.2.15 has no option osd_max_backfill: did you mean osd_max_backfills? The configuration stays unchanged"},
		{"osd", "xyz", "3", "Ceph 16.2.15 has no option xyz. The configuration stays"},
		{"osd", "osd_max_backfills", "lots", `osd_max_backfills cannot be "lots": it is a number, of type uint`},
		{"osd", "osd_max_backfills", "-1", "it is not negative"},
		{"osd", "osd_scrub_begin_hour", "24", "it is at most 23"},
		{"osd", "osd_memory_target", "1M", "it is at least 939524096"},
		{"global", "mon_allow_pool_delete", "maybe", "it is true or false"},
		{"mgr", "mgr/balancer/actve", "true", "has no option mgr/balancer/actve"},
	} {
		t.Run(tt.option+"="+tt.value, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			f.config("osd", api.CephOptions{"debug_osd": "5/5"})
			f.config(tt.section, api.CephOptions{tt.option: api.CephOptionValue(tt.value), "mon_max_pg_per_osd": "300"})
			p := f.settle(t)
			if got := decisions(p, api.VerdictRefuse); !contains(got, tt.want) {
				t.Errorf("refused: %q", got)
			}
			if len(f.ceph.Stored()) > 0 {
				t.Errorf("stored: %v", f.ceph.Stored())
			}
		})
	}
}

// For an option that counts from a start, the daemons that it concerns are started again, one at a time; for one that counts for what is made, none.
func TestConfig_restarts(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.config("osd", api.CephOptions{"bluestore_min_alloc_size": "8192"})
	if got := f.settleCounting(t); len(got) > 0 {
		t.Errorf("for what is made: %v", got)
	}
	f.config("osd", api.CephOptions{"osd_op_queue": "wpq"})
	if diff := cmp.Diff(map[string]int{"c-osd-0": 1, "c-osd-1": 1, "c-osd-2": 1}, f.settleCounting(t)); diff != "" {
		t.Errorf("set: (-want +got):\n%s", diff)
	}
	if conf := f.confOn("c-osd-1"); !strings.Contains(conf, "osd_op_queue = wpq") {
		t.Error(conf)
	}
	f.config("osd", nil)
	f.config("osd.1", api.CephOptions{"osd_op_queue": "wpq"})
	if diff := cmp.Diff(map[string]int{"c-osd-0": 1, "c-osd-1": 1, "c-osd-2": 1}, f.settleCounting(t)); diff != "" {
		t.Errorf("of one: (-want +got):\n%s", diff)
	}
	f.cluster.Spec.Ceph.Config = nil
	if diff := cmp.Diff(map[string]int{"c-osd-1": 1}, f.settleCounting(t)); diff != "" {
		t.Errorf("unset: (-want +got):\n%s", diff)
	}
	if conf := f.confOn("c-osd-1"); strings.Contains(conf, "osd_op_queue") {
		t.Error(conf)
	}
}

// A new cluster begins with all that is declared in its files. What its mons and managers began with they are started again for when it changes;
// OSDs get all of it from the mons.
func TestConfig_founding(t *testing.T) {
	f := withFake(threeHosts())
	f.config("global", api.CephOptions{"mon_lease": "0.5"})
	f.config("osd", api.CephOptions{"osd_max_backfills": "3"})
	f.settle(t)
	if diff := cmp.Diff(map[string]string{"global mon_lease": "0.500000", "osd osd_max_backfills": "3"}, f.ceph.Stored()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for name, has := range map[string]bool{"c-mon-a": true, "c-mgr-a": true, "c-osd-0": false} {
		if strings.Contains(f.confOn(name), "mon_lease") != has {
			t.Errorf("%s:\n%s", name, f.confOn(name))
		}
	}
	f.config("osd", nil)
	f.config("global", api.CephOptions{"mon_lease": "1"})
	got := f.settleCounting(t)
	want := map[string]int{"c-mon-a": 1, "c-mon-b": 1, "c-mon-c": 1, "c-mgr-a": 1, "c-mgr-b": 1}
	if diff := cmp.Diff(want, got); diff != "" || strings.Contains(f.confOn("c-mon-a"), "mon_lease") {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.config("global", api.CephOptions{"mon_lease": "2"})
	if got := f.settleCounting(t); len(got) > 0 || f.ceph.Stored()["global mon_lease"] != "2.000000" {
		t.Errorf("once more: %v, %v", got, f.ceph.Stored())
	}
}

// While an OSD may not stop, Ceph's reason is told, and nothing stops.
func TestConfig_restartWaits(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.config("osd", api.CephOptions{"osd_op_queue": "wpq"})
	f.round(t)
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v.System.(*Observation).Restartable = map[string]StopAnswer{"osd.0": {Reason: "1 PGs would be offline"}}
	p := f.planAt(v, f.now)
	if got := decisions(p, api.VerdictWait); !contains(got, "restarting: osd_op_queue in spec.ceph counts from its start; cannot stop it now: 1 PGs would be offline") || len(p.Daemons) > 0 {
		t.Errorf("%q %v", got, daemonNames(p))
	}
}

// While somebody has a daemon of the cluster started again the plan starts none: two at once may be one too many.
func TestConfig_restartsBesideActions(t *testing.T) {
	for name, tt := range map[string]struct {
		cluster string
		state   api.ActionState
		ago     time.Duration
		waits   bool
	}{
		"it goes on":              {"c", api.ActionRunning, time.Second, true},
		"it begins":               {"c", api.ActionNew, time.Second, true},
		"it waits":                {"c", api.ActionPendingSchedule, time.Second, false},
		"it has ended":            {"c", api.ActionDone, time.Second, false},
		"its agent never ends it": {"c", api.ActionRunning, time.Hour, false},
		"it is another cluster's": {"d", api.ActionRunning, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			f.config("osd", api.CephOptions{"osd_op_queue": "wpq"})
			a := restartOf("c-osd-1", 0)
			a.Name, a.Spec.Cluster, a.Status.State = "restart-1", tt.cluster, tt.state
			started := metav1.NewTime(f.now.Add(-tt.ago))
			a.Status.Started = &started
			f.actions = []api.Action{a}
			var waits, stops bool
			for range 10 {
				p := f.round(t)
				waits = waits || contains(decisions(p, api.VerdictWait), "waiting for action restart-1")
				stops = stops || contains(decisions(p, api.VerdictWait), "; it is stopping")
			}
			if waits != tt.waits || stops == tt.waits {
				t.Errorf("it waits for it: %v, a daemon stops: %v; want %v, %v", waits, stops, tt.waits, !tt.waits)
			}
		})
	}
}

// The pace and the times of scrubs are options of the OSDs, which go with the policy.
func TestPolicy(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	hour := func(h int32) *int32 { return &h }
	f.cluster.Spec.Ceph.Recovery = api.RecoveryGentle
	f.cluster.Spec.Ceph.Scrub = &api.CephScrub{BeginHour: hour(22), EndHour: hour(6)}
	f.settle(t)
	got := f.ceph.Stored()
	if got["osd osd_recovery_sleep_hdd"] != "0.200000" || got["osd osd_scrub_begin_hour"] != "22" || got["osd osd_scrub_end_hour"] != "6" {
		t.Errorf("%v", got)
	}
	f.cluster.Spec.Ceph.Recovery = api.RecoveryBalanced
	f.settle(t)
	if diff := cmp.Diff(map[string]string{"osd osd_scrub_begin_hour": "22", "osd osd_scrub_end_hour": "6"}, f.ceph.Stored()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.config("osd", api.CephOptions{"osd_scrub_end_hour": "7"})
	if got := decisions(f.settle(t), api.VerdictRefuse); !contains(got, "spec.ceph.config.osd has osd_scrub_end_hour, which spec.ceph.recovery or spec.ceph.scrub also sets") {
		t.Errorf("%q", got)
	}
	if mclock := policyOptions(&api.CephSpec{Recovery: api.RecoveryFast}, "18.2.7"); !maps.Equal(mclock, map[string]string{"osd_mclock_profile": "high_recovery_ops"}) {
		t.Errorf("%v", mclock)
	}
}

// A plan foresees that the options are stored, and has then nothing more to do.
func TestConfig_foreseen(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.config("osd", api.CephOptions{"osd_max_backfills": "3"})
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := *v
	after.System = f.driver.Foresee(v, &after, p.Commands)
	if next := f.planAt(&after, f.now); len(p.Commands) != 1 || len(next.Commands) > 0 {
		t.Errorf("%+v, then %+v", p.Commands, next.Commands)
	}
	var _ engine.Planner = f.driver
}

func TestOptions_text(t *testing.T) {
	want := options{"global": {"a": "1", "b": "x = y"}, "osd.3": {"c": ""}}
	if diff := cmp.Diff(want, optionset.Parse(wholeConf+want.Text())); diff != "" {
		t.Error(diff)
	}
}
