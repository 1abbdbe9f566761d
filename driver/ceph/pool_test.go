package ceph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd/rbdtest"
	"github.com/holdfast-storage/holdfast/engine"
)

func replicated(name string, size int32, change ...func(*api.Pool)) *api.Pool {
	p := &api.Pool{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}}
	p.Spec = api.PoolSpec{Cluster: "c", Replicated: &api.PoolReplicated{Size: size}, DeletionPolicy: api.DeletionRetain}
	for _, f := range change {
		f(p)
	}
	return p
}

func erasure(name string, data, coding int32) *api.Pool {
	return replicated(name, 0, func(p *api.Pool) {
		p.Spec.Replicated, p.Spec.ErasureCoded = nil, &api.PoolErasureCoded{DataChunks: data, CodingChunks: coding}
	})
}

// applyResources writes statuses, and lets those go that are gone.
func (w *world) applyResources(p *engine.Plan) {
	for _, c := range p.Resources {
		switch r := c.Resource.(type) {
		case *api.DriveGroup:
			keep(&w.groups, r, c.Gone)
		case *api.Client:
			keep(&w.clients, r, c.Gone)
		case *api.NFSExport:
			keep(&w.exports, r, c.Gone)
		case *api.Filesystem:
			keep(&w.filesystems, r, c.Gone)
		case *api.Pool:
			i := slices.IndexFunc(w.pools, func(x api.Pool) bool { return x.Name == r.Name })
			if w.pools[i].TakeStatus(r); c.Gone {
				w.pools = slices.Delete(w.pools, i, i+1)
			}
		default:
			keep(&w.objects, r, c.Gone)
		}
	}
}

// keep puts a resource in the place of what it was, or takes it away.
func keep[R api.Resource](all *[]R, r R, gone bool) {
	i := slices.IndexFunc(*all, func(x R) bool { return engine.ResourceObject(x) == engine.ResourceObject(r) })
	if (*all)[i] = r; gone {
		*all = slices.Delete(*all, i, i+1)
	}
}

// pool is the pool that was declared first.
func (w *world) pool() *api.Pool { return &w.pools[0] }

func poolsOn(hosts int, pools ...*api.Pool) *fakeWorld {
	w := newWorld(map[bool]int32{true: 1, false: 3}[hosts < 3], 1)
	for i := 1; i <= hosts; i++ {
		w.host(i, 2)
		w.node(i, w.hosts[i-1].Status.Devices[0].ID)
	}
	for _, p := range pools {
		w.pools = append(w.pools, *p)
	}
	return withFake(w)
}

