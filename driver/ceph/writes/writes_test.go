package writes

import (
	"strings"
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// is compares a word with what a case wants of it.
func is(t *testing.T, name string, w Word, state api.ResourceState, reason api.Reason, next string) {
	t.Helper()
	if w.State != state || w.Reason != reason || (w.Next == "") != (next == "") || !strings.Contains(w.Next, next) {
		t.Errorf("%s: %+v, want %s for %s, next %q", name, w, state, reason, next)
	}
	if (w.Text == "") != (state == api.ResourceOnline && reason == "") {
		t.Errorf("%s: the text is %q", name, w.Text)
	}
}

func pool(change ...func(*Cluster, *Pool)) (*Cluster, *Pool) {
	c := &Cluster{}
	p := &Pool{
		Name: "web", Declared: true, Copies: 3, MinSize: 2, Domain: "host", Room: 3, PGs: 32,
		Flags: []string{"hashpspool"},
	}
	for _, f := range change {
		f(c, p)
	}
	return c, p
}

func TestJudgePool(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Cluster, *Pool)
		state  api.ResourceState
		reason api.Reason
		next   string
	}{
		{"well", func(*Cluster, *Pool) {}, api.ResourceOnline, "", ""},
		{
			"paused", func(c *Cluster, _ *Pool) { c.Flags = []string{"pauserd", "pausewr"} }, api.ResourceOffline,
			api.ReasonClientsPaused, "'holdfast ceph osd unset pause'",
		},
		{
			"paused writes", func(c *Cluster, _ *Pool) { c.Flags = []string{"pausewr"} }, api.ResourceDegraded,
			api.ReasonClientsPaused, "'holdfast ceph osd unset pause'",
		},
		{
			"flag full", func(c *Cluster, _ *Pool) { c.Flags = []string{"full"} }, api.ResourceDegraded,
			api.ReasonFull, "'holdfast ceph osd unset full'",
		},
		{"full OSDs", func(c *Cluster, p *Pool) {
			c.Fill("osd.1", Fullness([]string{"exists", "full", "up"}))
			p.Flags = append(p.Flags, "full")
		}, api.ResourceDegraded, api.ReasonFull, "set-full-ratio 0.97"},
		{"nearly full OSDs", func(c *Cluster, p *Pool) {
			c.Fill("osd.1", Fullness([]string{"nearfull"}))
			p.Flags = append(p.Flags, "nearfull")
		}, api.ResourceOnline, api.ReasonNearFull, "'holdfast ceph osd df'"},
		{
			"quota reached", func(_ *Cluster, p *Pool) { p.Flags = append(p.Flags, "full", "full_quota") },
			api.ResourceDegraded,
			api.ReasonQuotaReached, "raise spec.quota",
		},
		{
			"quota reached, by hand", func(_ *Cluster, p *Pool) { p.Flags, p.Declared = []string{"full_quota"}, false },
			api.ResourceDegraded, api.ReasonQuotaReached, "'holdfast ceph osd pool set-quota web max_bytes 0'",
		},
		{
			"quota near", func(_ *Cluster, p *Pool) { p.MaxBytes, p.Stored = 100, 93 }, api.ResourceOnline,
			api.ReasonQuotaNear, "raise spec.quota",
		},
		{
			"quota of objects near", func(_ *Cluster, p *Pool) { p.MaxObjects, p.Objects = 10, 8 }, api.ResourceOnline,
			api.ReasonQuotaNear, "raise spec.quota",
		},
		{"quota far", func(_ *Cluster, p *Pool) { p.MaxObjects, p.Objects = 10, 7 }, api.ResourceOnline, "", ""},
		{
			"paused and full", func(c *Cluster, p *Pool) { c.Flags, p.Flags = []string{"pauserd"}, []string{"full"} },
			api.ResourceOffline, api.ReasonClientsPaused, "unset pause",
		},
		{
			"being made", func(_ *Cluster, p *Pool) { p.Fresh, p.Unclean = true, map[string]int{"creating": 4} },
			api.ResourceCreating, "", "",
		},
	} {
		w := JudgePool(pool(tt.change))
		is(t, tt.name, w, tt.state, tt.reason, tt.next)
	}
}

