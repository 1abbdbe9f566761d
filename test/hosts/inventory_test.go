package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/agent/inventory"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// The inventory on real devices. What it makes of recorded machines is tested in its own package.

// scanner sees the disks of one host, as an agent in it does.
func scanner(t *testing.T, h *Host) *inventory.Scanner {
	t.Helper()
	only, err := inventory.Filter(h.DeviceFilter())
	if err != nil {
		t.Fatal(err)
	}
	return &inventory.Scanner{Only: only}
}

func scan(t *testing.T, s *inventory.Scanner) map[string]api.Device {
	t.Helper()
	devices, err := s.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]api.Device{}
	for _, d := range devices {
		out[d.ID] = d
	}
	return out
}

func TestInventory_emptyDisksOfTheOwnHostAlone(t *testing.T) {
	lab := New(t, Options{Count: 2, Disks: 2})
	for _, h := range lab.Hosts() {
		got := scan(t, scanner(t, h))
		if len(got) != 2 {
			t.Errorf("host %s has %d devices: %+v", h.Name, len(got), got)
		}
		for i := range 2 {
			d := got[h.Disk(i).ID()]
			if d.Availability != api.DeviceAvailable || d.Path != h.Disk(i).Path() || d.Kind != api.DeviceLoop || d.Size.Value() != 10<<30 {
				t.Errorf("host %s, disk %d: %+v", h.Name, i, d)
			}
		}
	}
}

func TestInventory_aRenamedDiskKeepsItsIdentity(t *testing.T) {
	h := New(t, Options{Disks: 1}).Host(1)
	d, s := h.Disk(0), scanner(t, h)
	before := scan(t, s)[d.ID()]
	d.Detach(t)
	if got := scan(t, s); len(got) != 0 {
		t.Errorf("a pulled disk is still there: %+v", got)
	}
	d.Attach(t)
	after := scan(t, s)[d.ID()]
	if after.ID != before.ID || after.Path == before.Path || after.Availability != api.DeviceAvailable {
		t.Errorf("before: %+v\nafter: %+v", before, after)
	}
	d.Replace(t)
	if got := scan(t, s); len(got) != 1 || got[before.ID].ID != "" {
		t.Errorf("a replaced disk has the identity of the one before: %+v", got)
	}
}

// TestInventory_whateverIsOnADisk puts each thing on a disk in the host, and wants the disk unavailable with the reason,
// from the outside of the host and without asking for a new scan. Removed again, the disk is available.
func TestInventory_whateverIsOnADisk(t *testing.T) {
	const discard = "blkdiscard --force $D"
	tests := []struct {
		name, put, remove string
		want              string // a regular expression for one of the reasons
	}{
		{"file system", "mkfs.ext4 -q -L 'my data' $D", discard, `^has a file system: ext4 "my data" \(uuid [0-9a-f-]{36}\)$`},
		// The mount cannot be seen from here.
		{
			"mounted elsewhere without a signature", "mkfs.ext4 -q $D && mkdir -p /var/m && mount $D /var/m && wipefs -qaf $D", "umount /var/m; " + discard,
			`^is in use: the kernel refuses to open it exclusively`,
		},
		{"swap", "mkswap -q $D", discard, `^holds swap space: swap \(uuid .*\)$`},
		{"swap in use", "mkswap -q $D && swapon $D", "swapoff $D && " + discard, `^in use as swap space$`},
		{"partition table", "printf 'label: gpt\\n' | sfdisk -q $D", discard, `^has a partition table \(gpt\)$`},
		{"partitions", "printf 'label: gpt\\n,100M\\n' | sfdisk -q $D && partx -u $D", "partx -d $D && " + discard, `^has partitions: loop[0-9]+p1$`},
		{"OSD", osd, discard, `^holds OSD 7 of Ceph cluster 11111111-2222-3333-4444-555555555555$`},
		{"rows of a text", `yes "row 4711" | dd of=$D bs=1M count=300 iflag=fullblock conv=fsync status=none`, discard, `^holds unknown data at byte 0, without a signature`},
		{"ext4 without its beginning", "mkfs.ext4 -q $D && dd if=/dev/zero of=$D bs=64K count=1 conv=notrunc,fsync status=none", discard, unknown},
		{"XFS without its beginning", "mkfs.xfs -q $D && dd if=/dev/zero of=$D bs=64K count=1 conv=notrunc,fsync status=none", discard, unknown},
		{
			"mounted elsewhere, full, without a signature",
			"mkfs.ext4 -q $D && mkdir -p /var/m && mount $D /var/m && yes row | head -c 500M > /var/m/rows && sync && wipefs -qaf $D", "umount /var/m; " + discard,
			`^is in use: the kernel refuses to open it exclusively`,
		},
		{"random bytes", "dd if=/dev/urandom of=$D bs=1M count=8 conv=fsync status=none", discard, unknown},
		{"rows in the midst", `yes "row 4711" | dd of=$D bs=1M seek=200 count=100 iflag=fullblock conv=notrunc,fsync status=none`, discard, unknown},
		{"a file system whose signatures were removed", "mkfs.ext4 -q $D && wipefs -qa $D", discard, unknown},
		{
			"a copy of a label", "mkdir -p /run/copy && printf 'bluestore block device\\n' | dd of=$D bs=1M seek=1024 conv=notrunc,fsync status=none",
			discard, `^has a copy of an OSD's BlueStore label at 1 GiB \(byte 1073741824\)\. If it is not needed, run 'holdfast device free /dev/loop`,
		},
		{"backing store", "losetup -f --show $D > /run/upper", "losetup -d $(cat /run/upper)", `^is the backing store of /dev/loop[0-9]+$`},
	}
	h := New(t, Options{Disks: 1, DiskSize: 3 << 30}).Host(1)
	s := scanner(t, h)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := h.Disk(0)
			run := func(script string) { h.Run(t, t.Context(), "sh", "-ec", "D="+d.Path()+"\n"+script) }
			run(test.put)
			got := scan(t, s)[d.ID()]
			if got.Availability != api.DeviceUnavailable || !slices.ContainsFunc(got.Reasons, regexp.MustCompile(test.want).MatchString) {
				t.Errorf("%s, %q; want the reason %q", got.Availability, got.Reasons, test.want)
			}
			run(test.remove)
			await(t, "the disk to be available again", func() bool { return scan(t, s)[d.ID()].Availability == api.DeviceAvailable })
		})
	}
}

