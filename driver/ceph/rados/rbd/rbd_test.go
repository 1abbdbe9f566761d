package rbd_test

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados/rbd/rbdtest"
	"github.com/holdfast-storage/holdfast/test/smallceph"
)

func TestMain(m *testing.M) {
	rados.MaybeServe()
	os.Exit(m.Run())
}

// The stand-in answers as librbd does: both pass the one suite.
func TestPool(t *testing.T) {
	ceph := smallceph.Start(t)
	t.Run("librbd", func(t *testing.T) { suite(t, ceph.Client(), ceph.Pool("images"), 99) })
	t.Run("stand-in", func(t *testing.T) { suite(t, rbdtest.New(2), 2, 99) })
	t.Run("an OSD that hangs", func(t *testing.T) { hangs(t, ceph) })
}

const mib = 1 << 20

func suite(t *testing.T, asker rbd.Asker, number, none int64) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p := rbd.In(asker, number)
	wants := func(what string, err error, want syscall.Errno) {
		t.Helper()
		if want == 0 && err != nil || want != 0 && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", what, err, want)
		}
	}
	wants("create", p.Create(ctx, "a", 8*mib), 0)
	wants("create again", p.Create(ctx, "a", 8*mib), syscall.EEXIST)
	wants("create in no pool", rbd.In(asker, none).Create(ctx, "a", 8*mib), syscall.ENOENT)
	wants("grow", p.Grow(ctx, "a", 12*mib), 0)
	wants("shrink", p.Grow(ctx, "a", 4*mib), syscall.EINVAL)
	if got, err := p.Size(ctx, "a"); err != nil || got != 12*mib {
		t.Errorf("size: got %d, %v", got, err)
	}
	_, err := p.Size(ctx, "b")
	wants("size of none", err, syscall.ENOENT)
	if !rbd.IsMissing(err) {
		t.Error("an image that is not there is not missing")
	}
	suiteOfNotes(ctx, t, p)
	if got, err := p.Watchers(ctx, "a"); err != nil || len(got) != 0 {
		t.Errorf("watchers: got %v, %v", got, err)
	}
	if got, err := p.Snapshots(ctx, "a"); err != nil || len(got) != 0 {
		t.Errorf("snapshots: got %v, %v", got, err)
	}
	wants("to the trash", p.MoveToTrash(ctx, "a"), 0)
	wants("to the trash again", p.MoveToTrash(ctx, "a"), syscall.ENOENT)
	trash, err := p.Trash(ctx)
	if err != nil || len(trash) != 1 || trash[0].Name != "a" || trash[0].ID == "" {
		t.Errorf("trash: got %v, %v", trash, err)
	}
	wants("create another", p.Create(ctx, "a", 8*mib), 0)
	for _, name := range []string{"d", "c", "b"} {
		wants("create more", p.Create(ctx, name, mib), 0)
	}
	want := rbd.Contents{Images: 4, Names: []string{"a", "b", "c"}, Trashed: 1, TrashedNames: []string{"a"}}
	if got, err := p.Contents(ctx); err != nil || !cmp.Equal(want, got) {
		t.Errorf("contents: got %+v, %v", got, err)
	}
	wants("remove", p.Remove(ctx, "a"), 0)
	wants("remove again", p.Remove(ctx, "a"), syscall.ENOENT)
}

func suiteOfNotes(ctx context.Context, t *testing.T, p *rbd.Pool) {
	t.Helper()
	long := string(make([]byte, 0, 3000))
	for range 300 {
		long += "0123456789"
	}
	for _, value := range []string{"n1", "n2", long} {
		if err := p.SetNote(ctx, "a", "holdfast.io/node", value); err != nil {
			t.Fatal(err)
		}
		got, err := p.Note(ctx, "a", "holdfast.io/node")
		if diff := cmp.Diff(value, got); diff != "" || err != nil {
			t.Errorf("note: %v\n%s", err, diff)
		}
	}
	for range 2 {
		if err := p.RemoveNote(ctx, "a", "holdfast.io/node"); err != nil {
			t.Fatal(err)
		}
		if got, err := p.Note(ctx, "a", "holdfast.io/node"); err != nil || got != "" {
			t.Errorf("a note that was removed: got %q, %v", got, err)
		}
	}
}

// hangs shows that a call ends at its deadline when an OSD answers nothing, and that later calls
// are answered again.
func hangs(t *testing.T, ceph *smallceph.Cluster) {
	p := rbd.In(ceph.Client(), ceph.Pool("others"))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Create(ctx, "a", mib); err != nil {
		t.Fatal(err)
	}
	if err := ceph.OSD().Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	short, cancelShort := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancelShort()
	begun := time.Now()
	if _, err := p.Size(short, "a"); !errors.Is(err, rados.ErrNoAnswer) {
		t.Errorf("got %v, want ErrNoAnswer", err)
	}
	if d := time.Since(begun); d > 10*time.Second {
		t.Errorf("a call of a moment took %v", d)
	}
	if err := ceph.OSD().Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Size(ctx, "a"); err != nil || got != mib {
		t.Errorf("afterwards: got %d, %v", got, err)
	}
}