// Pools are made as they are declared, each with the CRUSH rule that it needs, and follow when the spec is changed and unset.
func TestPools(t *testing.T) {
	minSize, most := int32(3), resource.MustParse("1Gi")
	f := poolsOn(3, replicated("images", 3, func(p *api.Pool) {
		p.Spec.Replicated.MinSize, p.Spec.Quota.MaxBytes, p.Spec.Compression.Mode = &minSize, &most, "aggressive"
	}), erasure("archive", 2, 1))
	f.settle(t)
	want := []string{
		"archive: rule holdfast-host-ec-2-1, size 3/2, map[] map[] for [rbd]",
		"images: rule holdfast-host, size 3/3, map[max_bytes:1073741824] map[compression_mode:aggressive] for [rbd]",
	}
	if diff := cmp.Diff(want, f.ceph.Pools()); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	s := f.pool().Status
	if s.State != api.ResourceOnline || s.Layout != "3 copies" || s.FailureDomain != "host" || s.ID == 0 || s.PGs != 32 || f.pools[1].Status.Layout != "2+1" {
		t.Errorf("%+v", s)
	}
	f.pool().Spec = api.PoolSpec{Cluster: "c", Replicated: &api.PoolReplicated{Size: 2}, Application: "mine"}
	f.settle(t)
	if got, want := f.ceph.Pools()[1], "images: rule holdfast-host, size 2/1, map[max_bytes:0] map[] for [mine rbd]"; got != want {
		t.Errorf("%s, and not %s", got, want)
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
}

// A quota below what is stored stops the clients' writes: the plan says so, and how much is stored.
func TestPools_quotaBelowStored(t *testing.T) {
	const gib = 1 << 30
	objects := func(n int64) *int64 { return &n }
	for _, test := range []struct {
		name  string
		quota api.PoolQuota
		risk  api.Risk
		says  string
	}{
		{"more bytes", api.PoolQuota{MaxBytes: resource.NewQuantity(3*gib, resource.BinarySI)}, api.RiskNone, "changes from none to 3221225472"},
		{
			"as many bytes",
			api.PoolQuota{MaxBytes: resource.NewQuantity(2*gib, resource.BinarySI)},
			api.RiskRedundancy,
			"changes from none to 2147483648; 2147483648 are stored, so clients cannot write",
		},
		{
			"fewer bytes",
			api.PoolQuota{MaxBytes: resource.NewQuantity(gib, resource.BinarySI)},
			api.RiskRedundancy,
			"2147483648 are stored, so clients cannot write",
		},
		{"more objects", api.PoolQuota{MaxObjects: objects(513)}, api.RiskNone, "changes from none to 513"},
		{"fewer objects", api.PoolQuota{MaxObjects: objects(512)}, api.RiskRedundancy, "512 are stored, so clients cannot write"},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := poolsOn(3, replicated("images", 3))
			f.settle(t)
			f.ceph.Store("images", 2*gib)
			f.pool().Spec.Quota = test.quota
			p := f.round(t)
			if text := strings.Join(decisions(p), "\n"); p.Risk() != test.risk || !strings.Contains(text, test.says) {
				t.Errorf("risk %s, want %s; %q is not in:\n%s", p.Risk(), test.risk, test.says, text)
			}
		})
	}
}

// The failure domain grows with the cluster, and is never made less wide.
func TestPools_domainGrows(t *testing.T) {
	f := poolsOn(2, replicated("images", 3))
	f.nodes[0].Spec.Devices = []string{"wwn-10", "wwn-11"}
	f.settle(t)
	if s := f.pool().Status; s.FailureDomain != "osd" || s.State != api.ResourceOnline {
		t.Fatalf("on two hosts: %+v", s)
	}
	f.host(3, 1)
	f.node(3, "wwn-30")
	f.settle(t)
	if s := f.pool().Status; s.FailureDomain != "host" {
		t.Fatalf("on three hosts: %+v", s)
	}
	if got := f.ceph.Rules(); !slices.Equal(got, []string{"holdfast-host"}) {
		t.Errorf("rules %v", got)
	}
	f.powerOff(3, 0)
	f.settle(t)
	if s := f.pool().Status; s.FailureDomain != "host" || s.State != api.ResourceDegraded || !strings.Contains(s.Message, "undersized") {
		t.Errorf("with a host down: %+v", s)
	}
}

// What has no place is refused, in a new cluster before anything is made.
func TestPools_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		hosts int
		pool  *api.Pool
		want  string
	}{
		"more copies than OSDs":   {2, replicated("p", 3), "it needs 3 OSDs, one per copy or chunk, but there are 2"},
		"more chunks than hosts":  {3, replicated("p", 4, func(p *api.Pool) { p.Spec.FailureDomain = "host" }), "it needs 4 hosts with OSDs, one per copy or chunk, but there are 3"},
		"a class that nobody has": {3, replicated("p", 3, func(p *api.Pool) { p.Spec.DeviceClass = "nvme" }), "it needs 3 OSDs of class nvme, one per copy or chunk, but there are 0"},
		"an unknown domain":       {3, replicated("p", 3, func(p *api.Pool) { p.Spec.FailureDomain = "rack" }), "it needs 3 racks with OSDs, one per copy or chunk, but there are 0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := poolsOn(tt.hosts)
			f.settle(t)
			f.pools = append(f.pools, *tt.pool)
			p := f.settle(t)
			if got := word(decisions(p, api.VerdictRefuse), "pool/p"); !strings.Contains(got, tt.want) {
				t.Errorf("refused for %q, and not %q", got, tt.want)
			}
			if s := f.pool().Status; s.State != api.ResourcePending || !strings.Contains(s.Message, tt.want) || len(f.ceph.Pools())+len(f.ceph.Rules()) > 0 {
				t.Errorf("%+v, %v", s, f.ceph.Pools())
			}
		})
	}
}