// TestJudgePool_missing: placement groups that lack copies name what keeps Ceph from making them.
func TestJudgePool_missing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*Cluster, *Pool)
		state  string
		is     api.ResourceState
		reason api.Reason
		next   string
	}{
		{
			"few hosts", func(_ *Cluster, p *Pool) { p.Room = 2 }, "active+undersized", api.ResourceDegraded,
			api.ReasonInsufficientNodes, "set spec.replicated.size to 2",
		},
		{
			"few hosts, by hand", func(_ *Cluster, p *Pool) { p.Room, p.Declared = 1, false }, "undersized+peered",
			api.ResourceOffline, api.ReasonInsufficientNodes, "'holdfast ceph osd pool set web size 1'",
		},
		{
			"erasure", func(_ *Cluster, p *Pool) { p.Room, p.Erasure = 2, true }, "incomplete", api.ResourceOffline,
			api.ReasonInsufficientNodes, "add disks on another host",
		},
		{
			"no host", func(_ *Cluster, p *Pool) { p.Room = 0 }, "unknown", api.ResourceOffline,
			api.ReasonInsufficientNodes, "add disks",
		},
		{
			"few hosts and one out", func(c *Cluster, p *Pool) { p.Room, c.Out = 2, []string{"osd.2"} }, "active+undersized",
			api.ResourceDegraded, api.ReasonInsufficientNodes, "'holdfast ceph osd in 2'",
		},
		{
			"one down", func(c *Cluster, _ *Pool) { c.Down = []string{"osd.2"} }, "active+undersized+degraded",
			api.ResourceDegraded, api.ReasonDataUnavailable, "'holdfast why osd.2'",
		},
		{
			"two down", func(c *Cluster, _ *Pool) { c.Down = []string{"osd.1", "osd.2"} }, "undersized+degraded+peered",
			api.ResourceOffline, api.ReasonDataUnavailable, "'holdfast why osd.1'",
		},
		{
			"noup", func(c *Cluster, _ *Pool) { c.Down, c.Flags = []string{"osd.1"}, []string{"noup"} }, "stale+peered",
			api.ResourceOffline, api.ReasonChangedOutside, "'holdfast ceph osd unset noup'",
		},
		{
			"norecover", func(c *Cluster, _ *Pool) { c.Flags = []string{"norecover"} }, "active+recovery_wait+degraded",
			api.ResourceDegraded, api.ReasonChangedOutside, "'holdfast ceph osd unset norecover'",
		},
		{
			"inconsistent", func(c *Cluster, _ *Pool) { c.Down = []string{"osd.1"} }, "active+clean+inconsistent",
			api.ResourceDegraded, api.ReasonDataDamaged, "'holdfast ceph pg repair PG'",
		},
		{
			"too full", func(*Cluster, *Pool) {}, "active+remapped+backfill_toofull", api.ResourceDegraded,
			api.ReasonFull, "'holdfast ceph osd df'",
		},
		{
			"incomplete", func(*Cluster, *Pool) {}, "incomplete", api.ResourceOffline, api.ReasonDataUnavailable,
			"'holdfast ceph pg dump_stuck inactive'",
		},
		{
			"moving", func(*Cluster, *Pool) {}, "active+remapped+backfilling", api.ResourceDegraded,
			api.ReasonDataNotClean, "wait",
		},
	} {
		w := JudgePool(pool(tt.change, func(_ *Cluster, p *Pool) { p.Unclean = map[string]int{tt.state: 3} }))
		is(t, tt.name, w, tt.is, tt.reason, tt.next)
	}
}

