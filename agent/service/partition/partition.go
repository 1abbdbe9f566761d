// Package partition divides disks into partitions, in a table (GPT) of Holdfast's own making that says whose it is. It has sfdisk write
// the table, and tells the kernel itself of each partition, because a kernel need not know the table's format and reads it anew only while
// no partition of the disk is in use.
package partition

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-storage/holdfast/agent/service/tool"
	"github.com/holdfast-storage/holdfast/internal/blank"
)

const (
	// grain is what partitions begin at, in bytes, and what is left free at both ends of the disk.
	grain = 1 << 20
	// Beginnings and ends of partitions are emptied before these exist, with their samples, so that
	// nothing is found there that an earlier table had there.
	emptiedStart = 10 << 20
	emptiedEnd   = 1 << 20
	// timeout bounds one run of sfdisk or partx.
	timeout = time.Minute
	// unreadable is what sfdisk says of a disk without a table.
	unreadable = "does not contain a recognized partition table"
)

// Spec is a partition that is wanted.
type Spec struct {
	// Table is the UUID of the disk's table, Type that of what the partition holds, and UUID its own.
	Table, Type, UUID string
	// Name is for people.
	Name string
	// Bytes is its size.
	Bytes int64
}

// ErrNoRoom is returned where a disk has no gap for a partition.
var ErrNoRoom = errors.New("there is no room for it")

// table is what sfdisk says of a disk.
type table struct {
	Label      string
	ID         string
	SectorSize int64
	Partitions []entry
}

// entry is one partition; its place is in sectors.
type entry struct {
	Node        string
	Start, Size int64
	UUID        string
}

// number is the last number of the partition's name.
func (e *entry) number() int {
	n, _ := strconv.Atoi(e.Node[len(strings.TrimRight(e.Node, "0123456789")):])
	return n
}

// Ensure makes a partition on the disk at path, unless it is there, and has the kernel show it.
// Where there is no table, fresh is to have one made, or to refuse it: it is called when others are
// kept from the disk. A disk with any other table is refused, and nothing is touched.
func Ensure(ctx context.Context, path string, s *Spec, fresh func(do func() error) error) error {
	if shown, err := Show(ctx, path, s); shown || err != nil {
		return err
	}
	d, done, err := change(ctx, path)
	if err != nil {
		return err
	}
	defer done()
	t, err := read(ctx, path)
	switch {
	case err != nil:
		return err
	case t != nil && !t.is(s.Table):
		return fmt.Errorf("disk %s has a partition table (%s) that was not made for this: it was not touched. Wipe it if its data is not needed", path, t.ID)
	}
	made := func() (err error) {
		t, err = add(ctx, d, t, s)
		return err
	}
	switch {
	case t == nil:
		err = fresh(made)
	case t.find(s.UUID) == nil:
		err = made()
	}
	if err != nil {
		return fmt.Errorf("while making a partition of %d MiB on disk %s: %w", s.Bytes/grain, path, err)
	}
	return show(ctx, path, t, t.find(s.UUID))
}

// Show has the kernel show a partition, and says whether it is there.
func Show(ctx context.Context, path string, s *Spec) (bool, error) {
	done, err := Use(ctx, path)
	if err != nil {
		return false, err
	}
	defer done()
	d, err := open(ctx, path, os.O_RDONLY, unix.LOCK_SH)
	if err != nil {
		return false, err
	}
	defer d.Close()
	t, err := read(ctx, path)
	if err != nil || t == nil || !t.is(s.Table) || t.find(s.UUID) == nil {
		return false, err
	}
	return true, show(ctx, path, t, t.find(s.UUID))
}

// add writes the partition into the table, which it makes where there is none.
func add(ctx context.Context, d *os.File, t *table, s *Spec) (*table, error) {
	size, err := d.Seek(0, 2)
	if err != nil {
		return nil, err
	}
	sector := int64(512)
	if n, err := unix.IoctlGetInt(int(d.Fd()), unix.BLKSSZGET); err == nil {
		sector = int64(n)
	}
	start, ok := place(t, size, s.Bytes, sector)
	if !ok {
		return nil, ErrNoRoom
	}
	emptied := blank.With(s.Bytes, blank.Span{To: emptiedStart}, blank.Span{From: s.Bytes - emptiedEnd, To: s.Bytes})
	if err := blank.Clear(ctx, d, blank.Moved(emptied, start)); err != nil {
		return nil, err
	}
	line := fmt.Sprintf("start=%d, size=%d, type=%s, uuid=%s, name=%q\n", start/sector, s.Bytes/sector, s.Type, s.UUID, s.Name)
	args := []string{"--append"}
	if t == nil {
		line, args = fmt.Sprintf("label: gpt\nlabel-id: %s\n", s.Table)+line, nil
	}
	if err := sfdisk(ctx, d, line, append(args, "--wipe", "never", "--wipe-partitions", "never")...); err != nil {
		return nil, err
	}
	if t, err = read(ctx, d.Name()); err == nil && (t == nil || t.find(s.UUID) == nil) {
		err = errors.New("it is not in the table that was written")
	}
	return t, err
}

// place finds the first gap for a partition, in bytes.
func place(t *table, disk, size, sector int64) (start int64, ok bool) {
	var parts []entry
	if t != nil {
		parts = slices.SortedFunc(slices.Values(t.Partitions), func(a, b entry) int { return int(min(1, max(-1, a.Start-b.Start))) })
	}
	start = grain
	for _, p := range parts {
		if p.Start*sector >= start+size {
			break
		}
		start = max(start, ((p.Start+p.Size)*sector+grain-1)/grain*grain)
	}
	return start, start+size <= disk/grain*grain-grain
}

