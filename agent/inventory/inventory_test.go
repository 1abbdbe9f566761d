package inventory

import (
	"bytes"
	"context"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A machine with one empty disk.
func emptyDisk(t *testing.T) (root string) {
	t.Helper()
	root = t.TempDir()
	for path, text := range map[string]string{
		"sys/block/sdb/dev":         "8:16",
		"sys/block/sdb/size":        "2097152",
		"sys/block/sdb/stat":        "1 0 8 0 100 0 800 0 0 0 0 7 0 0 0 0 0",
		"sys/block/sdb/device/wwid": "naa.5000c500a1b2c3d4",
		"proc/self/mountinfo":       "",
	} {
		write(t, filepath.Join(root, path), text)
	}
	return root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDevices_probesOnlyWhatMayHaveChanged(t *testing.T) {
	root, looks := emptyDisk(t), 0
	s := &Scanner{root: root, look: func(context.Context, string) findings { looks++; return findings{} }}
	stat := filepath.Join(root, "sys/block/sdb/stat")
	steps := []struct {
		name string
		do   func()
		scan func(context.Context) ([]api.Device, error)
		want int
	}{
		{"first scan", func() {}, s.Devices, 1},
		{"nothing happened", func() {}, s.Devices, 1},
		{"read from", func() { write(t, stat, "9 0 8 0 100 0 800 0 0 0 0 7 0 0 0 0 0") }, s.Devices, 1},
		{"written to", func() { write(t, stat, "9 0 8 0 101 0 808 0 0 0 0 7 0 0 0 0 0") }, s.Devices, 2},
		{"discarded", func() { write(t, stat, "9 0 8 0 101 0 808 0 0 0 0 8 0 0 0 0 0") }, s.Devices, 3},
		{"another disk of the same name", func() { write(t, filepath.Join(root, "sys/block/sdb/diskseq"), "17") }, s.Devices, 4},
		{"asked to scan anew", func() {}, s.Rescan, 5},
	}
	for _, step := range steps {
		step.do()
		if _, err := step.scan(t.Context()); err != nil {
			t.Fatal(err)
		}
		if looks != step.want {
			t.Errorf("%s: looked %d times, want %d", step.name, looks, step.want)
		}
	}
}

func TestDevices_ofADiskThatHangs(t *testing.T) {
	release, looks := make(chan struct{}), make(chan string, 8)
	s := &Scanner{root: emptyDisk(t), Timeout: 10 * time.Millisecond, look: func(_ context.Context, path string) findings {
		looks <- path
		<-release
		return findings{}
	}}
	for range 2 {
		devices, err := s.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if d := devices[0]; d.Availability != api.DeviceUnavailable || !slices.Contains(d.Reasons, "does not answer") {
			t.Errorf("a disk that hangs is %s: %q", d.Availability, d.Reasons)
		}
	}
	if n := len(looks); n != 1 {
		t.Errorf("the disk that hangs was asked %d times", n)
	}
	close(release)
	for { // It is asked again as soon as the first question has come back.
		devices, err := s.Devices(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if devices[0].Availability == api.DeviceAvailable {
			return
		}
	}
}

func TestDevices_ofAClaimedDevice(t *testing.T) {
	s := &Scanner{
		root: emptyDisk(t),
		look: func(context.Context, string) findings { return findings{} },
		Claimed: func(id string) string {
			return map[string]string{"wwn-5000c500a1b2c3d4": "is being prepared for osd.3"}[id]
		},
	}
	devices, err := s.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"is being prepared for osd.3"}, devices[0].Reasons); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

// Whatever is found on a device, or speaks against it: it is not available, and the reason is told.
func TestDevice_withAnythingOnItIsNeverAvailable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := &block{
			name: "sdb", size: rapid.Int64Range(0, 1<<40).Draw(t, "size"), readOnly: rapid.Bool().Draw(t, "ro"),
			holders: rapid.SliceOfN(rapid.SampledFrom([]string{"dm-0", "md0", "bcache0"}), 0, 2).Draw(t, "holders"),
			wwn:     rapid.SampledFrom([]string{"", "5000c500a1b2c3d4"}).Draw(t, "wwn"),
		}
		f := findings{
			values: rapid.MapOfN(rapid.SampledFrom([]string{"TYPE", "PTTYPE"}),
				rapid.SampledFrom([]string{"ext4", "gpt", "ceph_bluestore", "something_new"}), 0, 2).Draw(t, "values"),
			ambivalent: rapid.Bool().Draw(t, "ambivalent"),
			problem:    rapid.SampledFrom([]string{"", "does not answer"}).Draw(t, "problem"),
			unknown:    rapid.SampledFrom([][]string{nil, {"holds unknown data"}}).Draw(t, "unknown"),
		}
		if rapid.Bool().Draw(t, "ceph") {
			f.ceph = &api.DeviceCeph{OSDUUID: "u"}
		}
		clean := b.size >= MinSize && !b.readOnly && len(b.holders) == 0 && b.wwn != "" &&
			len(f.values) == 0 && !f.ambivalent && f.problem == "" && f.unknown == nil && f.ceph == nil
		s := &Scanner{look: func(context.Context, string) findings { return f }}
		blocks := []*block{b}
		d := s.device(b, identify(blocks, blocks, map[string]findings{"sdb": f}), use{}, f)
		if b.size > 0 && (d.Availability == api.DeviceAvailable) != clean {
			t.Fatalf("%s, want available=%v: %+v %+v", d.Availability, clean, b, f)
		}
		if (d.Availability == api.DeviceAvailable) != (len(d.Reasons) == 0) {
			t.Fatalf("%s with the reasons %q", d.Availability, d.Reasons)
		}
	})
}

