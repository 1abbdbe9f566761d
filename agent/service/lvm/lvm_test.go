package lvm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	group  = "vEGdkNMZ6Zx1c9WgSXSwq3g3XRFTcvoG"
	volume = "mhrzYMLWcW0Skl8iYq2YQyyCzAqm1M1P"
)

func TestParse(t *testing.T) {
	v, ok := Parse("dm-LVM-" + group + volume)
	if want := (Volume{group, volume}); !ok || v != want {
		t.Errorf("%v, %v", v, ok)
	}
	if got, want := dashed(v.UUID), "mhrzYM-LWcW-0Skl-8iYq-2YQy-yCzA-qm1M1P"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	for _, id := range []string{"", "wwn-5000", "dm-LVM-" + group, "dm-LVM-" + group + volume + "-tpool", "dm-CRYPT-LUKS2-" + group + volume} {
		if v, ok := Parse(id); ok {
			t.Errorf("%q is %v", id, v)
		}
	}
}

func TestVolume_Active(t *testing.T) {
	was := blocks
	defer func() { blocks = was }()
	blocks = t.TempDir()
	v := Volume{group, volume}
	if v.Active() {
		t.Error("it is there, and no device is")
	}
	for name, uuid := range map[string]string{"dm-0": "LVM-" + group + group + "\n", "dm-3": "LVM-" + group + volume + "\n", "dm-4": ""} {
		for dir, file := range map[string]string{"dm": "uuid", "slaves": "none"} {
			if err := os.MkdirAll(filepath.Join(blocks, name, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			if dir == "dm" {
				if err := os.WriteFile(filepath.Join(blocks, name, dir, file), []byte(uuid), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if !v.Active() || (Volume{volume, volume}).Active() {
		t.Error("it is not told by its own identity")
	}
	disk, slaves := filepath.Join(blocks, "sdb"), filepath.Join(blocks, "dm-3/slaves/sdb")
	if err := os.Symlink(disk, slaves); err != nil {
		t.Fatal(err)
	}
	if v.Active() {
		t.Error("it is there, and its disk was pulled")
	}
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if !v.Active() {
		t.Error("its disk is there, and it is not")
	}
}

func TestMadeFor(t *testing.T) {
	const osd = "6f9ccaec-9d2a-4f1a-bc88-0d2b67f6f0a1"
	made := map[string]string{"vg_name": "ceph-" + osd, "lv_name": "osd-block-" + osd, "lv_tags": "ceph.osd_id=3,ceph.osd_fsid=" + osd + ",ceph.type=block"}
	if !madeFor(made, osd) {
		t.Error("what ceph-volume has made for the OSD stays")
	}
	for field, other := range map[string]string{"vg_name": "ceph-nvme", "lv_name": "osd-db-3", "lv_tags": "ceph.osd_fsid=" + osd + "0"} {
		x := map[string]string{"vg_name": made["vg_name"], "lv_name": made["lv_name"], "lv_tags": made["lv_tags"]}
		x[field] = other
		if madeFor(x, osd) {
			t.Errorf("what has %s %s goes", field, other)
		}
	}
}

func TestParseReport(t *testing.T) {
	rows, err := parseReport([]byte(`{"report": [{"lv": [{"lv_name":"a", "vg_name":"b"}, {"lv_name":"c", "vg_name":"b"}]}]}`))
	if diff := cmp.Diff([]map[string]string{{"lv_name": "a", "vg_name": "b"}, {"lv_name": "c", "vg_name": "b"}}, rows); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := parseReport([]byte("File descriptor 3 leaked")); err == nil {
		t.Error("no report is one")
	}
}
