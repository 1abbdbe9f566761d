package ceph

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/memory"
	"github.com/holdfast-storage/holdfast/driver/ceph/orch"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
	"github.com/holdfast-storage/holdfast/internal/ganesha"
	"github.com/holdfast-storage/holdfast/internal/rbdmirror"
)

// fakeWorld is a world whose daemons all do as they are told, on a Ceph in memory.
type fakeWorld struct {
	*world
	ceph *radostest.Cluster
	// broken are daemons that do not get beyond Failed.
	broken map[string]bool
	// off are hosts without power: nothing runs there, and nobody says so.
	off map[string]bool
	// mute are hosts whose agents neither hear nor act; what runs there runs on.
	mute map[string]bool
	// fewestMons is how many mons were wanted at least since the world was at rest.
	fewestMons int32
	// mounted are the clients of filesystems.
	mounted []cephreport.Mount
}

func withFake(w *world) *fakeWorld {
	f := &fakeWorld{world: w, ceph: radostest.New(), broken: map[string]bool{}, off: map[string]bool{}, mute: map[string]bool{}}
	w.driver.Dial = f.ceph.Dial
	w.driver.Now = radostest.Clock()
	return f
}

// agents bring each daemon as far as its spec says, and write OSDs' labels on their devices.
func (f *fakeWorld) agents() {
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		d := f.daemons[name]
		switch {
		case f.off[d.Spec.Host] || f.mute[d.Spec.Host]:
			continue
		case d.DeletionTimestamp != nil:
			f.agentRemoves(d)
			continue
		case d.Spec.State == api.WantStopped:
			d.Status.State, d.Status.Message, d.Status.Version = api.DaemonStopped, "", ""
			continue
		case f.broken[name]:
			d.Status.State, d.Status.Message = api.DaemonFailed, "it is broken"
			continue
		case d.Spec.State == api.WantRunning:
			gatewayStarts(d)
			if h := f.hostNamed(d.Spec.Host); d.Status.State != api.DaemonRunning && h != nil {
				d.Status.Version = h.Status.Release(d.Spec.Type)
			}
			d.Status.State, d.Status.Message = api.DaemonRunning, ""
			f.report(d)
		default:
			d.Status.State = api.DaemonPrepared
		}
		f.divide(d)
		for _, device := range d.Spec.Devices {
			dev := f.device(device.ID)
			dev.Availability, dev.Reasons = api.DeviceUnavailable, []string{"it holds an OSD"}
			dev.Ceph = &api.DeviceCeph{FSID: d.Spec.Parameters[ParamFSID], OSDUUID: d.Spec.Parameters[ParamOSDUUID]}
			if device.Name != DeviceBlock {
				dev.Ceph.Part = strings.TrimPrefix(device.Name, "block.")
			}
			if device.KeySecret != "" {
				dev.Filesystem = &api.DeviceFilesystem{Type: "crypto_LUKS"}
			}
		}
	}
	f.ceph.Sync(f.powered())
}

func (w *world) hostNamed(name string) *api.Host {
	for i := range w.hosts {
		if w.hosts[i].Name == name {
			return &w.hosts[i]
		}
	}
	return nil
}

// report has an MDS tell who has its filesystem mounted, and an NFS server that it has read what is wanted.
func (f *fakeWorld) report(d *api.Daemon) {
	if d.Spec.Type == rbdmirror.Type {
		d.Status.Report = f.mirrorReport(d)
		return
	}
	if d.Spec.Type == ganesha.Type {
		d.Status.Report = nfsReport(d)
		return
	}
	name, _, _ := strings.Cut(d.Spec.ID, "-")
	if d.Spec.Type != TypeMDS || !slices.Contains(f.ceph.Active(name), d.Spec.ID) {
		return
	}
	r := cephreport.Report{Mounts: f.mounted}
	for _, mgr := range f.daemons {
		if mgr.Spec.Type == TypeMgr && mgr.DeletionTimestamp == nil { // managers look into it, too
			r.Mounts = append(slices.Clip(r.Mounts), cephreport.Mount{Entity: mgr.Spec.ID, Host: mgr.Spec.Host})
		}
	}
	slices.SortFunc(r.Mounts, func(a, b cephreport.Mount) int { return strings.Compare(a.String(), b.String()) })
	text, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	d.Status.Report = string(text)
}

