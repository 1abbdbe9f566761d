package inventory

import (
	"crypto/sha256"
	"fmt"
	"sort"
	"strings"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// maxID is the bound of Device.id.
const maxID = 256

// identities maps kernel names to IDs, each of which occurs once.
type identities struct {
	ids map[string]string
	// shared says of a device whose identity others have too who they are.
	shared map[string]string
}

// identify gives every kept block an identity. Several devices with one identity are paths to one disk or clones of each
// other, and nobody can tell which of them a claim means: none of them gets it. All blocks are compared, also those that
// are not kept, as a clone is a clone wherever it is.
func identify(blocks, kept []*block, found map[string]findings) identities {
	byID := map[string][]string{}
	own := map[string]string{}
	for _, b := range blocks {
		if b.size == 0 || b.leftOut() {
			continue
		}
		id := b.hardwareID()
		if b.parent != nil {
			id = b.partitionID(found[b.name])
		}
		own[b.name] = id
		byID[id] = append(byID[id], b.name)
	}
	out := identities{ids: map[string]string{}, shared: map[string]string{}}
	for _, b := range kept {
		id := own[b.name]
		out.ids[b.name] = id
		if same := byID[id]; len(same) > 1 {
			out.ids[b.name] = unstable(b.name)
			out.shared[b.name] = fmt.Sprintf("shares its identity %s with %s: they are paths to one disk, or one is a copy of the other",
				id, others(same, b.name))
		}
	}
	return out
}

func others(names []string, but string) string {
	var out []string
	for _, n := range names {
		if n != but {
			out = append(out, "/dev/"+n)
		}
	}
	sort.Strings(out)
	return strings.Join(out, ", ")
}

// hardwareID is the identity of a whole device.
func (b *block) hardwareID() string {
	switch {
	case b.kind() == api.DeviceLoop:
		// A loop device on a block device is as unstable as the name of that device.
		if b.backing == "" || b.backingDeleted() || strings.HasPrefix(b.backing, "/dev/") {
			return unstable(b.name)
		}
		return bounded("file-" + b.backing)
	case b.dmUUID != "":
		return bounded("dm-" + b.dmUUID)
	case b.mdUUID != "":
		return bounded("md-" + strings.ReplaceAll(b.mdUUID, ":", ""))
	case b.kind() != api.DeviceDisk:
		return unstable(b.name)
	case b.wwn != "":
		return bounded("wwn-" + b.wwn)
	case word(b.serial) != "":
		return bounded("serial-" + first(word(b.model), "disk") + "-" + word(b.serial))
	}
	return unstable(b.name)
}

// partitionID is the identity of a partition. In a DOS table it is made of the disk's signature, which is zero where
// nobody has set it.
func (b *block) partitionID(f findings) string {
	uuid := strings.ToLower(first(f.values["PART_ENTRY_UUID"], b.udev.env["ID_PART_ENTRY_UUID"]))
	if uuid == "" || strings.Trim(uuid, "0-") == "" || strings.HasPrefix(uuid, "00000000-") && len(uuid) == len("00000000-01") {
		return unstable(b.name)
	}
	return bounded("partuuid-" + uuid)
}

func (b *block) backingDeleted() bool { return strings.HasSuffix(b.backing, " (deleted)") }

func unstable(name string) string { return "unstable-" + name }

// bounded keeps an ID within its bound, and free of what a terminal acts on: of one that is too long, the end is replaced by a
// hash of the whole.
func bounded(id string) string {
	id = strings.Join(strings.FieldsFunc(words.Visible(id), func(r rune) bool { return r == '\n' || r == '\t' }), "_")
	if len(id) <= maxID {
		return id
	}
	sum := fmt.Sprintf("-sha256-%x", sha256.Sum256([]byte(id)))
	return strings.ToValidUTF8(id[:maxID-len(sum)], "") + sum
}

// wwn strips the prefixes that sysfs, udev and lsblk put before a world wide name. A "t10." designator is a vendor's own
// text and no world wide name; a name of zeros is none.
func wwn(s string) string {
	s = strings.ToLower(strings.TrimSpace(s))
	if strings.HasPrefix(s, "t10.") {
		return ""
	}
	for _, prefix := range []string{"naa.", "eui.", "uuid.", "nvme.", "0x"} {
		s = strings.TrimPrefix(s, prefix)
	}
	if strings.Trim(s, "0-") == "" {
		return ""
	}
	return word(s)
}

// word makes text fit for an identity: runs of blanks and of what is not printable ASCII become one underscore.
func word(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }), "_")
}
