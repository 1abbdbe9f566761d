package gluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

// brick makes a directory that GlusterFS would take for a brick.
func brick(t *testing.T, path string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path, ".glusterfs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setxattr(path, volumeIDAttribute, []byte("0123456789abcdef"), 0); err != nil {
		t.Fatalf("attributes (these tests need root): %v", err)
	}
}

func TestDirectories(t *testing.T) {
	for policy, kept := range map[api.DeletionPolicy]bool{api.DeletionRetain: true, api.DeletionWipe: false} {
		l := newLocal(t, policy)
		dir := filepath.Join(t.TempDir(), "srv", "bricks")
		l.Parameters[glusterd.ParamDirectories] = dir
		for range 2 {
			if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		brick(t, filepath.Join(dir, "v"))
		if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := stores(l); len(got) != 1 || got[0].Problem != "" || got[0].Size == 0 || len(got[0].Bricks) != 1 || got[0].Bricks[0].Volume == "" {
			t.Errorf("stores %+v", got)
		}
		for range 2 {
			if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "v")); (err == nil) != kept {
			t.Errorf("%s: the brick: %v", policy, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "mine")); err != nil {
			t.Errorf("%s: what is not ours is gone: %v", policy, err)
		}
	}
}

func TestDirectories_ofAnotherPool(t *testing.T) {
	dir := t.TempDir()
	for i, pool := range []string{"pool-1", "pool-2"} {
		l := newLocal(t, api.DeletionWipe)
		l.Parameters[glusterd.ParamDirectories], l.Parameters[glusterd.ParamPool] = dir, pool
		err := (Glusterd{}).ConfigureDevices(t.Context(), l)
		if i == 0 && err != nil || i == 1 && (err == nil || !strings.Contains(err.Error(), "another pool (pool-1)")) {
			t.Errorf("%s: %v", pool, err)
		}
		if i == 0 {
			brick(t, filepath.Join(dir, "v"))
			continue
		}
		if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(dir, "v")); err != nil {
			t.Errorf("the brick of another pool is gone: %v", err)
		}
	}
}

// An empty directory that was never claimed may be where somebody mounts something.
func TestDirectories_neverClaimed(t *testing.T) {
	l := newLocal(t, api.DeletionWipe)
	dir := t.TempDir()
	l.Parameters[glusterd.ParamDirectories] = dir
	if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if !exists(dir) {
		t.Error("it is gone")
	}
	if err := (Glusterd{}).ConfigureDevices(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (Glusterd{}).DestroyLocalService(t.Context(), l); err != nil || exists(dir) || exists(leftNote(l, dir)) {
			t.Errorf("claimed: it is left %v, and noted %v, %v", exists(dir), exists(leftNote(l, dir)), err)
		}
	}
}

// A directory whose file system somebody unmounted is not taken for an empty store: bricks would be filled again below its mount point.
func TestDirectories_unmounted(t *testing.T) {
	l := newLocal(t, api.DeletionRetain)
	dir := t.TempDir()
	run(t, "mount", "-t", "tmpfs", "bricks", dir)
	l.Parameters[glusterd.ParamDirectories] = dir
	configure(t, l)
	run(t, "umount", dir)
	for range 2 {
		err := (Glusterd{}).ConfigureDevices(t.Context(), l)
		if err == nil || !strings.Contains(err.Error(), "mount its file system again ('mount "+dir+"')") {
			t.Errorf("%v", err)
		}
		if s := stores(l)[0]; s.Problem == "" || s.Size != 0 {
			t.Errorf("%+v", s)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
			t.Errorf("below the empty mount point: %v %v", left, err)
		}
	}
	l.Parameters[glusterd.ParamDirectories] = "" // taken from the node, and named again: its data is lost
	configure(t, l)
	l.Parameters[glusterd.ParamDirectories] = dir
	configure(t, l)
	if s := stores(l)[0]; s.Problem != "" {
		t.Errorf("claimed anew: %+v", s)
	}
}

// A directory that has bricks of another pool is no store of this one.
func TestStores_ofAnotherPool(t *testing.T) {
	l := newLocal(t, api.DeletionRetain)
	l.Parameters[glusterd.ParamDirectories] = t.TempDir()
	configure(t, l)
	l.Parameters[glusterd.ParamPool] = "pool-2"
	if s := stores(l)[0]; s.Problem == "" {
		t.Errorf("%+v", s)
	}
}