// powered are the daemons of the hosts that have power.
func (f *fakeWorld) powered() []api.Daemon {
	var all []api.Daemon
	for _, name := range slices.Sorted(maps.Keys(f.daemons)) {
		if d := f.daemons[name]; !f.off[d.Spec.Host] {
			all = append(all, *d)
		}
	}
	return all
}

// powerOff takes the power from h<i>, of which the leader has known for so long.
func (f *fakeWorld) powerOff(i int, since time.Duration) {
	f.off[f.hosts[i-1].Name] = true
	f.silence(i, since)
	for _, d := range f.daemons {
		if d.Spec.Type == TypeMon && d.Spec.Host == f.hosts[i-1].Name { // as plans of that time recorded
			memory.Set(d, memory.AwaySince, f.now.Add(-since).UTC().Format(time.RFC3339))
		}
	}
}

// silence has the leader know for so long that the agent of h<i> is not heard.
func (f *fakeWorld) silence(i int, since time.Duration) {
	h := &f.hosts[i-1]
	h.Status.Conditions = []metav1.Condition{{
		Type: api.HostAgentConnected, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(f.now.Add(-since)),
	}}
}

// powerOn gives it back.
func (f *fakeWorld) powerOn(i int) {
	f.hosts[i-1].Status.Conditions = nil
	delete(f.off, f.hosts[i-1].Name)
	delete(f.mute, f.hosts[i-1].Name)
}

func (f *fakeWorld) agentRemoves(d *api.Daemon) {
	delete(f.daemons, d.Name)
	delete(f.broken, d.Name)
	f.free(d)
	for _, device := range d.Spec.Devices {
		if d.Spec.OnRemoval == api.DeletionWipe && f.there(device.ID) {
			dev := f.device(device.ID)
			dev.Availability, dev.Reasons, dev.Ceph = api.DeviceAvailable, nil, nil
		}
	}
}

func (w *world) there(id string) bool {
	return slices.ContainsFunc(w.hosts, func(h api.Host) bool {
		return slices.ContainsFunc(h.Status.Devices, func(d api.Device) bool { return d.ID == id })
	})
}

// settle runs rounds until several in a row have changed nothing, however late it gets, and returns the last plan.
func (f *fakeWorld) settle(t testing.TB) *engine.Plan {
	t.Helper()
	const enough = 6 // the mgr's report lags behind by some rounds
	idle := 0
	for range 60 {
		f.agents()
		before := f.writes
		p := f.round(t)
		f.now = f.now.Add(recheckSoon)
		if idle++; f.writes != before {
			idle = 0
		}
		switch idle {
		case enough / 2:
			f.now = f.now.Add(slow)
		case enough:
			f.plansNothing(t, p)
			return p
		}
	}
	t.Fatalf("does not settle: %v", decisions(f.plan()))
	return nil
}

// plansNothing checks that the plan which a person is shown is empty when all is as it is wanted.
func (f *fakeWorld) plansNothing(t testing.TB, settled *engine.Plan) {
	t.Helper()
	v, _, err := f.observed(t.Context())
	if err != nil || !settled.Done || f.cluster.DeletionTimestamp != nil || f.cluster.ModeOf() != api.ClusterActive {
		return
	}
	shown := engine.Project(f.driver, v, f.now)
	for _, step := range shown.Steps {
		t.Errorf("nothing is left to do, and a plan shows commands %v, daemons %v, removals %v", step.Plan.Commands,
			daemonNames(step.Plan), step.Plan.Remove)
	}
	for _, verdict := range []api.Verdict{api.VerdictRefuse, api.VerdictWait} {
		if diff := cmp.Diff(decisions(settled, verdict), decisions(shown.Last, verdict)); diff != "" {
			t.Errorf("nothing is left to do, and a plan foresees other decisions (-now +then):\n%s", diff)
		}
	}
}