// A pool that is refused is no fault of its cluster: it is made without it, and ONLINE.
func TestPools_refusedIsNoFaultOfTheCluster(t *testing.T) {
	f := poolsOn(2, replicated("p", 3, func(p *api.Pool) { p.Spec.FailureDomain = "host" }))
	if p := f.plan(); p.Refused || len(p.Daemons) == 0 {
		t.Errorf("a new cluster is not made because of a pool that has no place: %v", decisions(p))
	}
	if p := f.settle(t); p.Status.Status != api.StorageOnline || p.Done || f.pool().Status.State != api.ResourcePending {
		t.Errorf("%s for %q, done %v, the pool %+v", p.Status.Status, p.Status.Reasons, p.Done, f.pool().Status)
	}
}

// While a pool is being made its placement groups are not active+clean yet, which degrades no cluster; those of a pool that was served do.
func TestPools_makingIsNoFaultOfTheCluster(t *testing.T) {
	f := poolsOn(3, replicated("p", 3), replicated("q", 3))
	f.settle(t)
	for _, tt := range []struct {
		name    string
		unclean string
		state   api.ResourceState
		want    api.StorageState
	}{
		{"a pool that is being made", "q", api.ResourceCreating, api.StorageOnline},
		{"a pool that was served", "q", api.ResourceOnline, api.StorageDegraded},
		{"another pool that was served", "p", api.ResourceCreating, api.StorageDegraded},
	} {
		v, _, err := f.observed(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		o := v.System.(*Observation)
		pool := slices.IndexFunc(o.Pools, func(p Pool) bool { return p.Name == tt.unclean })
		o.PGsClean, o.PGsActive, o.Health = o.PGs-3, o.PGs-3, "HEALTH_WARN"
		o.Checks = []api.HealthCheck{{Code: checkAvailability, Severity: "HEALTH_WARN", Message: "Reduced data availability: 3 pgs inactive"}}
		o.PoolFacts.Unclean = map[int64]map[string]int{o.Pools[pool].ID: {"creating+peering": 3}}
		q := &engine.OfKind[*api.Pool](v.Resources)[1].Status
		q.State, q.Served = tt.state, engine.Served(tt.state)
		if p := f.planAt(v, f.now); p.Status.Status != tt.want || p.Done {
			t.Errorf("%s: %s for %q, done %v", tt.name, p.Status.Status, p.Status.Reasons, p.Done)
		}
	}
}

// A pool that is there is taken over if it is alike, and never made over.
func TestPools_takenOver(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.deletePool(api.DeletionRetain)
	f.settle(t)
	if len(f.pools) > 0 || len(f.ceph.Pools()) != 1 || len(f.ceph.Rules()) != 1 {
		t.Fatalf("kept: %v, %v", f.ceph.Pools(), f.ceph.Rules())
	}
	f.pools = append(f.pools, *erasure("p", 2, 1))
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "pool/p"); !strings.Contains(got, "a pool of this name that is replicated") {
		t.Errorf("refused for %q", got)
	}
	f.pools[0] = *replicated("p", 2)
	f.settle(t)
	if got := f.ceph.Pools()[0]; !strings.Contains(got, "size 2/1") {
		t.Error(got)
	}
}

func (w *world) deletePool(policy api.DeletionPolicy) {
	now := metav1.NewTime(w.now)
	w.pool().Spec.DeletionPolicy, w.pool().DeletionTimestamp = policy, &now
}

