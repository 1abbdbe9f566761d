// Package blank tells by samples whether there is anything on a disk, and clears the samples of one
// that is given up.
//
// A disk of 20 TB cannot be read to find out whether it is empty. Samples of it can: its two ends,
// places that are spread over it evenly, and those at powers of two, where file systems keep copies
// of what they cannot do without: the superblocks of ext4 (8, 32 and 128 MiB) and btrfs (64 MiB,
// 256 GiB), the headers of XFS's allocation groups (a quarter of the disk, 1 TiB), the labels of
// BlueStore (1, 10, 100 and 1000 GiB).
//
// Where the samples are depends on nothing but the size of the disk, so that a disk whose samples
// one host has cleared is blank to every other one. A release that moves them has to know those of
// the releases before it: disks that were wiped by these would not be blank any more.
package blank

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// The sizes of samples, in bytes. One within the disk begins a block before its place: where a disk
// is divided into a number of parts that it is not a multiple of, what begins them lies a block
// before or after.
const (
	head   = 256 << 10
	tail   = 128 << 10
	block  = 4 << 10
	sample = 16 << 10
	// parts is into how many parts of one size the samples divide the disk.
	parts = 64
)

// Span is a part of a device, from one byte to before another.
type Span struct{ From, To int64 }

// Samples are the parts of a device of a size that are looked at, in order. No two touch each
// other.
func Samples(size int64) []Span {
	spans := []Span{{0, min(head, size)}, {max(0, size-tail) / block * block, size}}
	for _, at := range places(size) {
		from := max(0, at/block*block-block)
		spans = append(spans, Span{from, min(from+sample, size)})
	}
	return joined(spans)
}

// places are those within the device.
func places(size int64) (all []int64) {
	for at := int64(2 * head); at < size; at *= 2 {
		all = append(all, at)
	}
	for _, at := range bluestore.LabelCopies {
		if at < size {
			all = append(all, at)
		}
	}
	for i := range int64(parts) {
		all = append(all, size/parts*i)
	}
	return all
}

// joined sorts spans and makes one of those that touch each other.
func joined(spans []Span) (all []Span) {
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, s := range spans {
		if s.From >= s.To {
			continue
		}
		if n := len(all); n > 0 && s.From <= all[n-1].To {
			all[n-1].To = max(all[n-1].To, s.To)
			continue
		}
		all = append(all, s)
	}
	return all
}

// Within are the samples that lie in a part of the device, or the part of them that does.
func Within(size int64, part Span) []Span { return clipped(Samples(size), part) }

func clipped(spans []Span, part Span) (all []Span) {
	for _, s := range spans {
		if s = (Span{max(s.From, part.From), min(s.To, part.To)}); s.From < s.To {
			all = append(all, s)
		}
	}
	return all
}

// Find looks for something in these parts of a device, and says where it begins, or found is false.
// A disk on which nothing was ever written, or all was discarded, reads as zeros, and flash that
// was erased as ones: it is blank where all of it reads as one of them.
func Find(ctx context.Context, r io.ReaderAt, spans []Span) (at int64, found bool, err error) {
	buffer := make([]byte, head)
	fill := -1
	for _, s := range spans {
		for from := s.From; from < s.To; from += int64(len(buffer)) {
			if err := ctx.Err(); err != nil {
				return 0, false, err
			}
			b := buffer[:min(int64(len(buffer)), s.To-from)]
			if n, err := r.ReadAt(b, from); err != nil && (n < len(b) || !errors.Is(err, io.EOF)) {
				return 0, false, fmt.Errorf("at byte %d: %w", from, err)
			}
			if fill < 0 {
				fill = fillOf(b[0])
			}
			if i := otherThan(b, byte(fill)); i >= 0 {
				return from + int64(i), true, nil
			}
		}
	}
	return 0, false, nil
}

// fillOf is what a blank disk that begins with a byte is full of.
func fillOf(b byte) int {
	const erased = 0xff
	if b == erased {
		return erased
	}
	return 0
}

// otherThan is where in b the first other byte is, or -1.
func otherThan(b []byte, fill byte) int {
	if len(b) == 0 || b[0] == fill && bytes.Equal(b[1:], b[:len(b)-1]) {
		return -1
	}
	return slices.IndexFunc(b, func(x byte) bool { return x != fill })
}

// Look is Find on a device or file, in all its samples.
func Look(ctx context.Context, f *os.File) (at int64, found bool, err error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, false, err
	}
	return LookIn(ctx, f, Within(size, Span{0, size}))
}

// LookIn is Find on a device or file. The samples lie far from each other, and what is around them
// need not be read.
func LookIn(ctx context.Context, f *os.File, spans []Span) (at int64, found bool, err error) {
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_RANDOM) // it makes a look quicker, and no more
	return Find(ctx, f, spans)
}

// Device is what is cleared: an *os.File, opened for writing.
type Device interface {
	io.WriterAt
	Name() string
	Sync() error
}

// Clear writes zeros over parts of a device, the last ones first, and has them on stable storage
// when it returns nil.
func Clear(ctx context.Context, d Device, spans []Span) error {
	return atomicfile.Guarded(d.Name(), func() error {
		for _, s := range slices.Backward(spans) {
			if err := zero(ctx, d, s); err != nil {
				return fmt.Errorf("while clearing %s: %w", d.Name(), err)
			}
		}
		return d.Sync()
	})
}

func zero(ctx context.Context, d Device, s Span) error {
	const most = 1 << 20
	zeros := make([]byte, min(most, s.To-s.From))
	for at := s.From; at < s.To; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := d.WriteAt(zeros[:min(int64(len(zeros)), s.To-at)], at)
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// Wipe clears a device of a size: its samples, and what more is named. The first bytes, in which it
// says whose it is, go last: until then a wipe that was cut off is done again, and when nobody
// knows any more whose the disk was, nothing else is left on it.
func Wipe(ctx context.Context, d Device, size, sign int64, more ...Span) error {
	all := With(size, more...)
	if err := Clear(ctx, d, clipped(all, Span{sign, size})); err != nil {
		return err
	}
	return Clear(ctx, d, clipped(all, Span{0, min(sign, size)}))
}

// With are the samples and more parts of a device of a size, in order, those that touch each other
// as one.
func With(size int64, more ...Span) []Span {
	return clipped(joined(slices.Concat(Samples(size), more)), Span{0, size})
}

// Moved are the same spans, so many bytes further on: those of a part of a disk, on the disk.
func Moved(spans []Span, by int64) []Span {
	moved := slices.Clone(spans)
	for i := range moved {
		moved[i].From += by
		moved[i].To += by
	}
	return moved
}