func TestBringUp(t *testing.T) {
	f := withFake(threeHosts())
	p := f.round(t)
	want := []string{
		"c-mon-a@h1=Running", "c-mon-b@h2=Running", "c-mon-c@h3=Running",
		"c-mgr-a@h1=Running", "c-mgr-b@h2=Running",
		"c-osd-0@h1=Prepared", "c-osd-1@h2=Prepared", "c-osd-2@h3=Prepared",
	}
	if diff := cmp.Diff(want, daemonNames(p)); diff != "" {
		t.Fatalf("first plan (-want +got):\n%s", diff)
	}
	if p.Status.Status != api.StorageOffline || p.Recheck != 0 || p.Done {
		t.Errorf("first status: %+v, recheck %v, done %v", p.Status, p.Recheck, p.Done)
	}
	if len(f.secrets) != 7 {
		t.Errorf("secrets: %v", slices.Sorted(maps.Keys(f.secrets)))
	}

	f.agents()
	p = f.round(t)
	verbs := []string{}
	for _, c := range p.Commands {
		verbs = append(verbs, c.Verb)
	}
	if !slices.Equal(verbs, []string{orch.VerbBackend, verbOSDNew}) || len(p.Commands[1].Params) != 3 {
		t.Fatalf("second plan: %+v, %v", p.Commands, daemonNames(p))
	}
	if diff := cmp.Diff(want[:3], daemonNames(p)); diff != "" { // which are told that they had a quorum
		t.Fatalf("second plan (-want +got):\n%s", diff)
	}
	f.agents()
	p = f.round(t)
	if diff := cmp.Diff([]string{"c-osd-0@h1=Running", "c-osd-1@h2=Running", "c-osd-2@h3=Running"}, daemonNames(p)); diff != "" {
		t.Fatalf("third plan (-want +got):\n%s", diff)
	}
	f.agents()
	p = f.round(t)
	if p.Status.Health != healthOK || p.Status.Status == api.StorageOnline || p.Done || p.Recheck != recheckSoon {
		t.Errorf("HEALTH_OK before the mgr's first report was believed: %+v", p.Status)
	}
	p = f.settle(t)
	if !p.Done || p.Status.Status != api.StorageOnline || p.Status.Nodes != 3 || p.Recheck != 0 || len(p.Status.Reasons) != 0 {
		t.Errorf("in the end: %+v", p.Status)
	}
	for _, n := range f.nodes {
		if c := n.Status.Conditions; len(c) != 1 || c[0].Status != "True" || len(n.Status.Devices) != 1 {
			t.Errorf("node %s: %+v", n.Name, n.Status)
		}
	}
}

// Steady state asks two commands, and no more.
func TestObserve_steadyStateIsCheap(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	count := func() (n int) {
		for _, prefix := range recorded {
			n += f.ceph.Calls(prefix)
		}
		return n
	}
	before := count()
	f.round(t)
	if n := count() - before; n != 2 {
		t.Errorf("a round in which nothing changed asked %d commands, want 2", n)
	}
}

// Whatever part of the first plan was written before a crash, the rest comes out as it was meant.
func TestBringUp_cutOffAnywhere(t *testing.T) {
	whole := threeHosts()
	whole.round(t)
	for cut := range len(whole.daemons) {
		f := withFake(threeHosts())
		p := f.plan()
		p.Daemons = p.Daemons[:cut]
		if err := f.apply(t.Context(), f.view(), p); err != nil {
			t.Fatal(err)
		}
		// In the meantime another host has joined, whose name sorts first.
		f.host(0, 1)
		f.node(0)
		f.settle(t)
		for name, want := range whole.daemons {
			got := f.daemons[name]
			if got == nil {
				t.Fatalf("cut at %d: %s is missing", cut, name)
			}
			if want.Spec.Type == TypeMon {
				want.Spec.Parameters[ParamMonFounded] = "true" // by now there was a quorum
			}
			if cut > 0 && want.Spec.Type == TypeMon && !cmp.Equal(want.Spec.Parameters, got.Spec.Parameters) {
				t.Errorf("cut at %d: %s: %s", cut, name, cmp.Diff(want.Spec.Parameters, got.Spec.Parameters))
			}
		}
		if n := len(f.ceph.OSDs()); n != 3 {
			t.Errorf("cut at %d: %d OSDs in the map", cut, n)
		}
	}
}

