package ceph

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// againstRestart is what is said when somebody asks for the restart of a daemon, as "Verdict: message"; nothing when it may be.
func (w *world) againstRestart(t *testing.T, daemon string) (word string) {
	t.Helper()
	v := w.view()
	v.Restart = daemon
	system, err := w.driver.Observe(t.Context(), v, w)
	if err != nil {
		t.Fatal(err)
	}
	v.System = system
	return wordOn(w.planAt(v, w.now), daemon)
}

// checkRestarts asks a real Ceph of daemons that it can do without, and of too many at once.
func checkRestarts(t *testing.T, w *world, c rados.Client, prefix, refusal string, ids []string, daemons ...string) {
	t.Helper()
	for _, name := range daemons {
		if word := w.againstRestart(t, name); word != "" {
			t.Errorf("the restart of %s while all is well: %q", name, word)
		}
	}
	_, err := c.Mon(t.Context(), command{"prefix": prefix, "ids": ids, "format": "json"}, nil)
	var refused *rados.CommandError
	if !errors.As(err, &refused) || refused.Errno != syscall.EBUSY || !strings.Contains(refused.Status, refusal) {
		t.Errorf("%s of %v: %v, and not %q", prefix, ids, err, refusal)
	}
}

func wordOn(p *engine.Plan, daemon string) (word string) {
	for _, d := range p.AgainstRestart(daemon) {
		word += string(d.Verdict) + ": " + d.Message
	}
	return word
}

