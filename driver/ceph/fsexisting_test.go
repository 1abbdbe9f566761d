package ceph

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// volumeOn is a world with a file system as 'ceph fs volume create' makes it, and a Filesystem that
// takes it as it is.
func volumeOn(hosts int) *fakeWorld {
	f := filesystemsOn(hosts)
	f.ceph.MakePool("cephfs.home.meta", "by-hand", "osd")
	f.ceph.MakePool("cephfs.home.data", "by-hand", "osd")
	f.ceph.MakeFilesystem("home", "cephfs.home.meta", "cephfs.home.data")
	f.filesystems = append(f.filesystems, existing("home"))
	return f
}

func existing(name string) *api.Filesystem {
	return filesystemOf(name, func(f *api.Filesystem) { f.Spec.Pools = api.PoolsExisting })
}

// A file system that Ceph has gets its MDSs, and its pools stay as they are.
func TestFilesystem_existing(t *testing.T) {
	f := volumeOn(3)
	before := f.ceph.Pools()
	p := f.settle(t)
	s := f.filesystems[0].Status
	if s.State != api.ResourceOnline || s.ID != 1 || s.Active != "home-a" || s.Standby != "home-b" || !p.Done {
		t.Errorf("%+v, done %v", s, p.Done)
	}
	if diff := cmp.Diff(before, f.ceph.Pools()); diff != "" {
		t.Errorf("pools are changed (-before +after):\n%s", diff)
	}
	if len(s.Pools) != 2 || s.Pools[0].Name != "cephfs.home.meta" || s.Pools[1].Name != "cephfs.home.data" {
		t.Errorf("%+v", s.Pools)
	}
	f.filesystems[0].Spec.ActiveMDS = 2
	f.settle(t)
	if s := f.filesystems[0].Status; s.Active != "home-a,home-b" || s.Standby != "home-c" {
		t.Errorf("with two at work: %+v", s)
	}
	writes := f.writes
	if f.settle(t); f.writes != writes {
		t.Errorf("%d writes in a cluster that is well", f.writes-writes)
	}
	f.deleteFS(api.DeletionWipe)
	f.settle(t)
	if len(f.filesystems) > 0 || len(f.mdsOn()) > 0 || len(f.ceph.Filesystems()) != 1 {
		t.Errorf("after its deletion: %v, %v", f.mdsOn(), f.ceph.Filesystems())
	}
	if diff := cmp.Diff(before, f.ceph.Pools()); diff != "" {
		t.Errorf("pools go with it (-before +after):\n%s", diff)
	}
}

// Where Ceph has no file system of the name, none is made: before there was one, and after one is
// gone, though the loss is accepted.
func TestFilesystem_existingGone(t *testing.T) {
	f := filesystemsOn(3, existing("home"))
	pools := len(f.ceph.Pools())
	wantNone := func(when string) {
		t.Helper()
		p := f.settle(t)
		if all := f.ceph.Filesystems(); len(all) > 0 || len(f.ceph.Pools()) != pools {
			t.Errorf("%s: %v, %v", when, all, f.ceph.Pools())
		}
		i := slices.IndexFunc(p.Decisions, func(d api.Decision) bool {
			return d.Object == "filesystem/home" && d.Verdict == api.VerdictWait
		})
		if i < 0 || p.Decisions[i].Reason != api.ReasonNotReady || f.filesystems[0].Status.State != api.ResourcePending {
			t.Errorf("%s: %v, %+v", when, p.Decisions, f.filesystems[0].Status)
		}
	}
	wantNone("before")

	f = volumeOn(3)
	f.settle(t)
	f.ceph.DropFilesystem("home")
	f.ceph.DropPool("cephfs.home.meta")
	f.ceph.DropPool("cephfs.home.data")
	pools = len(f.ceph.Pools())
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOffline, api.ReasonDeletedOutside, "1",
		"'holdfast recreate filesystem home --lost 1'")
	recreate(f.filesystems[0], "1")
	wantNone("after the loss was accepted")

	f.ceph.MakePool("m", "by-hand", "osd")
	f.ceph.MakePool("d", "by-hand", "osd")
	f.ceph.MakeFilesystem("home", "m", "d")
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.ID != 2 {
		t.Errorf("another one of its name: %+v", s)
	}
}

// Whoever takes the pools as Ceph has them declares none, and has none deleted.
func TestFilesystem_existingRefused(t *testing.T) {
	for name, change := range map[string]func(*api.Filesystem){
		"metadata": func(f *api.Filesystem) { f.Spec.MetadataPool.DeviceClass = "ssd" },
		"data":     func(f *api.Filesystem) { f.Spec.DataPools = []api.FilesystemDataPool{{}} },
		"wipe":     func(f *api.Filesystem) { f.Spec.DeletionPolicy = api.DeletionWipe },
	} {
		f := volumeOn(3)
		change(f.filesystems[0])
		p := f.settle(t)
		i := slices.IndexFunc(p.Decisions, func(d api.Decision) bool {
			return d.Verdict == api.VerdictRefuse && strings.HasPrefix(d.Object, "filesystem/")
		})
		if i < 0 || p.Decisions[i].Reason != api.ReasonInvalidSpec {
			t.Errorf("%s: %v", name, p.Decisions)
		}
	}
}
