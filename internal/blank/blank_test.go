package blank

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var rewrite = flag.Bool("rewrite", false, "write where the samples are into testdata")

const (
	mib = 1 << 20
	gib = 1 << 30
	tib = 1 << 40
)

// memory is a disk that keeps what is written to it, and is full of one byte elsewhere. It fails at
// a byte, if it is to.
type memory struct {
	size    int64
	fill    byte
	written map[int64]byte
	bad     int64
	// left is how many more writes there are before the power is cut; 0 for no end.
	left int
}

func (m *memory) ReadAt(b []byte, at int64) (int, error) {
	if m.bad > 0 && at <= m.bad && m.bad < at+int64(len(b)) {
		return 0, errors.New("a bad sector")
	}
	for i := range b {
		b[i] = m.fill
	}
	for place, x := range m.written {
		if at <= place && place < at+int64(len(b)) {
			b[place-at] = x
		}
	}
	return len(b), nil
}

var errCut = errors.New("the power was cut")

func (m *memory) WriteAt(b []byte, at int64) (int, error) {
	if m.left--; m.left == 0 {
		return 0, errCut
	}
	for place := range m.written {
		if at <= place && place < at+int64(len(b)) {
			m.written[place] = b[place-at]
		}
	}
	return len(b), nil
}

func (*memory) Name() string { return "memory" }
func (*memory) Sync() error  { return nil }

func find(t interface{ Fatal(...any) }, m *memory) (int64, bool) {
	at, found, err := Find(context.Background(), m, Samples(m.size))
	if err != nil {
		t.Fatal(err)
	}
	return at, found
}

// One byte in any sample of a disk of any size is found, where it is; and a wipe leaves the disk
// blank.
func TestFind_anyByte(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &memory{size: rapid.OneOf(rapid.Int64Range(1, 4*mib), rapid.Int64Range(1, 30*tib)).Draw(t, "size")}
		spans := Samples(m.size)
		s := spans[rapid.IntRange(0, len(spans)-1).Draw(t, "sample")]
		at := rapid.OneOf(rapid.Just(s.From), rapid.Just(s.To-1), rapid.Int64Range(s.From, s.To-1)).Draw(t, "at")
		m.written = map[int64]byte{at: rapid.ByteRange(1, 254).Draw(t, "byte")}
		if got, found := find(t, m); !found || got != at {
			t.Fatalf("of a byte at %d of %d, found is %v at %d", at, m.size, found, got)
		}
		if err := Wipe(context.Background(), m, m.size, min(m.size, block)); err != nil {
			t.Fatal(err)
		}
		if got, found := find(t, m); found {
			t.Fatalf("after a wipe there is something at %d", got)
		}
	})
}

// The samples lie on the disk, in order and apart, and are few.
func TestSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.Int64Range(0, 4*mib), rapid.Int64Range(0, 30*tib)).Draw(t, "size")
		end, total, spans := int64(-1), int64(0), Samples(size)
		for _, s := range spans {
			if s.From <= end || s.From >= s.To || s.To > size || s.From%block != 0 {
				t.Fatalf("sample %+v of %d bytes", s, size)
			}
			end, total = s.To, total+s.To-s.From
		}
		if size > 0 && (spans[0].From != 0 || end != size) || len(spans) > 100 || total > 2*mib {
			t.Fatalf("%d samples of %d bytes, from %d to %d of %d", len(spans), total, spans[0].From, end, size)
		}
	})
}

