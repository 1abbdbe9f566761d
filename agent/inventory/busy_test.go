package inventory

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
)

func TestBusy(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  string // empty where nobody uses the disk
	}{
		"nobody uses it": {},
		"mounted": {
			map[string]string{"proc/self/mountinfo": "36 35 8:16 / /srv rw - xfs /dev/sdb rw\n"}, "mounted at /srv",
		},
		"a partition is mounted": {
			map[string]string{"proc/self/mountinfo": "36 35 8:17 / /srv rw - xfs /dev/sdb1 rw\n"},
			"partition /dev/sdb1 mounted at /srv",
		},
		"swap on a partition": {
			map[string]string{"proc/swaps": "Filename Type Size\n/dev/sdb1 partition 99 0 -2\n"},
			"partition /dev/sdb1 in use as swap space",
		},
		"a partition has a holder": {
			map[string]string{"sys/block/sdb/sdb1/holders/md0/x": ""}, "partition /dev/sdb1 is part of md0",
		},
		"the disk has a holder": {map[string]string{"sys/block/sdb/holders/dm-0/x": ""}, "is part of dm-0"},
		"read-only":             {map[string]string{"sys/block/sdb/ro": "1"}, "is read-only"},
		"a loop device lies on it": {map[string]string{
			"sys/block/loop0/dev": "7:0", "sys/block/loop0/size": "2048", "sys/block/loop0/loop/backing_file": "/dev/sdb",
		}, "is the backing store of /dev/loop0"},
		"the root is on it": {
			map[string]string{"proc/self/mountinfo": "1 0 8:17 / / rw - ext4 /dev/sdb1 rw\n"},
			"is on the disk of the root file system",
		},
		"another disk is in use": {map[string]string{
			"sys/block/sdc/dev": "8:32", "sys/block/sdc/size": "2048", "sys/block/sdc/ro": "1",
			"sys/block/sdc/holders/md0/x": "",
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := emptyDisk(t)
			for path, text := range map[string]string{
				"sys/block/sdb/sdb1/dev": "8:17", "sys/block/sdb/sdb1/size": "1024", "sys/block/sdb/sdb1/partition": "1",
			} {
				write(t, filepath.Join(root, path), text)
			}
			for path, text := range c.files {
				write(t, filepath.Join(root, path), text)
			}
			s := &Scanner{root: root, look: func(context.Context, string) findings { return findings{} }}
			why, err := s.Busy(t.Context(), "/dev/sdb")
			got := strings.Join(why, "; ")
			if err != nil || (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
}

// What cannot be known is an error: nothing may be done to the disk.
func TestBusy_unknown(t *testing.T) {
	root := emptyDisk(t)
	look := func(context.Context, string) findings { return findings{} }
	if _, err := (&Scanner{root: root, look: look}).Busy(t.Context(), "/dev/sdz"); err == nil {
		t.Error("of a disk that is not there")
	}
	s := &Scanner{root: root, look: look, Mounts: "/proc/2/mountinfo"}
	if _, err := s.Busy(t.Context(), "/dev/sdb"); err == nil {
		t.Error("without the mounts")
	}
	if _, err := (&Scanner{root: t.TempDir(), look: look}).Busy(t.Context(), "/dev/sdb"); err == nil {
		t.Error("without /sys")
	}
}

// A disk of a volume group is in use though the kernel shows no holder of it. One that belongs to
// none is not.
func TestInGroup(t *testing.T) {
	empty, alone, ofGroup := physicalVolume(t)
	disk := filepath.Join(t.TempDir(), "disk")
	write(t, disk, string(ofGroup))
	if why := strings.Join(inGroup(disk), ""); !strings.Contains(why, "holds LVM volume group hfvg0") {
		t.Errorf("got %q", why)
	}
	for _, free := range [][]byte{empty, alone} {
		write(t, disk, string(free))
		if why := inGroup(disk); len(why) > 0 {
			t.Errorf("got %v", why)
		}
	}
	if why := strings.Join(inGroup(disk+"9"), ""); !strings.Contains(why, "cannot be opened") {
		t.Errorf("no disk: %q", why)
	}
}