func TestMountReasons(t *testing.T) {
	points := []string{"/a", "/b", "/c", "/d", "/e", "/f"}
	for n, want := range map[int]string{0: "", 1: "mounted at /a", 5: "mounted at /e", 6: "mounted at 2 more places"} {
		got := mountReasons(points[:n])
		if len(got) > 5 || (n == 0) != (len(got) == 0) || n > 0 && got[len(got)-1] != want {
			t.Errorf("%d mount points: %q", n, got)
		}
	}
}

func TestFilter(t *testing.T) {
	only, err := Filter("file-/tmp/lab/h1/disks/*, /dev/sd?")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		id, path string
		want     bool
	}{
		{"file-/tmp/lab/h1/disks/0", "/dev/loop0", true},
		{"file-/tmp/lab/h1/disks/a/0", "/dev/loop0", false},
		{"file-/tmp/lab/h2/disks/0", "/dev/loop0", false},
		{"wwn-1", "/dev/sdb", true},
		{"wwn-1", "/dev/vdb", false},
	} {
		if got := only(api.Device{ID: test.id, Path: test.path}); got != test.want {
			t.Errorf("%s at %s: %v", test.id, test.path, got)
		}
	}
	if only, err := Filter(""); only != nil || err != nil {
		t.Errorf("no pattern makes a filter (%v)", err)
	}
	for _, bad := range []string{"[", "a,,b"} {
		if _, err := Filter(bad); err == nil {
			t.Errorf("pattern %q is accepted", bad)
		}
	}
}

