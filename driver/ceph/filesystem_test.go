package ceph

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/cephreport"
)

func filesystemOf(name string, change ...func(*api.Filesystem)) *api.Filesystem {
	f := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Generation: 1}}
	f.Spec = api.FilesystemSpec{Cluster: "c", DeletionPolicy: api.DeletionRetain}
	for _, c := range change {
		c(f)
	}
	return f
}

func numberOf(n int32) *int32 { return &n }

// filesystemsOn is a world of so many hosts with filesystems.
func filesystemsOn(hosts int, all ...*api.Filesystem) *fakeWorld {
	f := poolsOn(hosts)
	f.filesystems = all
	return f
}

// mdsOn lists the MDS with their hosts.
func (f *fakeWorld) mdsOn() []string {
	var all []string
	for name, d := range f.daemons {
		if d.Spec.Type == TypeMDS {
			all = append(all, strings.TrimPrefix(name, "c-mds-")+"@"+d.Spec.Host+"="+string(d.Spec.State))
		}
	}
	slices.Sort(all)
	return all
}

func (f *fakeWorld) wantMDS(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := f.mdsOn(); !slices.Equal(got, want) {
		t.Errorf("%s: MDS %v, and not %v", when, got, want)
	}
}

// A filesystem is made with its pools, its MDS and its groups, and follows its spec.
func TestFilesystem(t *testing.T) {
	quota := resource.MustParse("1Gi")
	f := filesystemsOn(3, filesystemOf("home", func(f *api.Filesystem) {
		f.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "cold", FilesystemPool: api.FilesystemPool{ErasureCoded: &api.PoolErasureCoded{DataChunks: 2, CodingChunks: 1}}}}
		f.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "users", Quota: &quota}, {Name: "apps"}}
	}))
	p := f.settle(t)
	if want := []string{"home: ranks map[0:home-a], pools 2 [3 4], map[max_mds:1 standby_count_wanted:1], groups map[apps:0 users:1073741824]"}; !slices.Equal(f.ceph.Filesystems(), want) {
		t.Fatalf("%v, and not %v: %v", f.ceph.Filesystems(), want, decisions(p))
	}
	if diff := cmp.Diff([]string{
		"cold: rule holdfast-host-ec-2-1, size 3/2, map[] map[allow_ec_overwrites:true] for [cephfs]",
		"home-data: rule holdfast-host, size 3/2, map[] map[] for [cephfs]", "home-metadata: rule holdfast-host, size 3/2, map[] map[] for [cephfs]",
	}, f.ceph.Pools()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s := f.filesystems[0].Status
	if s.State != api.ResourceOnline || s.Active != "home-a" || s.Standby != "home-b" || s.Clients != 0 || len(s.SubvolumeGroups) != 2 || len(s.Pools) != 3 || !p.Done {
		t.Errorf("%+v, done %v", s, p.Done)
	}
	f.wantMDS(t, "at first", "home-a@h2=Running", "home-b@h3=Running") // the mon and the mgr are on the others
	f.filesystems[0].Spec.ActiveMDS, f.filesystems[0].Spec.SubvolumeGroups[0].Quota = 2, nil
	f.mounted = []cephreport.Mount{{Entity: "app", Host: "web", Path: "/mnt"}}
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.Active != "home-a,home-b" || s.Standby != "home-c" || s.Clients != 1 {
		t.Errorf("with two at work: %+v", s)
	}
	if got := f.ceph.Filesystems()[0]; !strings.Contains(got, "groups map[apps:0 users:0]") {
		t.Errorf("a quota that was taken away: %s", got)
	}
	f.filesystems[0].Spec.ActiveMDS = 1
	if p := f.round(t); len(p.Remove) > 0 {
		t.Errorf("while two are at work %s goes, and nobody would stand by", p.Remove[0].Name)
	}
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.Active != "home-a" || len(f.mdsOn()) != 2 {
		t.Errorf("with one at work again: %+v, %v", s, f.mdsOn())
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
}

// MDS move off a host that is drained when others are ready, stay stopped in maintenance, and are replaced when their host is lost.
func TestFilesystem_hosts(t *testing.T) {
	f := filesystemsOn(4, filesystemOf("home"))
	f.settle(t)
	f.wantMDS(t, "at first", "home-a@h1=Running", "home-b@h2=Running")
	f.mode(1, api.HostMaintenance)
	f.settle(t)
	f.wantMDS(t, "in maintenance", "home-a@h1=Stopped", "home-b@h2=Running")
	if s := f.filesystems[0].Status; s.Active != "home-b" || s.State != api.ResourceDegraded {
		t.Errorf("in maintenance: %+v", s)
	}
	f.mode(1, api.HostActive)
	f.settle(t)
	f.mode(2, api.HostDrain)
	for range 30 {
		f.agents()
		f.round(t)
		f.now = f.now.Add(recheckLater)
		if len(f.ceph.Active("home")) == 0 {
			t.Fatal("nobody serves the filesystem while a host is drained")
		}
	}
	f.settle(t)
	f.wantMDS(t, "drained", "home-a@h1=Running", "home-c@h3=Running")
	if f.secrets["c-key-mds.home-b"].data != nil || f.ceph.Caps("mds.home-b") != nil {
		t.Error("the key of an MDS that is gone is left")
	}
	f.mode(2, api.HostActive)
	f.settle(t)
	f.powerOff(1, 30*time.Second)
	f.round(t)
	f.wantMDS(t, "just lost", "home-a@h1=Running", "home-c@h3=Running")
	f.powerOff(1, 2*time.Minute)
	f.settle(t)
	f.wantMDS(t, "lost", "home-a@h1=Running", "home-b@h2=Running", "home-c@h3=Running")
	if s := f.filesystems[0].Status; s.Active != "home-c" || s.Standby != "home-b" {
		t.Errorf("lost: %+v", s)
	}
	f.powerOn(1)
	f.settle(t)
	if got := f.mdsOn(); len(got) != 2 {
		t.Errorf("one too many stays: %v", got)
	}
}

// Placement selects, and MDS follow when it changes: new ones first.
func TestFilesystem_placement(t *testing.T) {
	f := filesystemsOn(4, filesystemOf("home", func(f *api.Filesystem) { f.Spec.Placement.Hosts = []string{"h1", "h2"} }))
	f.settle(t)
	f.wantMDS(t, "by name", "home-a@h1=Running", "home-b@h2=Running")
	f.filesystems[0].Spec.Placement = api.HostSelection{Pattern: "h[34]"}
	for range 20 {
		f.agents()
		f.round(t)
		f.now = f.now.Add(recheckLater)
		if len(f.ceph.Active("home")) == 0 {
			t.Fatal("nobody serves the filesystem while its MDS move")
		}
	}
	p := f.settle(t)
	if got := f.mdsOn(); len(got) != 2 || !strings.Contains(got[0], "@h3") || !strings.Contains(got[1], "@h4") || !p.Done {
		t.Errorf("by pattern: %v, %v", got, p.Status.Reasons)
	}
	f.filesystems[0].Spec.Placement = api.HostSelection{Labels: map[string]string{"disk": "fast"}}
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "filesystem/home"); !strings.Contains(got, "placement selects no host: no host matches label disk=fast") || len(f.mdsOn()) != 2 {
		t.Errorf("%q, %v", got, f.mdsOn())
	}
	f.filesystems[0].Spec.Placement = api.HostSelection{Hosts: []string{"h3"}}
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictSkip), "filesystem/home"); len(f.mdsOn()) != 1 || !strings.Contains(got, "instead of spec.activeMDS and spec.standbyMDS together 2") {
		t.Errorf("%q, %v", got, f.mdsOn())
	}
	f.mode(3, api.HostDrain)
	p = f.settle(t)
	if w := hostWord(p, "h3"); !strings.HasPrefix(w, "Refuse: cannot drain: no other host may run mds.home-") || len(f.mdsOn()) != 1 {
		t.Errorf("the only host is drained: %q, %v", w, f.mdsOn())
	}
}