// unknown is what is said of data without a signature, with the way out.
const unknown = `^holds unknown data at byte [0-9]*(, without a signature\. If it is not needed, run 'holdfast device free /dev/loop.*)?`

// A disk that is as new stays available, also flash that reads as ones; so does one on which
// nothing is but what a wipe leaves.
func TestInventory_whatIsBlank(t *testing.T) {
	h := New(t, Options{Disks: 1, DiskSize: 300 << 20}).Host(1)
	d, s := h.Disk(0), scanner(t, h)
	for name, put := range map[string]string{
		"never written to": "true",
		"zeros":            "dd if=/dev/zero of=$D bs=1M conv=fsync status=none || true",
		"ones":             `tr '\0' '\377' </dev/zero | dd of=$D bs=1M count=300 iflag=fullblock conv=fsync status=none`,
		"discarded":        "mkfs.ext4 -q $D && blkdiscard --force $D",
		"zeroed":           "mkfs.ext4 -q $D && blkdiscard --force -z $D",
	} {
		h.Run(t, t.Context(), "sh", "-ec", "D="+d.Path()+"\nblkdiscard --force $D\n"+put)
		if got := scan(t, s)[d.ID()]; got.Availability != api.DeviceAvailable {
			t.Errorf("%s: %q", name, got.Reasons)
		}
	}
}

// The way out that is told is one: run as it stands, it frees the disk. Of 'holdfast device free'
// package cli shows it.
func TestInventory_theWayOutFrees(t *testing.T) {
	h := New(t, Options{Disks: 1, DiskSize: 2 << 30}).Host(1)
	d, s := h.Disk(0), scanner(t, h)
	for name, put := range map[string]string{
		"rows of a text":    `yes "row 4711" | dd of=$D bs=1M seek=300 count=100 iflag=fullblock conv=notrunc,fsync status=none`,
		"a copy of a label": "printf 'bluestore block device\\n' | dd of=$D bs=1M seek=1024 conv=notrunc,fsync status=none",
	} {
		for _, zeros := range []string{"", " -z"} {
			h.Run(t, t.Context(), "sh", "-ec", "D="+d.Path()+"\n"+put)
			reason := strings.Join(scan(t, s)[d.ID()].Reasons, "; ")
			told := regexp.MustCompile("'(blkdiscard [^']*)'").FindStringSubmatch(reason)
			if told == nil {
				t.Fatalf("%s: %q", name, reason)
			}
			h.Run(t, t.Context(), "sh", "-ec", told[1]+zeros)
			if got := scan(t, s)[d.ID()]; got.Availability != api.DeviceAvailable {
				t.Errorf("%s, after %s%s: %q", name, told[1], zeros, got.Reasons)
			}
		}
	}
}

// osd makes an OSD that has never seen a cluster.
const osd = `mkdir -p /run/osd && ln -sf $D /run/osd/block
printf '[global]\nfsid = 11111111-2222-3333-4444-555555555555\nbdev_aio_poll_ms = 5\nbluestore_fsck_on_mkfs = false\n' > /run/ceph.conf
ceph-osd -c /run/ceph.conf -i 7 --mkfs --osd-data /run/osd --osd-uuid 99999999-2222-3333-4444-555555555555 --no-mon-config 2>/run/osd.log || { cat /run/osd.log >&2; exit 1; }
rm -r /run/osd`

