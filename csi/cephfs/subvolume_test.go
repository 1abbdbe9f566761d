package cephfs

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/test/smallceph"
)

func TestMain(m *testing.M) {
	rados.MaybeServe()
	os.Exit(m.Run())
}

// The stand-in answers as Ceph's manager does: both pass the one suite.
func TestSubvolumes(t *testing.T) {
	t.Run("stand-in", func(t *testing.T) { suite(t, newCeph()) })
	t.Run("Ceph", func(t *testing.T) {
		ceph := smallceph.Start(t)
		ceph.Filesystem("home")
		suite(t, ceph.Client())
	})
}

const mib = 1 << 20

func suite(t *testing.T, client rados.Client) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	fs, found, err := find(ctx, client, func(f filesystem) bool { return f.Name == "home" })
	if err != nil || !found || !fs.Active || len(fs.Data) != 1 || fs.ID == 0 {
		t.Fatalf("the filesystem: %v, %v", fs, err)
	}
	if err := fs.hasRoom(ctx, client, 1<<50); err == nil || !strings.Contains(err.Error(), "home.data") {
		t.Errorf("room for much: %v", err)
	}
	if err := fs.hasRoom(ctx, client, mib); err != nil {
		t.Errorf("room for little: %v", err)
	}
	s := subvolumes{client, fs}
	wants := func(what string, err error, want syscall.Errno) {
		t.Helper()
		if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	_, err = s.find(ctx, "a")
	wants("find before there is a group", err, syscall.ENOENT)
	wants("create", s.create(ctx, "a", 8*mib), 0)
	_, err = s.find(ctx, "b")
	wants("find none", err, syscall.ENOENT)
	wants("grow", s.resize(ctx, "a", 16*mib), 0)
	wants("grow none", s.resize(ctx, "b", 16*mib), syscall.ENOENT)
	got, err := s.find(ctx, "a")
	if err != nil || got.Quota != 16*mib || got.Used != 0 || !strings.HasPrefix(got.Path, GroupPath+"/a/") {
		t.Errorf("find: got %v, %v", got, err)
	}
	suiteOfNotes(ctx, t, s)
	wants("remove", s.remove(ctx, "a"), 0)
	wants("remove again", s.remove(ctx, "a"), syscall.ENOENT)
	_, err = s.notes(ctx, "a")
	wants("notes of none", err, syscall.ENOENT)
	gone := subvolumes{client, filesystem{Name: "gone"}}
	wants("create in no filesystem", gone.create(ctx, "a", mib), syscall.ENOENT)
}

func suiteOfNotes(ctx context.Context, t *testing.T, s subvolumes) {
	t.Helper()
	if err := s.removeNote(ctx, "a", noteOf("n1")); err != nil {
		t.Errorf("removing a note before there was any: %v", err)
	}
	for _, value := range []string{alone, shared} {
		if err := s.setNote(ctx, "a", noteOf("N1"), value); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.notes(ctx, "a")
	if diff := cmp.Diff(map[string]string{"holdfast.io/node/n1": shared}, got); err != nil || diff != "" {
		t.Errorf("notes: %v\n%s", err, diff)
	}
	for range 2 {
		if err := s.removeNote(ctx, "a", noteOf("n1")); err != nil {
			t.Errorf("removing a note: %v", err)
		}
	}
	if got, err := s.notes(ctx, "a"); err != nil && !isMissing(err) || len(got) > 0 {
		t.Errorf("notes that were removed: %v, %v", got, err)
	}
}
