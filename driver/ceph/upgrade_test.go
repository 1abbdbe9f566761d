package ceph

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// install puts a release of Ceph on hosts; none for all. What runs there runs on.
func (f *fakeWorld) install(release string, hosts ...int) {
	for i := range f.hosts {
		if len(hosts) > 0 && !slices.Contains(hosts, i+1) {
			continue
		}
		f.hosts[i].Status.Packages = map[string]api.Release{"ceph": api.Release(release)}
		for _, daemonType := range restartTypes {
			f.hosts[i].Status.Packages[daemonType] = api.Release(release)
		}
	}
}

// restartsIn lets rounds pass and returns which daemons were told to stop, in their order. Never are two stopped at one time.
func (f *fakeWorld) restartsIn(t *testing.T, rounds int) (stopped []string) {
	t.Helper()
	for range rounds {
		f.agents()
		f.stoppedAtOnce(t)
		for _, c := range f.round(t).Daemons {
			if c.Daemon.Spec.State == api.WantStopped {
				stopped = append(stopped, strings.TrimPrefix(c.Daemon.Name, "c-"))
			}
		}
		f.now = f.now.Add(recheckLater)
	}
	return stopped
}

// projected is all that a person is shown now of what will happen.
func (f *fakeWorld) projected(t *testing.T) *engine.Projection {
	t.Helper()
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return engine.Project(f.driver, v, f.now)
}

// stopsIn are the daemons that a projection has told to stop, in their order.
func stopsIn(p *engine.Projection) (stopped []string) {
	for _, s := range p.Steps {
		for _, c := range s.Plan.Daemons {
			if c.Daemon.Spec.State == api.WantStopped {
				stopped = append(stopped, strings.TrimPrefix(c.Daemon.Name, "c-"))
			}
		}
	}
	return stopped
}

func upgraded(t *testing.T) *fakeWorld {
	t.Helper()
	f := storesOn(3, storeOf("s3"))
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	f.install("16.2.15")
	f.settle(t)
	return f
}

// Daemons follow the packages of their hosts, in Ceph's order and one at a time; of the MDS the one that works comes last.
func TestUpgrade(t *testing.T) {
	f := upgraded(t)
	active := f.filesystems[0].Status.Active
	f.install("17.2.7")
	foretold := stopsIn(f.projected(t))
	stopped := f.restartsIn(t, 250)
	if diff := cmp.Diff(stopped, foretold); diff != "" {
		t.Errorf("what happened (-) is not what was foretold (+):\n%s", diff)
	}
	kinds := slices.Compact(slices.Collect(func(yield func(string) bool) {
		for _, name := range stopped {
			kind, _, _ := strings.Cut(name, "-")
			if !yield(kind) {
				return
			}
		}
	}))
	if diff := cmp.Diff([]string{"mon", "mgr", "osd", "mds", "rgw"}, kinds); diff != "" || len(stopped) != 11 {
		t.Fatalf("stopped %v (-want +got):\n%s", stopped, diff)
	}
	if i := slices.Index(stopped, "mds-"+active); i < 1 || !strings.HasPrefix(stopped[i-1], "mds-") || strings.HasPrefix(stopped[i+1], "mds-") {
		t.Errorf("%s worked, and they were stopped in the order %v", active, stopped)
	}
	for name, d := range f.daemons {
		if d.Status.Version != "17.2.7" || d.Spec.State != api.WantRunning {
			t.Errorf("%s runs %s, and is wanted %s", name, d.Status.Version, d.Spec.State)
		}
	}
	if p := f.settle(t); !p.Done || f.filesystems[0].Status.State != api.ResourceOnline || f.store().Status.State != api.ResourceOnline {
		t.Errorf("done %v, %+v, %+v", p.Done, f.filesystems[0].Status, f.store().Status)
	}
}

// Where hosts are upgraded one after the other, what runs on the first waits for the mons of the others, and says so.
func TestUpgrade_hostByHost(t *testing.T) {
	f := upgraded(t)
	f.install("17.2.7", 1)
	if got := f.restartsIn(t, 60); !slices.Equal(got, []string{"mon-a"}) {
		t.Fatalf("with one host: %v", got)
	}
	if got := decisions(f.settle(t), api.VerdictSkip); !contains(got, "waiting for mon.b, which runs 16.2.15: install Ceph 17.2.7 on host h2, too") {
		t.Errorf("%q", got)
	}
	f.install("17.2.7", 2, 3)
	if got := f.restartsIn(t, 250); len(got) != 10 || !slices.Equal(got[:2], []string{"mon-b", "mon-c"}) {
		t.Errorf("with all: %v", got)
	}
}

