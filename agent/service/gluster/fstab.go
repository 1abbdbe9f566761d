package gluster

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// mountOptions: bricks need no times of access, and inodes may lie anywhere on large disks.
const mountOptions = "noatime,inode64"

// fstab lists the file systems that were made for a daemon. The daemon's command mounts them at each start ('mount -a -T', see
// fstab(5)), also after a boot at which no server can be reached. It is the host's memory, too, of what was made once.
type fstab struct {
	path  string
	lines []fstabLine
}

type fstabLine struct{ uuid, dir string }

func readFstab(path string) (*fstab, error) {
	t := &fstab{path: path}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		uuid, ok := "", false
		if len(f) > 2 {
			uuid, ok = strings.CutPrefix(f[0], "UUID=")
		}
		if !ok {
			return nil, fmt.Errorf("%s was changed outside Holdfast, which did not write the line %q: remove it", path,
				strings.TrimSpace(line))
		}
		t.lines = append(t.lines, fstabLine{uuid: uuid, dir: unescape.Replace(f[1])})
	}
	return t, nil
}

// What separates fields is written in octal (fstab(5)).
var (
	escape   = strings.NewReplacer(`\`, `\134`, " ", `\040`, "\t", `\011`)
	unescape = strings.NewReplacer(`\134`, `\`, `\040`, " ", `\011`, "\t")
)

func (t *fstab) write() error {
	var b strings.Builder
	for _, l := range t.lines {
		fmt.Fprintf(&b, "UUID=%s %s xfs %s 0 0\n", l.uuid, escape.Replace(l.dir), mountOptions)
	}
	return atomicfile.Write(t.path, []byte(b.String()), 0o644)
}

func (t *fstab) has(uuid string) bool {
	return slices.ContainsFunc(t.lines, func(l fstabLine) bool { return l.uuid == uuid })
}

// add notes a file system; one that is noted already is no news.
func (t *fstab) add(l fstabLine) error {
	if slices.Contains(t.lines, l) {
		return nil
	}
	t.lines = append(slices.DeleteFunc(t.lines, func(o fstabLine) bool { return o.uuid == l.uuid || o.dir == l.dir }), l)
	slices.SortFunc(t.lines, func(a, b fstabLine) int { return strings.Compare(a.dir, b.dir) })
	return t.write()
}

func (t *fstab) remove(l fstabLine) error {
	t.lines = slices.DeleteFunc(t.lines, func(o fstabLine) bool { return o == l })
	return t.write()
}