// TestPlacing: what helps a pool that has more copies than places is told of a check, unless OSDs are down.
func TestPlacing(t *testing.T) {
	few := func(_ *Cluster, p *Pool) { p.Room, p.Declared, p.Name = 3, false, "hand"; p.Copies = 4 }
	c, p := pool(few)
	_, other := pool()
	if got := Placing(c, []*Pool{other, p}); !strings.Contains(got, "pool hand: ") || !strings.Contains(got,
		"'holdfast ceph osd pool set hand size 3'") {
		t.Errorf("%q", got)
	}
	c.Down = []string{"osd.1"}
	if got := Placing(c, []*Pool{p}); got != "" {
		t.Errorf("with an OSD down: %q", got)
	}
	if got := Placing(&Cluster{}, []*Pool{other}); got != "" {
		t.Errorf("where all is well: %q", got)
	}
}

func TestComing(t *testing.T) {
	for _, tt := range []struct {
		got    Coming
		reason api.Reason
		next   string
	}{
		{NodeComing("StorageNode n9", "node/n9", true, nil), api.ReasonDependencyNotReady, "'holdfast why node/n9'"},
		{
			NodeComing("StorageNode n9", "node/n9", false, []string{"its agent is silent"}), api.ReasonDependencyNotReady,
			"'holdfast why node/n9'",
		},
		{OSDComing("osd.3", "h3", true), api.ReasonHostNotActive, "'holdfast host maintenance exit h3'"},
		{OSDComing("osd.3", "h3", false), api.ReasonStarting, "'holdfast why osd.3'"},
	} {
		if tt.got.Reason != tt.reason || !strings.Contains(tt.got.Next, tt.next) || strings.Contains(tt.got.Message,
			"host waits") {
			t.Errorf("%+v, want %s, %s", tt.got, tt.reason, tt.next)
		}
	}
}

func TestJudgeFS(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*FS)
		state  api.ResourceState
		reason api.Reason
		next   string
	}{
		{"well", func(*FS) {}, api.ResourceOnline, "", ""},
		{
			"failed", func(f *FS) { f.Closed, f.Active, f.Down = true, nil, []int{0} }, api.ResourceOffline,
			api.ReasonNotJoinable, "'holdfast ceph fs set home joinable true'",
		},
		{
			"down", func(f *FS) { f.MaxMDS, f.Active = 0, nil }, api.ResourceOffline, api.ReasonChangedOutside,
			"'holdfast ceph fs set home down false'",
		},
		{
			"damaged", func(f *FS) { f.Damaged, f.Active = []int{0}, nil }, api.ResourceOffline, api.ReasonDataDamaged,
			"see what its MDS wrote after '[ERR]' ('holdfast logs mds.home-a', 'holdfast logs mds.home-b'), repair it, and " +
				"let an MDS try again with 'holdfast ceph mds repaired home:0'",
		},
		{
			"no mds", func(f *FS) { f.Down, f.Active, f.Failing = []int{0}, nil, []string{"mds.home-b", "mds.home-a"} },
			api.ResourceOffline, api.ReasonNotServed, "'holdfast why mds.home-a'",
		},
		{
			"hung", func(f *FS) { f.Hung, f.Active = f.Active, nil }, api.ResourceOffline, api.ReasonNotServed,
			"'holdfast why mds.home-a'",
		},
		{
			"taking over", func(f *FS) { f.Active, f.Busy = nil, []string{"mds.home-b is replay"} }, api.ResourceOffline,
			api.ReasonStarting, "wait",
		},
		{"being made", func(f *FS) { f.Active, f.Fresh = nil, true }, api.ResourceCreating, api.ReasonNotServed, "wait"},
		{
			"read-only", func(f *FS) { f.ReadOnly = f.Active }, api.ResourceDegraded, api.ReasonReadOnly,
			"'holdfast daemon restart mds.home-a'",
		},
		{"one of two", func(f *FS) { f.WantActive = 2 }, api.ResourceDegraded, api.ReasonNotServed, "wait"},
		{
			"no standby", func(f *FS) { f.Standbys, f.Failing = 0, []string{"mds.home-b"} }, api.ResourceDegraded,
			api.ReasonNotServed, "'holdfast why mds.home-b'",
		},
	} {
		f := &FS{
			Name: "home", MaxMDS: 1, MDS: []string{"mds.home-a", "mds.home-b"}, Active: []string{"mds.home-a"},
			Standbys: 1, WantActive: 1, WantStandbys: 1,
		}
		tt.change(f)
		is(t, tt.name, JudgeFS(f), tt.state, tt.reason, tt.next)
	}
}