// To an older release, or over three of them, Ceph does not go.
func TestUpgrade_not(t *testing.T) {
	for release, want := range map[string]string{"16.2.11": "", "19.2.0": "Ceph upgrades over at most 2 releases"} {
		f := upgraded(t)
		f.install(release)
		if got := f.restartsIn(t, 20); len(got) > 0 {
			t.Errorf("%s: %v", release, got)
		}
		if got := decisions(f.settle(t), api.VerdictSkip); contains(got, "Ceph upgrades over") != (want != "") {
			t.Errorf("%s: %q", release, got)
		}
	}
}

// A filesystem with several active MDS goes to one, and back when all are upgraded.
func TestUpgrade_ranks(t *testing.T) {
	f := filesystemsOn(4, filesystemOf("home", func(f *api.Filesystem) { f.Spec.ActiveMDS = 2 }))
	f.install("16.2.15")
	f.settle(t)
	f.install("16.2.16")
	for range 250 {
		f.agents()
		stopped := 0
		for _, d := range f.daemons {
			if d.Spec.Type == TypeMDS && d.Spec.State == api.WantStopped {
				stopped++
			}
		}
		if n := len(f.ceph.Active("home")); stopped > 0 && n > 1 {
			t.Fatalf("%d MDS are stopped while %d work", stopped, n)
		}
		f.round(t)
		f.now = f.now.Add(recheckLater)
	}
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || len(f.ceph.Active("home")) != 2 {
		t.Errorf("%+v, active %v", s, f.ceph.Active("home"))
	}
	for name, d := range f.daemons {
		if d.Status.Version != "16.2.16" {
			t.Errorf("%s runs %s", name, d.Status.Version)
		}
	}
}

// For its configuration, too, the MDS that works is started again after the one that stands by.
func TestConfig_restartsMDS(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.settle(t)
	active, standby := f.filesystems[0].Status.Active, f.filesystems[0].Status.Standby
	f.config("mds", api.CephOptions{"osd_op_queue": "wpq"})
	if got := f.restartsIn(t, 60); !slices.Equal(got, []string{"mds-" + standby, "mds-" + active}) {
		t.Errorf("%v", got)
	}
}

// Names of options are looked at before anything is made, where the release is one whose names are known.
func TestConfig_namesBeforeFounding(t *testing.T) {
	for _, tt := range []struct {
		release, option string
		verdict         api.Verdict
		want            string
	}{
		{"16.2.15", "osd_max_backfill", api.VerdictRefuse, "Ceph 16.2.15 has no option osd_max_backfill: did you mean osd_max_backfills? Holdfast creates no daemons"},
		{"16.2.15", "osd_max_backfills", api.VerdictRefuse, ""},
		{"18.2.1", "osd_new", api.VerdictSkip, "Holdfast checks whether Ceph 18.2.1, the release on the hosts, has it when the mons answer"},
		{"16.2.15", "mgr/balancer/active", api.VerdictRefuse, ""},
	} {
		f := withFake(threeHosts())
		f.install(tt.release)
		f.config("osd", api.CephOptions{tt.option: "3"})
		p := f.round(t)
		if got := word(decisions(p, tt.verdict), "config"); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s of %s: %q", tt.option, tt.release, got)
		}
		if refused := tt.verdict == api.VerdictRefuse && tt.want != ""; p.Refused != refused || refused && len(f.daemons)+len(f.secrets) > 0 {
			t.Errorf("%s: refused %v, %d daemons", tt.option, p.Refused, len(f.daemons))
		}
	}
}

// TestOlderRelease compares numbers, not text, and takes what is no number for 0.
func TestOlderRelease(t *testing.T) {
	for _, x := range []struct {
		a, b string
		want bool
	}{
		{"16.2.9", "16.2.15", true},
		{"16.2.15", "16.2.9", false},
		{"16.2.15", "16.2.15", false},
		{"9.2.1", "16.0.0", true},
		{"16.2", "16.2.1", true},
		{"19.2.0-rc1", "19.2.1", true},
		{"19.2.1-rc1", "19.2.1", false},
		{"", "16.2.0", true},
		{"dev", "1", true},
	} {
		if olderRelease(x.a, x.b) != x.want {
			t.Errorf("%q is older than %q: %t", x.a, x.b, !x.want)
		}
	}
}

