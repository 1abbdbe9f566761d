// Package pages checks the file of a bbolt database: each page that can be reached lies inside the
// file, is what its header says, and has its keys in order.
//
// bbolt itself maps the file into memory and believes it. A page that is damaged, or lies behind the
// end of the file, ends the whole process. Here the file is read as a file, so that every problem is
// an error.
package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"
)

// ErrDamaged is what errors are that say what is wrong with the content of a file. Other errors
// are of reading it.
var ErrDamaged = errors.New("damaged")

// What bbolt writes; see its internal/common.
const (
	headerSize  = 16
	elementSize = 16
	bucketSize  = 16
	metaSize    = 64
	magic       = 0xED0CDAED
	version     = 2
	branchPage  = 0x01
	leafPage    = 0x02
	freePage    = 0x10
	bucketFlag  = 0x01
	noFreelist  = math.MaxUint64
	// manyFree in the header of a page of free pages says that their number follows.
	manyFree = 0xFFFF
)

// file is a database that is being checked.
type file struct {
	from     io.ReaderAt
	pageSize int64
	// high is the first page that was never used; seen are the pages that were reached.
	high  uint64
	seen  map[uint64]bool
	visit func(bucket, key, value []byte) error
}

// meta is what one of the two pages at the head of the file says.
type meta struct {
	pageSize                   uint32
	root, freelist, high, txid uint64
}

// Check reads the whole file. visit gets each key of the buckets at the top, and may be nil.
func Check(path string, visit func(bucket, key, value []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return check(f, info.Size(), visit)
}

func check(from io.ReaderAt, size int64, visit func(bucket, key, value []byte) error) error {
	m, err := newest(from, size)
	if err != nil {
		return err
	}
	f := &file{from: from, pageSize: int64(m.pageSize), high: m.high, seen: map[uint64]bool{}, visit: visit}
	if pages := uint64(size / f.pageSize); m.high > pages { //nolint:gosec // sizes are not negative
		return damaged("the file is cut off: it has %d of %d pages", pages, m.high)
	}
	if err := f.tree(m.root, nil, limits{}); err != nil {
		return err
	}
	return f.free(m.freelist)
}

// problem is an ErrDamaged, in words of its own.
type problem string

func (p problem) Error() string        { return string(p) }
func (p problem) Is(target error) bool { return target == ErrDamaged }

func damaged(format string, args ...any) error { return problem(fmt.Sprintf(format, args...)) }

// newest is the one of the two head pages that counts. One of them may be bad: the last write was
// cut off, and the other one has what was before.
func newest(from io.ReaderAt, size int64) (best meta, err error) {
	for at := int64(0); at <= 1<<16; at = max(1024, 2*at) {
		m, err := metaAt(from, at)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return meta{}, err
		case err != nil || m == nil:
		case at != 0 && at != int64(m.pageSize): // it is of no head page
		case m.txid >= best.txid:
			best = *m
		}
	}
	switch {
	case best.pageSize == 0 && size == 0:
		return best, damaged("the file is empty")
	case best.pageSize == 0:
		return best, damaged("both pages at its head (meta pages) are bad")
	}
	return best, nil
}

// metaAt is nil where there is no good head page.
func metaAt(from io.ReaderAt, at int64) (*meta, error) {
	page := make([]byte, headerSize+metaSize)
	if _, err := from.ReadAt(page, at); err != nil {
		return nil, err
	}
	b, order := page[headerSize:], binary.NativeEndian
	sum := fnv.New64a()
	_, _ = sum.Write(b[:metaSize-8])
	if order.Uint32(b) != magic || order.Uint32(b[4:]) != version || order.Uint64(b[metaSize-8:]) != sum.Sum64() {
		return nil, nil
	}
	m := &meta{
		pageSize: order.Uint32(b[8:]), root: order.Uint64(b[16:]), freelist: order.Uint64(b[32:]),
		high: order.Uint64(b[40:]), txid: order.Uint64(b[48:]),
	}
	if m.pageSize < 1024 || m.pageSize > 1<<16 {
		return nil, nil
	}
	return m, nil
}

// page is one page with those that it overflows into.
type page struct {
	id           uint64
	flags, count uint16
	content      []byte
}

// read reads a page, and notes that it was reached.
func (f *file) read(id uint64) (*page, error) {
	if id < 2 || id >= f.high {
		return nil, damaged("page %d does not exist", id)
	}
	header := make([]byte, headerSize)
	if _, err := f.from.ReadAt(header, int64(id)*f.pageSize); err != nil { //nolint:gosec // below high
		return nil, err
	}
	p, order := &page{id: id}, binary.NativeEndian
	p.flags, p.count = order.Uint16(header[8:]), order.Uint16(header[10:])
	more := uint64(order.Uint32(header[12:]))
	if own := order.Uint64(header); own != id || id+more >= f.high {
		return nil, damaged("page %d has a bad header", id)
	}
	for i := id; i <= id+more; i++ {
		if f.seen[i] {
			return nil, damaged("page %d is used twice", i)
		}
		f.seen[i] = true
	}
	p.content = make([]byte, f.pageSize*int64(more+1))       //nolint:gosec // below high
	_, err := f.from.ReadAt(p.content, int64(id)*f.pageSize) //nolint:gosec // below high
	return p, err
}