func TestJudgeStore(t *testing.T) {
	silent := "1 of 2 gateways answer: rgw.s3-a on host h1 is stopped"
	for _, tt := range []struct {
		name   string
		store  Store
		state  api.ResourceState
		reason api.Reason
	}{
		{"well", Store{Up: 2, All: 2}, api.ResourceOnline, ""},
		{
			"some",
			Store{Up: 1, All: 2, Silent: silent, Failing: []string{"rgw.s3-a"}},
			api.ResourceDegraded,
			api.ReasonNotServed,
		},
		{"none", Store{All: 1, Silent: silent, Failing: []string{"rgw.s3-a"}}, api.ResourceOffline, api.ReasonNotServed},
		{
			"being made",
			Store{All: 1, Fresh: true, Silent: silent, Failing: []string{"rgw.s3-a"}},
			api.ResourceCreating,
			api.ReasonNotServed,
		},
	} {
		next := map[bool]string{true: "'holdfast why rgw.s3-a'"}[tt.reason != ""]
		is(t, tt.name, JudgeStore(&tt.store), tt.state, tt.reason, next)
	}
}

// TestWord_WithPools: the worst pool gives a whole its reason, and a warning of a pool is said,
// too.
func TestWord_WithPools(t *testing.T) {
	full := Word{api.ResourceDegraded, api.ReasonFull, "full", "add disks"}
	near := Word{api.ResourceOnline, api.ReasonQuotaNear, "near", "raise it"}
	off := Word{api.ResourceOffline, api.ReasonClientsPaused, "paused", "unset it"}
	w := well.WithPools([]Part{{Name: "a", Is: near}, {Name: "b", Is: full}, {Name: "c", Is: well}, {Name: "d", Is: off}})
	is(t, "all", w, api.ResourceOffline, api.ReasonClientsPaused, "unset it")
	if want := "pool a: near; pool b is Degraded: full; pool d is Offline: paused"; w.Text != want {
		t.Errorf("%q, want %q", w.Text, want)
	}
	if w := well.WithPools([]Part{{Name: "a", Is: Word{State: api.ResourceCreating}}}); w.Text != "pool a is Creating" {
		t.Errorf("a part without a cause: %q", w.Text)
	}
}

// TestWord_WithPools_alike: an OSD that is down is named once for all pools that lack it.
func TestWord_WithPools_alike(t *testing.T) {
	down := &Cluster{Down: []string{"osd.2"}}
	part := func(name string, pgs int, unclean map[string]int) Part {
		pool := &Pool{Name: name, Copies: 3, MinSize: 2, Room: 3, PGs: pgs, Unclean: unclean}
		return PartOf(pool, JudgePool(down, pool))
	}
	const degraded, undersized = "active+undersized+degraded", "active+undersized"
	w := well.WithPools([]Part{
		part("meta", 16, map[string]int{degraded: 3, undersized: 5}), part("idle", 8, nil),
		part("data", 32, map[string]int{degraded: 12}), part("cold", 32, map[string]int{"undersized+peered": 4}),
	})
	is(t, "all", w, api.ResourceOffline, api.ReasonDataUnavailable, "'holdfast why osd.2'")
	want := "pools meta, data are Degraded: 20 of 48 placement groups are not active+clean (5 active+undersized, " +
		"15 active+undersized+degraded): osd.2 is down; pool cold is Offline: 4 of 32 placement groups are not " +
		"active+clean (4 undersized+peered): osd.2 is down"
	if w.Text != want {
		t.Errorf("%q, want %q", w.Text, want)
	}
}