// TestProject_restarts: what Ceph would say to the restart of an OSD is foretold where it is known; else that it has to be asked.
func TestProject_restarts(t *testing.T) {
	said := func(a StopAnswer) func(*fakeWorld, *Observation) {
		return func(_ *fakeWorld, o *Observation) { o.Restartable = map[string]StopAnswer{"osd.0": a} }
	}
	for name, tt := range map[string]struct {
		change func(*fakeWorld, *Observation)
		stops  int
		open   string
	}{
		"all is well":               {func(*fakeWorld, *Observation) {}, 3, ""},
		"Ceph said yes":             {said(StopAnswer{OSDs: []int{0}, OK: true}), 3, ""},
		"Ceph said no":              {said(StopAnswer{OSDs: []int{0}, Reason: "1 PGs would be offline"}), 0, "1 PGs would be offline"},
		"Ceph said no of others":    {said(StopAnswer{OSDs: []int{0, 1}, Reason: "1 PGs would be offline"}), 3, ""},
		"Ceph did not know":         {said(StopAnswer{OSDs: []int{0}, Unknown: true, Reason: "the mgr is new"}), 3, ""},
		"a pool has a copy to lose": {func(_ *fakeWorld, o *Observation) { o.Pools = []Pool{{Size: 3, MinSize: 2}} }, 3, ""},
		"a pool needs all copies":   {func(_ *fakeWorld, o *Observation) { o.Pools = []Pool{{Size: 3, MinSize: 2}, {Size: 1, MinSize: 1}} }, 0, "waiting for Ceph's answer whether it may stop (ok-to-stop)"},
		"copies are missing":        {func(_ *fakeWorld, o *Observation) { o.PGsClean-- }, 0, "waiting for Ceph's answer whether it may stop (ok-to-stop)"},
		"an OSD is away": {func(f *fakeWorld, o *Observation) {
			o.OSDs[2] = OSD{UUID: o.OSDs[2].UUID, In: true}
			d := f.daemons["c-osd-2"]
			d.Status.State = api.DaemonFailed
		}, 0, "waiting for osd.2, which does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			f.config("osd", api.CephOptions{"osd_op_queue": "wpq"})
			f.round(t)
			v, _, err := f.observed(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			o := v.System.(*Observation)
			o.Restartable = nil
			tt.change(f, o)
			v.Daemons = f.view().Daemons
			p := engine.Project(f.driver, v, f.now)
			if got := stopsIn(p); len(got) != tt.stops || (tt.open == "") != (len(p.Open) == 0) || !strings.Contains(strings.Join(p.Open, "; "), tt.open) {
				t.Errorf("stops %v, open %q; want %d, %q", got, p.Open, tt.stops, tt.open)
			}
		})
	}
}

// TestForesee_release: the release is that of the mons that Ceph counts, and follows them as they are started again.
func TestForesee_release(t *testing.T) {
	f := upgraded(t)
	f.cluster.Spec.Ceph.Recovery = api.RecoveryFast
	f.settle(t)
	f.install("17.2.7")
	p := f.projected(t)
	verbs := map[string]string{}
	for _, s := range p.Steps {
		for _, c := range s.Plan.Commands {
			verbs[c.Verb] += c.Reason
		}
	}
	if !strings.Contains(verbs[verbConfigSet], "osd_mclock_profile") || !strings.Contains(verbs[verbConfigRm], "osd_recovery_sleep_hdd") || len(p.Open) > 0 {
		t.Errorf("%q, open %q", verbs, p.Open)
	}
	f.restartsIn(t, 250)
	if got := f.ceph.Stored(); got["osd osd_mclock_profile"] != "high_recovery_ops" || got["osd osd_recovery_sleep_hdd"] != "" {
		t.Errorf("stored are %v", got)
	}
	// The host of a mon that still ran the older release when it was lost.
	f.daemons["c-mon-c"].Status.Version = "16.2.15"
	f.powerOff(3, time.Second)
	f.settle(t)
	if p := f.projected(t); len(p.Steps) > 0 {
		t.Errorf("%d steps, the first asks for %+v", len(p.Steps), p.Steps[0].Plan.Commands)
	}
}