// What cannot be is refused before anything is touched.
func TestFilesystem_refused(t *testing.T) {
	for name, tt := range map[string]struct {
		fs     *api.Filesystem
		before func(*fakeWorld)
		want   string
	}{
		"no room for its pools": {filesystemOf("home", func(f *api.Filesystem) {
			f.Spec.MetadataPool = api.FilesystemPool{Replicated: &api.PoolReplicated{Size: 4}, FailureDomain: "host"}
		}), nil, "pool home-metadata: it needs 4 hosts with OSDs"},
		"a pool of that name": {
			filesystemOf("home"), func(f *fakeWorld) { f.ceph.MakePool("home-data", "mine", "host") },
			"pool home-data: Ceph has a pool of this name that was not made for this filesystem",
		},
		"a Pool of that name": {
			filesystemOf("home"), func(f *fakeWorld) { f.pools = append(f.pools, *replicated("home-data", 3)) },
			"pool home-data: pool home-data has a pool of this name",
		},
		"two pools of a name": {
			filesystemOf("home", func(f *api.Filesystem) { f.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "home-metadata"}} }), nil,
			"pool home-metadata: filesystem home has a pool of this name",
		},
		"a quota of nothing": {filesystemOf("home", func(f *api.Filesystem) {
			f.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "users", Quota: resource.NewQuantity(0, resource.BinarySI)}}
		}), nil, "the quota of subvolume group users must be above zero"},
		"a quota of half a byte": {filesystemOf("home", func(f *api.Filesystem) {
			f.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "users", Quota: resource.NewMilliQuantity(500, resource.DecimalSI)}}
		}), nil, "the quota of subvolume group users must be whole bytes"},
		"no host": {filesystemOf("home", func(f *api.Filesystem) { f.Spec.Placement.Pattern = "web*" }), nil, "placement selects no host: no host matches pattern web*"},
	} {
		t.Run(name, func(t *testing.T) {
			f := filesystemsOn(3)
			f.settle(t)
			if tt.before != nil {
				tt.before(f)
				f.settle(t)
			}
			pools := f.ceph.Pools()
			f.filesystems = append(f.filesystems, tt.fs)
			p := f.settle(t)
			if got := word(decisions(p, api.VerdictRefuse), "filesystem/home"); !strings.Contains(got, tt.want) {
				t.Errorf("refused for %q, and not %q", got, tt.want)
			}
			if s := f.filesystems[0].Status; s.State != api.ResourcePending || !slices.Equal(pools, f.ceph.Pools()) || len(f.ceph.Filesystems())+len(f.mdsOn()) > 0 {
				t.Errorf("%+v, pools %v, %v", s, f.ceph.Pools(), f.mdsOn())
			}
		})
	}
}

