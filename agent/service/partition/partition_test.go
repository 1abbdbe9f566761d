package partition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// These tests divide a loop device of their own, and need root.

const (
	tableA = "11111111-2222-3333-4444-555555555555"
	tableB = "22222222-2222-3333-4444-555555555555"
	dbType = "30cd0809-c2b2-499c-8879-2d6b78529876"
	mib    = 1 << 20
)

func file(t *testing.T, size int64) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "holdfast-partition-test.img")
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		t.Fatal(err)
	}
	return name
}

// attach attaches a file to a loop device; the returned function detaches it.
func attach(t *testing.T, name string) (string, func()) {
	t.Helper()
	out, err := exec.Command("losetup", "-P", "-f", "--show", name).CombinedOutput()
	if err != nil {
		t.Fatalf("losetup (these tests need root): %v: %s", err, out)
	}
	path := strings.TrimSpace(string(out))
	detach := sync.OnceFunc(func() {
		if out, err := exec.Command("losetup", "-d", path).CombinedOutput(); err != nil {
			t.Errorf("losetup -d: %v: %s", err, out)
		}
	})
	t.Cleanup(detach)
	return path, detach
}

func spec(n, size int64) *Spec {
	return &Spec{Table: tableA, Type: dbType, UUID: fmt.Sprintf("00000000-0000-4000-8000-%012d", n), Name: "ceph block.db", Bytes: size * mib}
}

