package inventory

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// use is who uses the devices, by kernel name.
type use struct {
	mounts  map[string][]string // mount points
	swap    map[string]bool
	root    map[string]bool   // whole devices that the root file system lies on
	backing map[string]string // device below a loop device -> the loop device
	byName  map[string]*block
}

func readUse(root, mounts string, blocks []*block) (use, error) {
	u := use{
		mounts: map[string][]string{}, swap: map[string]bool{}, root: map[string]bool{}, backing: map[string]string{},
		byName: map[string]*block{},
	}
	byNumber := map[string]*block{}
	for _, b := range blocks {
		u.byName[b.name], byNumber[b.number] = b, b
	}
	for _, b := range blocks {
		if b.backing != "" {
			if below := u.named(b.backing); below != nil {
				u.backing[below.name] = b.name
			}
		}
	}
	if err := u.readMounts(filepath.Join(root, cmp.Or(mounts, "/proc/self/mountinfo")), byNumber); err != nil {
		return use{}, err
	}
	return u, u.readSwaps(filepath.Join(root, "/proc/swaps"))
}

// named finds the block for a path below /dev, also one that is a link, such as /dev/mapper/vg0-root.
func (u use) named(path string) *block {
	if !strings.HasPrefix(path, "/dev/") {
		return nil
	}
	if b := u.byName[strings.ReplaceAll(strings.TrimPrefix(path, "/dev/"), "/", "!")]; b != nil {
		return b
	}
	for _, b := range u.byName {
		if b.dmName != "" && path == "/dev/mapper/"+b.dmName {
			return b
		}
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return u.named(real)
	}
	return nil
}

// readMounts reads the mounts of our own namespace. Mounts in other namespaces cannot be seen; the exclusive open finds
// those. Btrfs and some others mount under a number of their own, so the source is looked at as well.
func (u use) readMounts(file string, byNumber map[string]*block) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("while reading the mounts: %w", err)
	}
	defer f.Close()
	infos, err := mountinfo.GetMountsFromReader(f, nil)
	if err != nil {
		return fmt.Errorf("while reading the mounts: %w", err)
	}
	for _, m := range infos {
		b := byNumber[fmt.Sprintf("%d:%d", m.Major, m.Minor)]
		if b == nil {
			b = u.named(m.Source)
		}
		if b == nil {
			continue
		}
		u.mounts[b.name] = append(u.mounts[b.name], m.Mountpoint)
		if m.Mountpoint == "/" {
			u.markRoot(b)
		}
	}
	for _, points := range u.mounts {
		sort.Strings(points)
	}
	return nil
}

// markRoot marks every whole device below b.
func (u use) markRoot(b *block) {
	disk := b.disk()
	if u.root[disk.name] {
		return
	}
	u.root[disk.name] = true
	for _, s := range disk.slaves {
		if below := u.byName[s]; below != nil {
			u.markRoot(below)
		}
	}
}

func (u use) readSwaps(file string) error {
	f, err := os.Open(file)
	if os.IsNotExist(err) { // a kernel without swap
		return nil
	}
	if err != nil {
		return fmt.Errorf("while reading the swaps: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 || fields[1] != "partition" {
			continue
		}
		if b := u.named(fields[0]); b != nil {
			u.swap[b.name] = true
		}
	}
	return nil
}