// A data pool is never taken out, and a filesystem that is refused goes on.
func TestFilesystem_poolTakenOut(t *testing.T) {
	f := filesystemsOn(3, filesystemOf("home", func(f *api.Filesystem) { f.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "more"}} }))
	f.settle(t)
	f.filesystems[0].Spec.DataPools = nil
	p := f.settle(t)
	if got := word(decisions(p, api.VerdictRefuse), "filesystem/home"); !strings.HasPrefix(got, "spec.dataPools lacks pool more") {
		t.Errorf("%q", got)
	}
	f.powerOff(2, 2*time.Minute)
	f.settle(t)
	if s := f.filesystems[0].Status; len(f.ceph.Active("home")) != 1 || s.Active != f.ceph.Active("home")[0] {
		t.Errorf("%+v", s)
	}
}

// A filesystem that was made by hand, or kept, is taken over; one that is deleted goes when nobody has it mounted.
func TestFilesystem_keptAndDeleted(t *testing.T) {
	f := filesystemsOn(3)
	f.settle(t)
	f.ceph.MakePool("meta", "mine", "host")
	f.ceph.MakePool("bulk", "mine", "host")
	f.ceph.MakeFilesystem("home", "meta", "bulk")
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	p := f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.Pools[0].Name != "meta" || s.Pools[1].Name != "bulk" || !p.Done {
		t.Fatalf("%+v, %v", s, p.Status.Reasons)
	}
	deleted := func(policy api.DeletionPolicy) {
		now := metav1.NewTime(f.now)
		f.filesystems[0].DeletionTimestamp, f.filesystems[0].Spec.DeletionPolicy = &now, policy
	}
	f.mounted = []cephreport.Mount{{Entity: "app", Host: "web", Path: "/mnt"}}
	for range 3 {
		f.agents()
		f.round(t)
	}
	deleted(api.DeletionRetain)
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictWait), "filesystem/home"); got != "deletion waits: mounted by client.app on host web at /mnt: deleted when they have unmounted it" {
		t.Errorf("%q", got)
	}
	f.ceph.Authorize("client.nfs.mine.0")
	f.mounted = []cephreport.Mount{{Entity: "nfs.mine.0", Host: "web", Path: "/mnt"}} // the NFS server of somebody else, who has a key
	p = f.settle(t)
	if got := word(decisions(p, api.VerdictWait), "filesystem/home"); !strings.Contains(got, "mounted by client.nfs.mine.0 on host web") {
		t.Errorf("%q", got)
	}
	f.mounted, f.ceph.Ghosts = nil, []string{"home-z", "homes-a"}
	said := ""
	for i := 0; i < 50 && len(f.filesystems) > 0; i++ {
		f.agents()
		f.round(t)
		if len(f.filesystems) > 0 && strings.Contains(f.filesystems[0].Status.Message, "mds.home-z") {
			said = f.filesystems[0].Status.Message
		}
	}
	if want := "deletion: Ceph drops mds.home-z, which has no Daemon; if its process runs, stop it"; said != want {
		t.Errorf("%q, want %q", said, want)
	}
	f.settle(t)
	if len(f.ceph.Ghosts) != 1 || f.ceph.Ghosts[0] != "homes-a" {
		t.Errorf("Ceph still lists %v", f.ceph.Ghosts)
	}
	f.ceph.Ghosts = nil
	if len(f.filesystems)+len(f.mdsOn()) > 0 || len(f.ceph.Filesystems()) != 1 || len(f.ceph.Pools()) != 2 {
		t.Fatalf("kept: %v, %v, %v", f.mdsOn(), f.ceph.Filesystems(), f.ceph.Pools())
	}
	if got := f.ceph.Filesystems()[0]; !strings.Contains(got, "max_mds:0") {
		t.Errorf("its MDS were ended without its journal: %s", got)
	}
	f.filesystems = append(f.filesystems, filesystemOf("home"))
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline {
		t.Errorf("taken up again: %+v", s)
	}
	deleted(api.DeletionWipe)
	f.settle(t)
	if len(f.filesystems)+len(f.mdsOn())+len(f.ceph.Filesystems())+len(f.ceph.Pools()) > 0 || f.secrets["c-key-mds.home-a"].data != nil {
		t.Errorf("wiped: %v, %v, %v", f.mdsOn(), f.ceph.Filesystems(), f.ceph.Pools())
	}
	if c := f.ceph.Caps("mds.home-a"); c != nil {
		t.Errorf("a key of an MDS is left: %v", c)
	}
}