// TestSamples_stay: a disk that a release has wiped must be blank to the next one. Where this
// fails, samples were moved: have those of before be cleared, too, and leave them blank where they
// are.
func TestSamples_stay(t *testing.T) {
	var got strings.Builder
	for _, size := range []int64{64 * mib, 300*mib + 512, 10 * gib, 20e12} {
		fmt.Fprintf(&got, "%d:", size)
		for _, s := range Samples(size) {
			fmt.Fprintf(&got, " %x-%x", s.From/512, (s.To+511)/512)
		}
		got.WriteByte('\n')
	}
	const golden = "testdata/samples"
	if *rewrite {
		if err := os.WriteFile(golden, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(golden); err != nil || string(want) != got.String() {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(string(want), got.String()))
	}
}

// Where programs keep copies of what they cannot do without, there is a sample.
func TestSamples_wherePeopleLook(t *testing.T) {
	for what, c := range map[string]struct{ size, at int64 }{
		"ext4, blocks of 1 KiB":             {300 * mib, 8*mib + 1024},
		"ext4, blocks of 2 KiB":             {300 * mib, 32 * mib},
		"ext4, blocks of 4 KiB":             {300 * mib, 128 * mib},
		"btrfs":                             {10 * gib, 64 * mib},
		"btrfs, large":                      {tib, 256 * gib},
		"XFS, a quarter, rounded up":        {300*mib + 4*block + 512, 75*mib + block},
		"XFS, large: a tebibyte less one":   {20e12, tib - block},
		"BlueStore at 10 GiB":               {20 * gib, 10 * gib},
		"BlueStore at 100 GiB":              {tib, 100 * gib},
		"BlueStore at 1000 GiB":             {2 * tib, 1000 * gib},
		"LUKS 2: the keys":                  {gib, mib},
		"the partition table at the end":    {gib, gib - 512},
		"ZFS: the labels at the end":        {gib, gib - 100<<10},
		"after the first 64 KiB are zeroed": {gib, 64 << 10},
	} {
		m := &memory{size: c.size, written: map[int64]byte{c.at: 1}}
		if got, found := find(t, m); !found || got != c.at {
			t.Errorf("%s, at %d of %d: %v at %d", what, c.at, c.size, found, got)
		}
	}
}

func TestFind_blank(t *testing.T) {
	for _, fill := range []byte{0, 0xff} {
		if at, found := find(t, &memory{size: 20e12, fill: fill}); found {
			t.Errorf("a disk full of %x holds something at %d", fill, at)
		}
	}
	if _, found := find(t, &memory{size: gib, fill: 'y'}); !found {
		t.Error("a disk full of letters is blank")
	}
	if at, found := find(t, &memory{size: gib, fill: 0xff, written: map[int64]byte{gib / 2: 0}}); !found || at != gib/2 {
		t.Error("ones and zeros are blank")
	}
}

func TestFind_badSector(t *testing.T) {
	m := &memory{size: gib, bad: gib / 2}
	if _, _, err := Find(t.Context(), m, Samples(m.size)); err == nil || !strings.Contains(err.Error(), "a bad sector") {
		t.Errorf("a disk that cannot be read: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Find(ctx, m, Samples(m.size)); !errors.Is(err, context.Canceled) {
		t.Errorf("cut off: %v", err)
	}
}

// Cut off before any write, a wipe leaves what says whose the disk is, and the next one leaves
// nothing.
func TestWipe_cutOff(t *testing.T) {
	const size, sign = 300 * mib, block
	everywhere := func() *memory {
		m := &memory{size: size, written: map[int64]byte{}}
		for _, s := range Samples(size) {
			m.written[s.From], m.written[s.To-1] = 1, 1
		}
		return m
	}
	for left := 1; ; left++ {
		m := everywhere()
		m.left = left
		err := Wipe(t.Context(), m, size, sign)
		if err == nil {
			if left < len(Samples(size)) {
				t.Errorf("it was cut off %d times alone", left)
			}
			return
		}
		if at, found := find(t, m); !errors.Is(err, errCut) || !found || at != 0 {
			t.Fatalf("cut off before write %d (%v), what is at 0 is gone: %v %d", left, err, found, at)
		}
		if err := Wipe(t.Context(), m, size, sign); err != nil {
			t.Fatal(err)
		}
		if at, found := find(t, m); found {
			t.Fatalf("cut off before write %d and done again, there is something at %d", left, at)
		}
	}
}

// Beside the samples and what is named, a wipe touches nothing.
func TestWipe_touchesNoMore(t *testing.T) {
	const size = 8 * mib
	path := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(path, bytes.Repeat([]byte("x"), size), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	more := Span{3*mib + 7, 3*mib + 100}
	if err := Wipe(t.Context(), f, size, block, more); err != nil {
		t.Fatal(err)
	}
	want := bytes.Repeat([]byte("x"), size)
	for _, s := range append(Samples(size), more) {
		clear(want[s.From:s.To])
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(f); err != nil || !bytes.Equal(got, want) {
		t.Errorf("it wrote elsewhere (%v)", err)
	}
	if at, found, err := Look(t.Context(), f); found || err != nil {
		t.Errorf("after a wipe there is something at %d (%v)", at, err)
	}
}

// BenchmarkLook is the time that the look at a sparse file of 20 TB takes: that of a disk comes on
// top.
func BenchmarkLook(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "disk"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(16e12); err != nil { // ext4 has no larger files
		b.Fatal(err)
	}
	for b.Loop() {
		if _, found, err := Look(b.Context(), f); found || err != nil {
			b.Fatal(found, err)
		}
	}
}