func uuids(t *testing.T, path string) string {
	t.Helper()
	x, err := read(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if x == nil {
		return "none"
	}
	var all []string
	for _, e := range x.Partitions {
		if out, err := exec.Command("blkid", "-p", "-o", "value", "-s", "PART_ENTRY_UUID", e.Node).CombinedOutput(); err != nil ||
			!strings.EqualFold(strings.TrimSpace(string(out)), e.UUID) {
			t.Errorf("the kernel shows %s otherwise: %v: %s", e.Node, err, out)
		}
		all = append(all, strings.TrimLeft(e.UUID[24:], "0"))
	}
	return strings.Join(all, " ")
}

// anew lets a table be made, and nobody refuses it.
func anew(do func() error) error { return do() }

func nobody(func() error) error { return errors.New("nobody may make a table here") }

// The life of a disk: divided, found again under another name, refused where it is full, freed.
func TestEnsure_life(t *testing.T) {
	name := file(t, 100*mib)
	path, detach := attach(t, name)
	for range 2 {
		for n := range int64(3) {
			if err := Ensure(t.Context(), path, spec(n+1, 30), anew); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := uuids(t, path); got != "1 2 3" {
		t.Errorf("partitions %s", got)
	}
	if err := Ensure(t.Context(), path, spec(4, 30), nobody); !errors.Is(err, ErrNoRoom) {
		t.Errorf("a fourth: %v", err)
	}
	detach()
	other, _ := attach(t, name)
	for n := range int64(3) {
		if found, err := Show(t.Context(), other, spec(n+1, 30)); !found || err != nil {
			t.Errorf("after the disk was renamed: %v %v", found, err)
		}
	}
	if found, err := Show(t.Context(), other, spec(9, 30)); found || err != nil {
		t.Errorf("one that is not there: %v %v", found, err)
	}
	refused := errors.New("refused")
	if err := Remove(t.Context(), other, tableA, spec(2, 30).UUID, func(string) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("removal that is refused: %v", err)
	}
	remove := func(n int64) {
		t.Helper()
		for range 2 {
			if err := Remove(t.Context(), other, tableA, spec(n, 30).UUID, func(string) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove(2)
	if err := Ensure(t.Context(), other, spec(5, 30), nobody); err != nil {
		t.Errorf("the gap is not used again: %v", err)
	}
	if got := uuids(t, other); got != "1 5 3" && got != "1 3 5" {
		t.Errorf("partitions %s", got)
	}
	for _, n := range []int64{1, 3, 5} {
		remove(n)
	}
	if out, err := exec.Command("blkid", "-p", other).CombinedOutput(); err == nil || len(out) > 0 {
		t.Errorf("the disk is not empty again: %s", out)
	}
}

// A partition that is in use stays in use while others come and go.
func TestEnsure_besideOneInUse(t *testing.T) {
	path, _ := attach(t, file(t, 100*mib))
	if err := Ensure(t.Context(), path, spec(1, 30), anew); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path+"p1", os.O_RDWR|os.O_EXCL, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := []byte("data of somebody")
	if _, err := f.WriteAt(text, 0); err != nil {
		t.Fatal(err)
	}
	if err := Ensure(t.Context(), path, spec(2, 30), nobody); err != nil {
		t.Fatal(err)
	}
	if err := Remove(t.Context(), path, tableA, spec(2, 30).UUID, func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, len(text))
	if _, err := f.ReadAt(got, 0); err != nil || !bytes.Equal(got, text) {
		t.Errorf("%q, %v", got, err)
	}
}

// A disk that does not pass the gate is not divided.
func TestEnsure_refused(t *testing.T) {
	path, _ := attach(t, file(t, 100*mib))
	refused := errors.New("refused")
	if err := Ensure(t.Context(), path, spec(1, 30), func(func() error) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("%v", err)
	}
	if got := uuids(t, path); got != "none" {
		t.Errorf("partitions %s", got)
	}
}

func TestEnsure_refusesWhatIsNotOurs(t *testing.T) {
	for name, c := range map[string]struct {
		spoil []string
		want  string
	}{
		"another table": {[]string{"sh", "-c", `echo 'label: gpt' | sfdisk -q "$0"`}, "not made for this"},
		"a DOS table":   {[]string{"sh", "-c", `echo 'label: dos' | sfdisk -q "$0"`}, "not made for this"},
		"a file system": {[]string{"mkfs.ext4", "-q", "-F"}, "nobody may make a table"},
	} {
		path, _ := attach(t, file(t, 100*mib))
		if out, err := exec.Command(c.spoil[0], append(c.spoil[1:], path)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := Ensure(t.Context(), path, spec(1, 30), nobody); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := Remove(t.Context(), path, tableB, spec(1, 30).UUID, func(string) error { return errors.New("cleared") }); err != nil {
			t.Errorf("%s: removal: %v", name, err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the disk was written to (%v)", name, err)
		}
	}
}

// Several at once, each cut off at some moment and done again, come to one table with all of them.
func TestEnsure_together(t *testing.T) {
	path, _ := attach(t, file(t, 200*mib))
	var wg sync.WaitGroup
	for n := range int64(4) {
		wg.Go(func() {
			for try := 0; ; try++ {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(5+int(n)*7+40*try)*time.Millisecond)
				err := Ensure(ctx, path, spec(n+1, 30), anew)
				cancel()
				if err == nil {
					return
				}
				if try > 100 {
					t.Errorf("partition %d: %v", n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := len(strings.Fields(uuids(t, path))); got != 4 {
		t.Errorf("%d partitions", got)
	}
}

// Wherever partitions lie, the next one lies in none of them and on the disk, and is found a place as long as there is a gap.
func TestPlace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		const sector = 512
		disk := rapid.Int64Range(0, 200*mib).Draw(r, "disk")
		x := &table{}
		for range rapid.IntRange(0, 6).Draw(r, "steps") {
			if len(x.Partitions) > 0 && rapid.Bool().Draw(r, "remove") {
				i := rapid.IntRange(0, len(x.Partitions)-1).Draw(r, "which")
				x.Partitions = append(x.Partitions[:i:i], x.Partitions[i+1:]...)
				continue
			}
			size := rapid.Int64Range(1, 80).Draw(r, "size") * mib
			start, ok := place(x, disk, size, sector)
			if !ok {
				if len(x.Partitions) == 0 && size <= disk/mib*mib-2*mib {
					r.Fatalf("an empty disk of %d has no room for %d", disk, size)
				}
				continue
			}
			if start < mib || start%mib != 0 || start+size > disk-mib {
				r.Fatalf("%d bytes at %d of a disk of %d", size, start, disk)
			}
			for _, p := range x.Partitions {
				if start < (p.Start+p.Size)*sector && p.Start*sector < start+size {
					r.Fatalf("%d bytes at %d lie in %+v", size, start, p)
				}
			}
			x.Partitions = append(x.Partitions, entry{Start: start / sector, Size: size / sector})
		}
	})
}