// Under Wipe a pool goes with its data and the rule that it needed, as a risk of data, and not while clients use it.
func TestPools_wiped(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.ceph.Busy("p", 7)
	f.deletePool(api.DeletionWipe)
	f.round(t)
	if s := f.pool().Status; len(f.ceph.Pools()) != 1 || s.State != api.ResourceDeleting || !strings.Contains(s.Message, "clients use the pool (7 operations a second)") {
		t.Fatalf("%v, %+v", f.ceph.Pools(), s)
	}
	f.ceph.Trickle("p")
	f.round(t)
	if s := f.pool().Status; len(f.ceph.Pools()) != 1 || !strings.Contains(s.Message, "clients use the pool (1 operation a second)") {
		t.Fatalf("%v, %+v", f.ceph.Pools(), s)
	}
	f.ceph.Busy("p", 0)
	if p := f.round(t); p.Risk() != api.RiskData {
		t.Errorf("risk %s: %v", p.Risk(), decisions(p))
	}
	f.settle(t)
	if len(f.pools)+len(f.ceph.Pools())+len(f.ceph.Rules()) > 0 {
		t.Errorf("%v, %v, %v", f.pools, f.ceph.Pools(), f.ceph.Rules())
	}
}

// A deletion that waits for clients ends when deletionPolicy becomes Retain, as its message says: the pool and its data stay.
func TestPools_keptWhileDeleted(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.ceph.Busy("p", 7)
	f.deletePool(api.DeletionWipe)
	f.round(t)
	if s := f.pool().Status; !strings.HasSuffix(s.Message, "to keep the pool and its data, set deletionPolicy to Retain") {
		t.Fatalf("%+v", s)
	}
	f.pool().Spec.DeletionPolicy = api.DeletionRetain
	f.settle(t)
	if len(f.pools) > 0 || len(f.ceph.Pools()) != 1 {
		t.Errorf("%v, %v", f.pools, f.ceph.Pools())
	}
}

// A pool that was made by hand is taken over as it is spread, and nothing is deleted while nobody says whether it is used.
func TestPools_byHand(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.MakePool("p", "by-hand", "host")
	f.pools = append(f.pools, *replicated("p", 3))
	f.settle(t)
	if got := f.ceph.Pools()[0]; !strings.Contains(got, "rule by-hand") || f.pool().Status.FailureDomain != "host" {
		t.Errorf("%s, %+v", got, f.pool().Status)
	}
	f.ceph.Mute("osd pool stats", true)
	f.deletePool(api.DeletionWipe)
	for range 3 {
		f.round(t)
	}
	if s := f.pool().Status; len(f.ceph.Pools()) != 1 || !strings.Contains(s.Message, "waits for the mgr") {
		t.Fatalf("%v, %+v", f.ceph.Pools(), s)
	}
	f.ceph.Mute("osd pool stats", false)
	f.settle(t)
	if len(f.ceph.Pools()) > 0 {
		t.Errorf("%v", f.ceph.Pools())
	}
	f.ceph.MakeRule("holdfast-osd", "host")
	f.pools = append(f.pools, *replicated("q", 2, func(p *api.Pool) { p.Spec.FailureDomain = "osd" }))
	if got := word(decisions(f.settle(t), api.VerdictRefuse), "pool/q"); !strings.Contains(got, "with other steps than Holdfast's rule") {
		t.Errorf("refused for %q", got)
	}
}