func TestGrow(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	before := map[string]api.DaemonSpec{}
	for name, d := range f.daemons {
		before[name] = d.Spec
	}
	f.nodes[0].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-11")
	f.host(4, 1)
	f.node(4, "wwn-40")
	f.cluster.Spec.Ceph.Mgr.Count = 3
	p := f.settle(t)
	if !p.Done {
		t.Fatalf("not done: %v", p.Status.Reasons)
	}
	for _, name := range []string{"c-osd-3", "c-osd-4", "c-mgr-c"} {
		if f.daemons[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if f.daemons["c-mgr-c"].Spec.Host != "h4" {
		t.Errorf("mgr.c is on %s, want the host without a mon", f.daemons["c-mgr-c"].Spec.Host)
	}
	for name, spec := range before {
		if !cmp.Equal(spec, f.daemons[name].Spec) {
			t.Errorf("%s was changed: %s", name, cmp.Diff(spec, f.daemons[name].Spec))
		}
	}
	// Fewer mgrs again: the last goes, and nothing else.
	f.cluster.Spec.Ceph.Mgr.Count = 2
	f.round(t)
	if f.daemons["c-mgr-c"].DeletionTimestamp == nil {
		t.Error("mgr.c was not removed")
	}
	if p = f.settle(t); !p.Done || f.daemons["c-mgr-c"] != nil {
		t.Errorf("after shrinking: %v", p.Status.Reasons)
	}
}

func TestFailures(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.broken["c-osd-1"] = true
	p := f.settle(t)
	if p.Status.Status != api.StorageDegraded || p.Done || !contains(p.Status.Reasons, "osd.1 on h2: Failed: it is broken") ||
		!contains(p.Status.Reasons, "osd.1 on h2 is down") || !contains(p.Status.Reasons, "OSD_DOWN") {
		t.Errorf("one OSD down: %s %v", p.Status.Status, p.Status.Reasons)
	}
	f.broken["c-mon-b"] = true
	if p = f.settle(t); p.Status.Status != api.StorageDegraded || !contains(p.Status.Reasons, "mon.b on h2 is not in the quorum") {
		t.Errorf("one mon down: %s %v", p.Status.Status, p.Status.Reasons)
	}
	f.broken["c-mon-c"] = true
	if p = f.settle(t); p.Status.Status != api.StorageOffline ||
		!contains(p.Status.Reasons, "waiting for 2 of 3 mons to form a quorum: 1 run; missing: mon.b on h2, mon.c on h3") {
		t.Errorf("no quorum: %s %v", p.Status.Status, p.Status.Reasons)
	}
	clear(f.broken)
	f.settle(t)
	f.ceph.Warn("SOMETHING", "is odd")
	if p = f.settle(t); p.Status.Status != api.StorageDegraded || !contains(p.Status.Reasons, "HEALTH_WARN: SOMETHING: is odd") {
		t.Errorf("a warning: %s %v", p.Status.Status, p.Status.Reasons)
	}
	f.ceph.Warn("SOMETHING", "")
	if p = f.settle(t); !p.Done {
		t.Errorf("afterwards: %v", p.Status.Reasons)
	}
}

// A Daemon that was deleted by hand is made again, with the same number and on the same device.
func TestLostDaemon(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	uuid := f.daemons["c-osd-1"].Spec.Parameters[ParamOSDUUID]
	delete(f.daemons, "c-osd-1")
	delete(f.daemons, "c-mon-b")
	p := f.round(t)
	if diff := cmp.Diff([]string{"c-mon-b@h2=Running", "c-osd-1@h2=Running"}, daemonNames(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := f.daemons["c-osd-1"].Spec.Parameters[ParamOSDUUID]; got != uuid {
		t.Errorf("the OSD has another uuid: %s", got)
	}
	if p = f.settle(t); !p.Done {
		t.Errorf("%v", p.Status.Reasons)
	}
}

func TestDeletion(t *testing.T) {
	for _, policy := range []api.DeletionPolicy{api.DeletionRetain, api.DeletionWipe} {
		t.Run(string(policy), func(t *testing.T) {
			f := withFake(threeHosts())
			f.settle(t)
			f.cluster.Spec.DeletionPolicy = policy
			now := f.daemons["c-mon-a"].CreationTimestamp
			f.cluster.DeletionTimestamp = &now
			var order []string
			for range 10 {
				p := f.round(t)
				if len(p.Daemons) > 0 && len(p.Remove) > 0 {
					t.Error("daemons are removed before they can have seen what becomes of their data")
				}
				for _, c := range p.Daemons {
					if c.Daemon.Spec.OnRemoval != policy {
						t.Errorf("%s: onRemoval %s", c.Daemon.Name, c.Daemon.Spec.OnRemoval)
					}
				}
				for _, r := range p.Remove {
					order = append(order, r.Name)
					if got := f.daemons[r.Name].Spec.OnRemoval; got != policy && !strings.Contains(r.Name, "mgr") {
						t.Errorf("%s is removed with onRemoval %s", r.Name, got)
					}
				}
				if p.Finished {
					break
				}
				f.agents()
			}
			want := []string{"c-osd-0", "c-osd-1", "c-osd-2", "c-mgr-a", "c-mgr-b", "c-mon-a", "c-mon-b", "c-mon-c"}
			if diff := cmp.Diff(want, order); diff != "" || len(f.daemons) != 0 {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
			if available := f.device("wwn-10").Availability == api.DeviceAvailable; available != (policy == api.DeletionWipe) {
				t.Errorf("device available: %v", available)
			}
		})
	}
}

// A number that someone gave to another OSD is not used.
func TestNumbers_foreignOSD(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.ceph.Register(3, "99999999-0000-4000-8000-000000000000")
	f.nodes[0].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-11")
	f.settle(t)
	if f.daemons["c-osd-3"] != nil || f.daemons["c-osd-4"] == nil {
		t.Errorf("daemons: %v", slices.Sorted(maps.Keys(f.daemons)))
	}
}

// While the mons of a running cluster do not answer, no number is given to a new OSD.
func TestNumbers_waitForTheMap(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	f.broken["c-mon-a"], f.broken["c-mon-b"] = true, true
	f.agents()
	f.nodes[0].Spec.Devices = append(f.nodes[0].Spec.Devices, "wwn-11")
	p := f.round(t)
	if len(p.Daemons) != 0 || !contains(decisions(p, api.VerdictWait), "the mons do not answer") {
		t.Errorf("%v %v", daemonNames(p), decisions(p))
	}
	clear(f.broken)
	if p = f.settle(t); !p.Done || f.daemons["c-osd-3"] == nil {
		t.Errorf("%v", p.Status.Reasons)
	}
}

// Commands may be repeated.
func TestPerform_twice(t *testing.T) {
	f := withFake(threeHosts())
	f.settle(t)
	osds := map[string]string{}
	for id, uuid := range f.ceph.OSDs() {
		osds["osd."+string(rune('0'+id))] = uuid
	}
	for _, cmd := range []engine.Command{
		{Verb: verbOSDNew, Params: osds},
		{Verb: verbAuthImport, Object: "mgr.a"},
	} {
		if err := f.driver.Perform(t.Context(), f.view(), cmd, f); err != nil {
			t.Errorf("%s: %v", cmd.Verb, err)
		}
	}
	if err := f.driver.Perform(t.Context(), f.view(), engine.Command{Verb: "dance"}, f); err == nil {
		t.Error("an unknown command was performed")
	}
	if !slices.Equal(slices.Sorted(maps.Keys(osds)), []string{"osd.0", "osd.1", "osd.2"}) {
		t.Errorf("OSDs: %v", osds)
	}
}

// nfsReport is what an agent says of an NFS server that serves all that it is to.
func nfsReport(d *api.Daemon) string {
	r := ganesha.Report{Current: true, Exports: map[string]string{}}
	for _, pseudo := range strings.Fields(d.Spec.Parameters[ganesha.ParamExports]) {
		r.Exports[pseudo] = ""
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // it has strings alone
	}
	return string(text)
}