// Remove takes a partition out of the table, and the table off the disk with the last of them. clear is called with the partition's path before,
// and may refuse. It returns nil where there is no such partition, and the disk is left alone where the table is not the one named.
func Remove(ctx context.Context, path, tableID, uuid string, clear func(part string) error) error {
	d, done, err := change(ctx, path)
	if err != nil {
		return err
	}
	defer done()
	t, err := read(ctx, path)
	if err != nil || t == nil || !t.is(tableID) {
		return err
	}
	if e := t.find(uuid); e != nil {
		if err := show(ctx, path, t, e); err != nil {
			return err
		}
		if err := clear(e.Node); err != nil {
			return err
		}
		// The kernel forgets it first: one that is cut off here finds it in the table again.
		if err := forget(ctx, path, e.number()); err != nil {
			return err
		}
		if err := sfdisk(ctx, d, "", "--delete", strconv.Itoa(e.number())); err != nil {
			return err
		}
		t.Partitions = slices.DeleteFunc(t.Partitions, func(x entry) bool { return x.UUID == e.UUID })
	}
	if len(t.Partitions) > 0 {
		return nil
	}
	size, err := d.Seek(0, 2)
	if err != nil {
		return err
	}
	// The table at the start goes last: it says until then whose disk it is.
	return blank.Wipe(ctx, d, size, grain, blank.Span{From: size/grain*grain - grain, To: size})
}

func (t *table) is(id string) bool { return t.Label == "gpt" && strings.EqualFold(t.ID, id) }

func (t *table) find(uuid string) *entry {
	i := slices.IndexFunc(t.Partitions, func(e entry) bool { return strings.EqualFold(e.UUID, uuid) })
	if i < 0 {
		return nil
	}
	return &t.Partitions[i]
}

// read reads a disk's table; nil where there is none.
func read(ctx context.Context, path string) (*table, error) {
	out, err := run(ctx, "", "sfdisk", "--json", path)
	if err != nil && strings.Contains(err.Error(), unreadable) {
		return nil, nil //nolint:nilnil // a disk without a table is no error
	}
	var all struct{ PartitionTable *table }
	if err == nil {
		err = json.Unmarshal(out, &all)
	}
	if err == nil && all.PartitionTable == nil {
		err = errors.New("sfdisk reports none")
	}
	if err != nil {
		return nil, fmt.Errorf("while reading the partition table of disk %s: %w", path, err)
	}
	if all.PartitionTable.SectorSize == 0 {
		all.PartitionTable.SectorSize = 512
	}
	return all.PartitionTable, nil
}

// show has the kernel know a partition, unless it does. One of this number that lies elsewhere, or was one of another table, is in the way only
// until it is taken away, which fails while it is in use.
func show(ctx context.Context, path string, t *table, e *entry) error {
	shown := filepath.Join("/sys/class/block", filepath.Base(path), filepath.Base(e.Node))
	const unit = 512 // of sysfs, whatever the sectors of the disk
	start, size := attr(shown, "start"), attr(shown, "size")
	if start == e.Start*t.SectorSize/unit && size == e.Size*t.SectorSize/unit {
		return nil
	}
	if start >= 0 {
		if err := partx(ctx, path, "--delete", e.number()); err != nil {
			return err
		}
	}
	return partx(ctx, path, "--add", e.number())
}

// attr reads a number in sysfs; -1 where there is none.
func attr(dir, name string) int64 {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// forget has the kernel forget a partition, which fails while anybody has it open: a look at what is on it is over in a moment.
func forget(ctx context.Context, path string, number int) (err error) {
	for pause := 20 * time.Millisecond; pause < time.Second; pause *= 2 {
		if err = partx(ctx, path, "--delete", number); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
	return err
}

func partx(ctx context.Context, path, what string, number int) error {
	_, err := run(ctx, "", "partx", what, "--nr", strconv.Itoa(number), path)
	return err
}

// sfdisk changes the table. It is not to lock the disk, which is locked, nor to tell the kernel, which it could only do as a whole. It inherits the lock:
// where the agent dies, the next one does not begin before it has ended.
func sfdisk(ctx context.Context, d *os.File, script string, args ...string) error {
	all := append([]string{"--quiet", "--no-reread", "--no-tell-kernel", "--lock=no"}, swap(args, d.Name())...)
	_, err := runWith(ctx, []*os.File{d}, script, "sfdisk", all...)
	return err
}

// swap puts the disk where sfdisk expects it: before the number of a partition, else at the end.
func swap(args []string, path string) []string {
	if args[0] == "--delete" {
		return []string{args[0], path, args[1]}
	}
	return append(args, path)
}

func run(ctx context.Context, input, program string, args ...string) ([]byte, error) {
	return runWith(ctx, nil, input, program, args...)
}

// runWith is run of a program that inherits files, and with them the locks that they hold.
func runWith(ctx context.Context, files []*os.File, input, program string, args ...string) ([]byte, error) {
	if err := tool.Require(program, packages[program]); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdin, cmd.WaitDelay, cmd.ExtraFiles = strings.NewReader(input), time.Second, files
	cmd.Env = []string{"LC_ALL=C", "PATH=" + os.Getenv("PATH")}
	out, err := tool.Ask(cmd)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("while running %s: %w", program, err)
	}
	return out, nil
}

// packages are the Debian packages of the programs.
var packages = map[string]string{"sfdisk": "fdisk", "partx": "util-linux"}