// limits are between which the keys of a page have to be: from the least one on, and below the other.
type limits struct{ from, below []byte }

// tree checks the pages of a bucket. bucket is the name of the one at the top, nil for the top itself.
func (f *file) tree(root uint64, bucket []byte, in limits) error {
	p, err := f.read(root)
	if err != nil {
		return err
	}
	switch p.flags {
	case leafPage:
		return f.leaf(p, bucket, in)
	case branchPage:
		return f.branch(p, bucket, in)
	}
	return damaged("page %d is of no kind (%#x)", root, p.flags)
}

func (f *file) branch(p *page, bucket []byte, in limits) error {
	if p.count == 0 {
		return damaged("page %d is empty", p.id)
	}
	keys, children := make([][]byte, p.count), make([]uint64, p.count)
	for i := range keys {
		at := headerSize + i*elementSize
		if at+elementSize > len(p.content) {
			return damaged("page %d has too many keys", p.id)
		}
		e, order := p.content[at:], binary.NativeEndian
		key, err := p.part(at, uint64(order.Uint32(e)), order.Uint32(e[4:]))
		if err != nil {
			return err
		}
		keys[i], children[i] = key, order.Uint64(e[8:])
	}
	if err := p.ordered(keys, in); err != nil {
		return err
	}
	for i, child := range children {
		below := in.below
		if i+1 < len(keys) {
			below = keys[i+1]
		}
		if err := f.tree(child, bucket, limits{keys[i], below}); err != nil {
			return err
		}
	}
	return nil
}

func (f *file) leaf(p *page, bucket []byte, in limits) error {
	keys := make([][]byte, p.count)
	for i := range keys {
		at := headerSize + i*elementSize
		if at+elementSize > len(p.content) {
			return damaged("page %d has too many keys", p.id)
		}
		e, order := p.content[at:], binary.NativeEndian
		flags, pos, size, more := order.Uint32(e), order.Uint32(e[4:]), order.Uint32(e[8:]), order.Uint32(e[12:])
		key, err := p.part(at, uint64(pos), size)
		if err != nil {
			return err
		}
		value, err := p.part(at, uint64(pos)+uint64(size), more)
		if err != nil {
			return err
		}
		keys[i] = key
		if err := f.element(p, flags, bucket, key, value); err != nil {
			return err
		}
	}
	return p.ordered(keys, in)
}

// element checks one key of a leaf.
func (f *file) element(p *page, flags uint32, bucket, key, value []byte) error {
	switch {
	case flags == bucketFlag:
		if bucket == nil {
			bucket = key
		}
		return f.bucket(p, bucket, value)
	case flags != 0:
		return damaged("page %d has a key of no kind", p.id)
	case f.visit == nil || bucket == nil:
		return nil
	}
	return f.visit(bucket, key, value)
}

// bucket checks a bucket, which a small one has in its value.
func (f *file) bucket(p *page, name, value []byte) error {
	if len(value) < bucketSize {
		return damaged("page %d has a bad bucket", p.id)
	}
	order := binary.NativeEndian
	if root := order.Uint64(value); root != 0 {
		return f.tree(root, name, limits{})
	}
	inside := value[bucketSize:]
	if len(inside) < headerSize || order.Uint16(inside[8:]) != leafPage {
		return damaged("page %d has a bad bucket", p.id)
	}
	return f.leaf(&page{id: p.id, count: order.Uint16(inside[10:]), content: inside}, name, limits{})
}

// part is what an element at some place has so far behind that place.
func (p *page) part(at int, pos uint64, size uint32) ([]byte, error) {
	from := uint64(at) + pos //nolint:gosec // not negative
	if from+uint64(size) > uint64(len(p.content)) || pos < elementSize && size > 0 {
		return nil, damaged("page %d has a key outside of it", p.id)
	}
	return p.content[from : from+uint64(size)], nil
}

// ordered checks that keys grow, and keep to the limits.
func (p *page) ordered(keys [][]byte, in limits) error {
	for i, key := range keys {
		bad := i == 0 && in.from != nil && bytes.Compare(key, in.from) < 0 ||
			i > 0 && bytes.Compare(key, keys[i-1]) <= 0 ||
			in.below != nil && bytes.Compare(key, in.below) >= 0
		if bad {
			return damaged("page %d has its keys in no order", p.id)
		}
	}
	return nil
}

// free checks the page with the numbers of free pages, where there is one: none of them is in use.
func (f *file) free(id uint64) error {
	if id == noFreelist {
		return nil
	}
	p, err := f.read(id)
	if err != nil {
		return err
	}
	order, numbers, count := binary.NativeEndian, p.content[headerSize:], uint64(p.count)
	if p.count == manyFree {
		count, numbers = order.Uint64(numbers), numbers[8:]
	}
	if p.flags != freePage || count > uint64(len(numbers)/8) {
		return damaged("page %d, with the free pages, is bad", id)
	}
	for i := range count {
		if free := order.Uint64(numbers[8*i:]); free < 2 || free >= f.high || f.seen[free] {
			return damaged("page %d is in use, and is called free", free)
		}
	}
	return nil
}