// A Pool that finds a pool which it has not made says so, once; one that it makes is its own from the first.
func TestPools_saysThatItTakesOver(t *testing.T) {
	f := poolsOn(3, replicated("made", 3))
	const want = "pool byhand already exists in Ceph: Holdfast adopts it and changes only what the Pool declares"
	var said []string
	note := func() (risk api.Risk) {
		for range 6 {
			p := f.round(t)
			risk = engine.HigherRisk(risk, p.Risk())
			for _, d := range p.Decisions {
				if strings.Contains(d.Message, "adopts it") {
					said = append(said, d.Message)
				}
			}
		}
		return risk
	}
	note()
	f.settle(t)
	if len(said) > 0 || len(f.ceph.Pools()) != 1 {
		t.Fatalf("%q, %v", said, f.ceph.Pools())
	}
	f.ceph.MakePool("byhand", "by-hand", "host")
	f.pools = append(f.pools, *replicated("byhand", 1))
	if risk := note(); risk != api.RiskRedundancy || !slices.Equal(said, []string{want}) {
		t.Errorf("risk %s, said %q", risk, said)
	}
}

// A pool that a Pool was refused for is somebody else's: it stays, whatever becomes of the Pool.
func TestPools_refusedAndDeleted(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.MakePool("p", "by-hand", "host")
	f.pools = append(f.pools, *erasure("p", 2, 1))
	f.settle(t)
	f.deletePool(api.DeletionWipe)
	if f.settle(t); len(f.pools) > 0 || len(f.ceph.Pools()) != 1 {
		t.Errorf("%v, %v", f.pools, f.ceph.Pools())
	}
}

// A failure domain that Holdfast does not choose by itself stays; to make one smaller by hand is a risk.
func TestPools_widerByHand(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.ceph.MakePool("p", "by-hand", "datacenter")
	f.pools = append(f.pools, *replicated("p", 3))
	f.settle(t)
	if got := f.ceph.Pools()[0]; !strings.Contains(got, "rule by-hand") || f.pool().Status.FailureDomain != "datacenter" {
		t.Fatalf("%s, %+v", got, f.pool().Status)
	}
	f.pool().Spec.FailureDomain = "host"
	if p := f.round(t); p.Risk() != api.RiskRedundancy {
		t.Errorf("risk %s: %v", p.Risk(), decisions(p))
	}
}

// Which failure domain a pool gets is not decided by which host is the quickest.
func TestPools_waitsForOSDs(t *testing.T) {
	f := poolsOn(3)
	f.nodes[0].Spec.Devices = []string{"wwn-10", "wwn-11"}
	f.settle(t)
	f.powerOff(3, 0)
	f.settle(t)
	f.pools = append(f.pools, *replicated("p", 3))
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictWait), "pool/p"); !strings.Contains(got, "is not up") || len(f.ceph.Pools()) > 0 {
		t.Errorf("waits for %q, %v", got, f.ceph.Pools())
	}
}

// A single copy is what is asked for, and the mons are left as they were.
func TestPools_singleCopy(t *testing.T) {
	f := poolsOn(1, replicated("p", 1))
	f.settle(t)
	if got := f.ceph.Pools(); len(got) != 1 || f.pool().Status.Layout != "1 copy" || f.ceph.Calls("config rm") != 1 {
		t.Errorf("%v, %+v", got, f.pool().Status)
	}
}

// What is foreseen of pools is what comes.
func TestPools_foreseen(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.pools = append(f.pools, *replicated("p", 3, func(p *api.Pool) { p.Spec.Compression.Mode = "force" }), *erasure("e", 2, 1))
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := engine.Project(f.driver, v, f.now)
	if len(got.Open) > 0 || len(got.Last.Commands) > 0 || len(got.Steps) == 0 {
		t.Errorf("open %v, last %v", got.Open, got.Last.Commands)
	}
	for _, c := range got.Last.Resources {
		if c.Resource.Common().State == api.ResourcePending {
			t.Errorf("%+v", c.Resource.Common())
		}
	}
	fresh := poolsOn(3, replicated("p", 3))
	if got := engine.Project(fresh.driver, fresh.view(), fresh.now.Add(settleTime)); len(got.Open) > 0 || !slices.ContainsFunc(got.Steps, func(s engine.ProjectedStep) bool {
		return slices.ContainsFunc(s.Plan.Commands, func(c engine.Command) bool { return c.Verb == verbPoolCreate })
	}) {
		t.Errorf("of a new cluster: open %v, %d steps", got.Open, len(got.Steps))
	}
}