// partition makes two partitions. Kernels without parsers for partition tables know them only from partx.
func partition(t *testing.T, d *Disk) {
	t.Helper()
	d.host.Run(t, t.Context(), "sh", "-ec", `printf 'label: dos\nlabel-id: 0x1b2e7c10\n,100M\n,10M\n' | sfdisk -q $0 && partx -u $0`, d.Path())
}

func TestInventory_aPartitionIsKnownByItsUUID(t *testing.T) {
	h := New(t, Options{Disks: 1}).Host(1)
	d, s := h.Disk(0), scanner(t, h)
	partition(t, d)
	got := scan(t, s)
	part := got["partuuid-1b2e7c10-01"]
	if part.Availability != api.DeviceAvailable || part.Kind != api.DevicePartition || part.Parent != d.ID() || part.Path != d.Path()+"p1" {
		t.Errorf("partition: %+v", part)
	}
	if small := got["partuuid-1b2e7c10-02"]; small.Availability != api.DeviceUnavailable || !strings.Contains(fmt.Sprint(small.Reasons), "smaller than 64 MiB") {
		t.Errorf("small partition: %+v", small)
	}
	d.Detach(t)
	d.Attach(t)
	h.Run(t, t.Context(), "partx", "-u", d.Path())
	if again := scan(t, s)["partuuid-1b2e7c10-01"]; again.Path == part.Path || again.Availability != api.DeviceAvailable {
		t.Errorf("after the disk was renamed: %+v", again)
	}
}

func TestInventory_aCopyMakesBothUnavailable(t *testing.T) {
	h := New(t, Options{Disks: 2}).Host(1)
	partition(t, h.Disk(0))
	s := scanner(t, h)
	if got := scan(t, s)["partuuid-1b2e7c10-01"]; got.Availability != api.DeviceAvailable {
		t.Fatalf("the only one of its kind: %+v", got)
	}
	partition(t, h.Disk(1))
	copies := 0
	for id, d := range scan(t, s) {
		if !strings.HasPrefix(id, "unstable-loop") {
			continue
		}
		copies++
		if d.Availability != api.DeviceUnavailable || !strings.Contains(fmt.Sprint(d.Reasons), "shares its identity partuuid-1b2e7c10-0") {
			t.Errorf("%+v", d)
		}
	}
	if copies != 4 {
		t.Errorf("%d copies, want 4", copies)
	}
}

// Signatures that need no tool to write.
func TestInventory_magicNumbers(t *testing.T) {
	h := New(t, Options{Disks: 1, DiskSize: 256 << 20}).Host(1)
	d, s := h.Disk(0), scanner(t, h)
	for _, magic := range []struct {
		name string
		at   int64
		text string
	}{
		{"LUKS", 0, "LUKS\xba\xbe\x00\x01"},
		{"a broken BlueStore label", 0, "bluestore block device\nnonsense"},
	} {
		f, err := os.OpenFile(d.Path(), os.O_WRONLY|os.O_SYNC, 0)
		if err != nil {
			t.Fatal(err)
		}
		write := func(text string) {
			if _, err := f.WriteAt([]byte(text), magic.at); err != nil {
				t.Fatal(err)
			}
		}
		write(magic.text)
		got := scan(t, s)[d.ID()]
		t.Logf("%s: %q", magic.name, got.Reasons)
		if got.Availability != api.DeviceUnavailable {
			t.Errorf("a disk with %s is available", magic.name)
		}
		write(strings.Repeat("\x00", len(magic.text)))
		f.Close()
		if got := scan(t, s)[d.ID()]; got.Availability != api.DeviceAvailable {
			t.Fatalf("without %s: %q", magic.name, got.Reasons)
		}
	}
}

func TestInventory_thirtyDisksAreQuick(t *testing.T) {
	h := New(t, Options{Disks: 30}).Host(1)
	s := scanner(t, h)
	began := time.Now()
	if got := scan(t, s); len(got) != 30 {
		t.Fatalf("%d devices", len(got))
	}
	first := time.Since(began)
	began = time.Now()
	scan(t, s)
	t.Logf("first scan %s, second %s", first, time.Since(began))
	// Generous, as the machine may do other things; a scan one by one of disks that answer slowly would still not pass.
	if first > 2*time.Second {
		t.Errorf("a scan of 30 disks takes %s", first)
	}
	if file := filepath.Join(h.Dir(), "disks", "disk29"); attachedFile(h.Disk(29).Path()) != file {
		t.Errorf("the last disk is not %s", file)
	}
}
