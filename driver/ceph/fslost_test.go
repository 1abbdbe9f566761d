package ceph

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// A filesystem that was removed by hand is not made anew. Its pools are named, and so is the command that makes it again of them.
func TestLost_filesystem(t *testing.T) {
	f := withFilesystem(t)
	fs := f.filesystems[0]
	before := f.ceph.Pools()
	f.ceph.DropFilesystem("home")
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOffline, api.ReasonDeletedOutside, "1", "pool home-metadata (id 2)", "pool home-data (id 3)",
		"'holdfast ceph fs new home home-metadata home-data --fscid 1 --force --recover'", "'holdfast recreate filesystem home --lost 1'")
	if len(f.ceph.Filesystems()) != 0 || len(f.ceph.Pools()) != len(before) || f.filesystems[0].Status.ID != fs.Status.ID {
		t.Errorf("%v, %v", f.ceph.Filesystems(), f.ceph.Pools())
	}

	recreate(f.filesystems[0], "1")
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourcePending || !strings.Contains(s.Message, "was not made for this filesystem") || len(f.ceph.Filesystems()) != 0 {
		t.Errorf("its old pools, with what is in them, are used for a new one: %s: %s", s.State, s.Message)
	}
	f.ceph.RenamePool("home-metadata", "old-metadata")
	f.ceph.RenamePool("home-data", "old-data")
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.ID != 2 || f.ceph.PoolID("old-data") == 0 {
		t.Errorf("%+v", s)
	}
}

// One that was renamed by hand is found by its number, and one of its name with another number is left alone.
func TestLost_filesystemRenamed(t *testing.T) {
	f := withFilesystem(t)
	f.ceph.RenameFilesystem("home", "home2")
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOffline, api.ReasonRenamedOutside, "1", "'holdfast ceph fs rename home2 home --yes-i-really-mean-it'")
	f.ceph.MakePool("m", "by-hand", "host")
	f.ceph.MakePool("d", "by-hand", "host")
	f.ceph.MakeFilesystem("home", "m", "d")
	f.exports = append(f.exports, exportOf("home", "home"))
	f.settle(t)
	if d := f.daemons["c-nfs-h1"]; d != nil && strings.Contains(*d.Spec.Files[0].Sources[0].Text, "Filesystem = ") {
		t.Errorf("the other one is served by NFS: %+v", f.exports[0].Status)
	}
	f.exports = nil
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOffline, api.ReasonNameTaken, "1", "another id (2)", "home2")
	f.deleteFS(api.DeletionWipe)
	f.settle(t)
	if all := f.ceph.Filesystems(); len(all) != 2 || f.ceph.PoolID("m") == 0 || len(f.filesystems) != 0 {
		t.Errorf("%v, %v", all, f.ceph.Pools())
	}
}

// A data pool that was taken out and deleted is not made anew either.
func TestLost_filesystemPool(t *testing.T) {
	f := withFilesystem(t, func(fs *api.Filesystem) {
		fs.Spec.DataPools = []api.FilesystemDataPool{{}, {Name: "bulk"}}
	})
	f.ceph.TakeDataPool("home", "bulk")
	f.ceph.DropPool("bulk")
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOffline, api.ReasonDeletedOutside, "pool-4", "pool bulk (id 4) was deleted outside Holdfast")
	if f.ceph.PoolID("bulk") != 0 {
		t.Error("it was made anew")
	}
	recreate(f.filesystems[0], "pool-4")
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || f.ceph.PoolID("bulk") != 5 {
		t.Errorf("%+v", s)
	}
}

// A subvolume group that is gone is not made anew when another one is, and is told.
func TestLost_group(t *testing.T) {
	quota := resource.MustParse("1Gi")
	f := withFilesystem(t, func(fs *api.Filesystem) { fs.Spec.SubvolumeGroups = []api.SubvolumeGroup{{Name: "a", Quota: &quota}} })
	f.ceph.DropGroup("home", "a")
	f.filesystems[0].Spec.SubvolumeGroups = append(f.filesystems[0].Spec.SubvolumeGroups, api.SubvolumeGroup{Name: "b"})
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceDegraded, api.ReasonDeletedOutside, "group-a", "subvolume group a of filesystem home was deleted outside Holdfast")
	if all := f.ceph.Filesystems()[0]; !strings.Contains(all, "groups map[b:0]") {
		t.Error(all)
	}
	recreate(f.filesystems[0], "group-a")
	f.settle(t)
	wantLost(t, f.filesystems[0], api.ResourceOnline, api.ReasonPresent, "")
	if all := f.ceph.Filesystems()[0]; !strings.Contains(all, "groups map[a:1073741824 b:0]") {
		t.Error(all)
	}
}

// withFilesystem is a world of three hosts with one filesystem, which is well.
func withFilesystem(t *testing.T, change ...func(*api.Filesystem)) *fakeWorld {
	f := filesystemsOn(3, filesystemOf("home", change...))
	f.settle(t)
	if s := f.filesystems[0].Status; s.State != api.ResourceOnline || s.ID != 1 {
		t.Fatalf("%+v", s)
	}
	return f
}

func (f *fakeWorld) deleteFS(policy api.DeletionPolicy) {
	now := metav1.NewTime(f.now)
	f.filesystems[0].DeletionTimestamp, f.filesystems[0].Spec.DeletionPolicy = &now, policy
}