// TestPools_imagesLost: the plan that deletes a pool says how many images are lost with it, and the
// first few.
func TestPools_imagesLost(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	id := f.pool().Status.ID
	f.ceph.Images = rbdtest.New(id)
	images := rbd.In(f.ceph.Images, id)
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		if err := images.Create(t.Context(), name, 1<<20); err != nil {
			t.Fatal(err)
		}
	}
	if err := images.MoveToTrash(t.Context(), "e"); err != nil {
		t.Fatal(err)
	}
	f.deletePool(api.DeletionWipe)
	v, p, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "the Pool was deleted with deletionPolicy Wipe; it destroys 4 RBD images (a, b, c and 1 more), and 1 image (e) " +
		"in the trash"
	if shown := engine.Project(f.driver, v, f.now); len(p.Commands) != 1 || p.Commands[0].Reason != want ||
		shown.Steps[0].Plan.Commands[0].Reason != want {
		t.Errorf("%+v", p.Commands)
	}
}

// A pool of a device class says that it has Ceph's autoscaler leave other pools alone, also in the
// plan that makes it.
func TestPools_classOverlaps(t *testing.T) {
	f := poolsOn(3, replicated("any", 3))
	f.settle(t)
	f.pools = append(f.pools, *replicated("fast", 3, func(p *api.Pool) { p.Spec.DeviceClass = "hdd" }))
	said := func(p *engine.Plan) bool {
		return slices.ContainsFunc(p.Decisions, func(d api.Decision) bool {
			return d.Object == "pool/fast" && d.Verdict == api.VerdictSkip && d.Reason == api.ReasonNotScaled
		})
	}
	v, _, err := f.observed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if shown := engine.Project(f.driver, v, f.now); !said(shown.Last) {
		t.Errorf("the plan does not say it: %v", decisions(shown.Last))
	}
	s := &f.pools[1].Status
	if p := f.settle(t); !said(p) || s.State != api.ResourceOnline || s.Reason != api.ReasonNotScaled || s.Next == "" {
		t.Errorf("%+v: %v", f.pools[1].Status, decisions(p))
	}
	f.pools[0].Spec.DeviceClass = "hdd"
	f.ceph.MakePool("other", "mine", "host") // of no class, by hand
	if p := f.settle(t); !said(p) {
		t.Errorf("a pool that was made by hand overlaps still: %v", decisions(p))
	}
}

// A pool that takes no writes says so itself, with the cause and what helps.
func TestPools_takeNoWrites(t *testing.T) {
	f := poolsOn(3, replicated("p", 3))
	f.settle(t)
	f.byHand(t, "osd set", map[string]any{"key": "pauserd"})
	f.settle(t)
	s := f.pool().Status
	if s.State != api.ResourceOffline || s.Reason != api.ReasonClientsPaused ||
		!strings.Contains(s.Next, "'holdfast ceph osd unset pause'") {
		t.Errorf("paused: %+v", s.ResourceStatus)
	}
	f.byHand(t, "osd unset", map[string]any{"key": "pauserd"})
	f.settle(t)
	if s := f.pool().Status; s.State != api.ResourceOnline || s.Reason != "" || s.Next != "" {
		t.Errorf("afterwards: %+v", s.ResourceStatus)
	}
}

// A pool that waits for the OSDs of a StorageNode without a host names it.
func TestPools_nameTheNode(t *testing.T) {
	f := poolsOn(3)
	f.settle(t)
	f.node(9, "wwn-90").Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": "h9"}
	f.pools = append(f.pools, *replicated("p", 3))
	f.settle(t)
	s := f.pool().Status
	if s.State != api.ResourcePending || s.Reason != api.ReasonDependencyNotReady ||
		!strings.Contains(s.Next, "'holdfast why node/n9'") {
		t.Errorf("%+v", s.ResourceStatus)
	}
}