// Ceph's own word decides whether the others can do without a daemon for a moment.
func TestRestart_asked(t *testing.T) {
	for name, tt := range map[string]struct {
		daemon string
		broken []string
		change func(*fakeWorld)
		want   string // the beginning; empty when nothing is against it
	}{
		"an OSD while all are up":             {daemon: "c-osd-1"},
		"a mon while all are in the quorum":   {daemon: "c-mon-a"},
		"the active mgr":                      {daemon: "c-mgr-a"},
		"the only mgr that runs":              {daemon: "c-mgr-a", broken: []string{"c-mgr-b"}},
		"an active MDS with a standby":        {daemon: "c-mds-home-a"},
		"an OSD while another one is down":    {"c-osd-1", []string{"c-osd-0"}, nil, "Refuse: cannot stop osd.1 now; Ceph reports: unsafe to stop osd(s) at this time (1 PGs are or would become offline), with osd.0 down already"},
		"the OSD that Ceph counts as down":    {daemon: "c-osd-0", broken: []string{"c-osd-0"}},
		"an OSD while another one is to stop": {"c-osd-1", nil, func(f *fakeWorld) { f.daemons["c-osd-0"].Spec.State = api.WantStopped }, "Wait: osd.0 is being started again; only one daemon at a time"},
		"an OSD while another one is to stop for good": {"c-osd-1", nil, func(f *fakeWorld) {
			f.daemons["c-osd-0"].Spec.State = api.WantStopped
			memory.Set(f.daemons["c-osd-0"], memory.Drain, memory.Empty)
		}, "Wait: osd.0 is being stopped to be removed; only one daemon at a time"},
		"an OSD that is to leave and serves still": {"c-osd-1", nil, func(f *fakeWorld) {
			memory.Set(f.daemons["c-osd-0"], memory.Drain, memory.Begun)
		}, ""},
		"an OSD while another one boots": {"c-osd-1", []string{"c-osd-0"}, func(f *fakeWorld) {
			f.daemons["c-osd-0"].Status.State, f.daemons["c-osd-0"].Status.Started = api.DaemonRunning, &metav1.MicroTime{Time: f.now.Add(-time.Second)}
		}, "Wait: osd.0 is being started again; only one daemon at a time"},
		"an OSD while another one does not come up": {"c-osd-1", []string{"c-osd-0"}, func(f *fakeWorld) {
			f.daemons["c-osd-0"].Status.State, f.daemons["c-osd-0"].Status.Started = api.DaemonRunning, &metav1.MicroTime{Time: f.now.Add(-waits.Default().DaemonFresh - time.Second)}
		}, "Refuse: cannot stop osd.1 now; Ceph reports: unsafe to stop"},
		"an OSD while another one is held back for maintenance": {"c-osd-1", []string{"c-osd-0"}, func(f *fakeWorld) {
			f.daemons["c-osd-0"].Spec.State = api.WantStopped
			i := slices.IndexFunc(f.hosts, func(h api.Host) bool { return h.Name == f.daemons["c-osd-0"].Spec.Host })
			f.hosts[i].Spec.Mode = api.HostMaintenance
		}, "Refuse: cannot stop osd.1 now; Ceph reports: unsafe to stop"},
		"a mon while another one is to stop":      {"c-mon-b", nil, func(f *fakeWorld) { f.daemons["c-mon-a"].Spec.State = api.WantStopped }, "Wait: mon.a is being started again; only one daemon at a time"},
		"a mon while another one is down":         {"c-mon-b", []string{"c-mon-a"}, nil, "Refuse: cannot stop mon.b now; Ceph reports: not enough monitors would be available (c) after stopping mons [b]"},
		"the mon that is out of the quorum":       {daemon: "c-mon-a", broken: []string{"c-mon-a"}},
		"an MDS without a standby":                {"c-mds-home-a", []string{"c-mds-home-b"}, nil, "Refuse: cannot stop mds.home-a now; Ceph reports: insuf"},
		"the MDS that is not there":               {daemon: "c-mds-home-b", broken: []string{"c-mds-home-b"}},
		"the quorum is lost":                      {"c-mon-c", []string{"c-mon-a", "c-mon-b"}, nil, "Refuse: cannot check mon.c: the mons do not answer"},
		"the quorum is lost, and it is an OSD":    {"c-osd-0", []string{"c-mon-a", "c-mon-b"}, nil, "Refuse: cannot check osd.0: the mons do not answer"},
		"no mgr runs":                             {"c-osd-0", []string{"c-mgr-a", "c-mgr-b"}, nil, "Refuse: Ceph cannot say whether osd.0 may stop: no mgr is active"},
		"the mgr says nothing":                    {"c-osd-0", nil, func(f *fakeWorld) { f.ceph.Mute("osd ok-to-stop", true) }, "Wait: Ceph cannot say whether osd.0 may stop: the mgr does not answer"},
		"and one that was to be there is missing": {"c-osd-0", []string{"c-mgr-b"}, func(f *fakeWorld) { f.ceph.Mute("osd ok-to-stop", true) }, "Wait: Ceph cannot say whether osd.0 may stop: the mgr does not answer"},
		"the mgr took over just now":              {"c-osd-0", nil, func(f *fakeWorld) { f.ask(t, "mgr fail", "who", "a") }, "Wait: Ceph cannot say whether osd.0 may stop: the mgr has not reported on all placement groups yet"},
		"no such daemon":                          {daemon: "c-osd-9"},
	} {
		t.Run(name, func(t *testing.T) {
			f := filesystemsOn(3, filesystemOf("home"))
			f.cluster.Spec.Ceph.Mgr.Count = 2
			f.settle(t)
			for _, b := range tt.broken {
				f.broken[b] = true
			}
			f.settle(t)
			if tt.change != nil {
				tt.change(f)
			}
			if got := f.againstRestart(t, tt.daemon); (got == "") != (tt.want == "") || !strings.HasPrefix(got, tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

// What Ceph itself is about to change is waited for: copies that are being made, and an MDS that takes over.
func TestRestart_heals(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.settle(t)
	word := func(daemon string, change func(*Observation)) string {
		v, _, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v.Restart = daemon
		o := v.System.(*Observation)
		o.Restart = &StopAnswer{Reason: "it would hurt"}
		change(o)
		return wordOn(f.planAt(v, f.now), daemon)
	}
	for name, tt := range map[string]struct {
		daemon string
		change func(*Observation)
		want   string
	}{
		"nothing heals":           {"c-osd-0", func(*Observation) {}, "Refuse: cannot stop osd.0 now; Ceph reports: it would hurt"},
		"copies are made":         {"c-osd-0", func(o *Observation) { o.PGsClean-- }, "Wait: cannot stop osd.0 now; Ceph reports: it would hurt"},
		"and an OSD is missing":   {"c-osd-0", func(o *Observation) { o.PGsClean--; o.OSDs[1] = OSD{In: true} }, "Refuse: cannot stop osd.0 now; Ceph reports: it would hurt, with osd.1 down already"},
		"and one that was out":    {"c-osd-0", func(o *Observation) { o.PGsClean--; o.OSDs[1] = OSD{} }, "Wait: cannot stop osd.0 now; Ceph reports: it would hurt"},
		"another cluster answers": {"c-osd-0", func(o *Observation) { o.FSID = "another" }, "Refuse: mons of another cluster (fsid another) answer"},
		"it was not asked":        {"c-osd-0", func(o *Observation) { o.Restart = nil }, "Refuse: cannot check osd.0: the mons do not answer"},
		"copies help no mon":      {"c-mon-a", func(o *Observation) { o.PGsClean-- }, "Refuse: cannot stop mon.a now; Ceph reports: it would hurt"},
		"an MDS takes over":       {"c-mds-home-a", func(o *Observation) { o.FS.Filesystems["home"].MDS[0] = MDS{Name: "home-b", State: "up:replay"} }, "Wait: cannot stop mds.home-a"},
		"an MDS is missing": {"c-mds-home-a", func(o *Observation) {
			fs := o.FS.Filesystems["home"]
			fs.Down = []int{0}
			o.FS.Filesystems["home"] = fs
		}, "Refuse: cannot stop mds.home-a"},
	} {
		if got := word(tt.daemon, tt.change); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// Nothing more is asked of Ceph as long as nobody asks for a restart.
func TestRestart_costsNothing(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home"))
	f.settle(t)
	count := func() (n int) {
		for _, prefix := range []string{"osd ok-to-stop", "mon ok-to-stop", "mds ok-to-stop"} {
			n += f.ceph.Calls(prefix)
		}
		return n
	}
	if count() != 0 {
		t.Errorf("%d questions were asked of Ceph while nothing was to stop", count())
	}
	for i, daemon := range []string{"c-osd-0", "c-mon-a", "c-mds-home-a"} {
		if f.againstRestart(t, daemon); count() != i+1 {
			t.Errorf("after the question about %s Ceph was asked %d times", daemon, count())
		}
	}
}