func TestParseBlkid(t *testing.T) {
	tests := []struct {
		name, out, complaint string
		status               int
		want                 []string
	}{
		{name: "nothing", status: 2},
		{
			name: "file system", out: "DEVNAME=/dev/sdb\nLABEL=my\\ data\nUUID=u\nTYPE=ext4\nUSAGE=filesystem\n",
			want: []string{`has a file system: ext4 "my data" (uuid u)`},
		},
		{
			name: "file system and partition table", out: "TYPE=xfs\nUSAGE=filesystem\nPTTYPE=dos\n",
			want: []string{"has a file system: xfs", "has a partition table (dos)"},
		},
		{
			name: "not readable", status: 2, complaint: "blkid: error: /dev/sdb: Operation not permitted",
			want: []string{"cannot be probed: blkid: error: /dev/sdb: Operation not permitted"},
		},
		{name: "conflict", status: 8, want: []string{"has several signatures that contradict each other (see wipefs)"}},
		{name: "other failure", status: 4, want: []string{"cannot be probed: blkid ended with exit status 4"}},
	}
	for _, test := range tests {
		got := contentReasons(parseBlkid(test.out, test.complaint, test.status))
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// physicalVolume is what 'pvcreate' and 'vgcreate hfvg0' of LVM 2.03 wrote: first a disk without that, then a physical
// volume without a group, and one of a group.
func physicalVolume(t *testing.T) (empty, alone, ofGroup []byte) {
	t.Helper()
	const (
		label = "4c4142454c4f4e4501000000000000009e67d580200000004c564d3220303031" +
			"6d6a6d72325946477966507531476d7a384e333168355a694451747a71325759" +
			"0000400600000000000010000000000000000000000000000000000000000000" +
			"0000000000000000001000000000000000f00f00000000000000000000000000"
		area = "00a93f37204c564d3220785b35412572304e2a3e010000000010000000000000" +
			"00f00f00000000000002000000000000c202000000000000ef8c2d7f00000000"
	)
	empty, alone = make([]byte, 64<<10), make([]byte, 64<<10)
	place := func(at int, text string) {
		data, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		copy(alone[at:], data)
	}
	place(512, label)
	place(4096, area)
	ofGroup = bytes.Clone(alone)
	copy(ofGroup[4608:], "hfvg0 {\nid = \"x\"\n")
	return empty, alone, ofGroup
}

func TestVolumeGroup(t *testing.T) {
	empty, alone, ofGroup := physicalVolume(t)
	if got := volumeGroup(bytes.NewReader(empty)); got != "" {
		t.Errorf("an empty disk holds volume group %q", got)
	}
	if got := volumeGroup(bytes.NewReader(alone)); got != "" {
		t.Errorf("a physical volume without a group holds %q", got)
	}
	if got := volumeGroup(bytes.NewReader(ofGroup)); got != "hfvg0" {
		t.Errorf("volume group %q, want hfvg0", got)
	}
}

func FuzzVolumeGroup(f *testing.F) {
	f.Add([]byte(strings.Repeat("LABELONE", 600)))
	f.Fuzz(func(_ *testing.T, disk []byte) {
		volumeGroup(bytes.NewReader(disk)) // must not panic
		if len(disk) >= sector {
			volumeGroup(bytes.NewReader(append([]byte("LABELONE"), disk...)))
		}
	})
}

func TestLabelCopies(t *testing.T) {
	disk, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer disk.Close()
	if err := disk.Truncate(2 << 30); err != nil {
		t.Fatal(err)
	}
	if got, err := labelCopies(disk, 2<<30); got != nil || err != nil {
		t.Errorf("an empty disk: %q, %v", got, err)
	}
	if _, err := disk.WriteAt([]byte(bluestore.Magic), 1<<30); err != nil {
		t.Fatal(err)
	}
	want := []string{"has a copy of an OSD's BlueStore label at 1 GiB (byte 1073741824)"}
	got, err := labelCopies(disk, 2<<30)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if _, err := labelCopies(disk, 20<<30); err == nil {
		t.Error("a disk that cannot be read at 10 GiB has no copies")
	}
}

func TestWWN(t *testing.T) {
	for in, want := range map[string]string{
		"naa.5000C500A1B2C3D4":  "5000c500a1b2c3d4",
		"0x5000c500a1b2c3d4":    "5000c500a1b2c3d4",
		"eui.0025385b01409e2a":  "0025385b01409e2a",
		"t10.ATA     WDC WD40":  "",
		"eui.0000000000000000":  "",
		"":                      "",
		"naa.5000 c500\x00a1b2": "5000_c500_a1b2",
	} {
		if got := wwn(in); got != want {
			t.Errorf("wwn(%q) = %q, want %q", in, got, want)
		}
	}
}

// In a container, what is mounted on the host is in the mount namespace of the host's first
// process.
func TestDevices_mountsOfTheHost(t *testing.T) {
	root := emptyDisk(t)
	write(t, filepath.Join(root, "proc/1/mountinfo"), "36 35 8:16 / /srv/data rw,noatime shared:1 - xfs /dev/sdb rw\n")
	look := func(context.Context, string) findings { return findings{} }
	for file, want := range map[string][]string{"": nil, "/proc/1/mountinfo": {"/srv/data"}} {
		s := &Scanner{root: root, Mounts: file, look: look}
		devices, err := s.Devices(t.Context())
		if err != nil || len(devices) != 1 {
			t.Fatalf("%+v, %v", devices, err)
		}
		if d := devices[0]; !slices.Equal(d.MountPoints, want) || (d.Availability == api.DeviceAvailable) == (want != nil) {
			t.Errorf("by %q it is mounted at %v and %s", file, d.MountPoints, d.Availability)
		}
	}
	s := &Scanner{root: root, Mounts: "/proc/2/mountinfo", look: look}
	if _, err := s.Devices(t.Context()); err == nil {
		t.Error("without a file of mounts nothing is known to be free")
	}
}
