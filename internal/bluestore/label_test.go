package bluestore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The file is the start of a device on which ceph-osd 16.2.15 made OSD 7.
const golden = "testdata/label-16.2.15"

func TestReadLabel(t *testing.T) {
	l, err := ReadLabel(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := &Label{
		OSDUUID:     "99999999-2222-3333-4444-555555555555",
		Size:        1 << 30,
		Created:     time.Unix(0x6b0141bc, 0x27b17e08).UTC(),
		Description: "main",
		Meta: map[string]string{
			"bfm_blocks": "262144", "bfm_blocks_per_key": "128", "bfm_bytes_per_block": "4096", "bfm_size": "1073741824",
			"bluefs": "1", "ceph_fsid": "11111111-2222-3333-4444-555555555555",
			"ceph_version_when_created": "ceph version 16.2.15 (618f440892089921c3e944a991122ddc44e60516) pacific (stable)",
			"created_at":                "2026-11-21T07:01:16.829595Z", "kv_backend": "rocksdb", "magic": "ceph osd volume v026",
			"mkfs_done": "yes", "ready": "ready", "whoami": "7",
		},
	}
	if diff := cmp.Diff(want, l); diff != "" {
		t.Errorf("label (-want +got):\n%s", diff)
	}
	if id, ok := l.OSDID(); id != 7 || !ok {
		t.Errorf("OSD id %d %v, want 7", id, ok)
	}
	if !l.MkfsDone() || l.ClusterFSID() != "11111111-2222-3333-4444-555555555555" {
		t.Errorf("done %v, cluster %q", l.MkfsDone(), l.ClusterFSID())
	}
}

func TestReadLabel_none(t *testing.T) {
	for name, content := range map[string][]byte{"empty": nil, "short": []byte("blue"), "zeros": make([]byte, 8192)} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadLabel(path); !errors.Is(err, ErrNoLabel) {
			t.Errorf("%s: %v, want ErrNoLabel", name, err)
		}
	}
}

// A label that is damaged anywhere must never read as "no label", which would make the device look free.
func TestParseLabel_damaged(t *testing.T) {
	good, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	end := len(bytes.TrimRight(good, "\x00"))
	for i := len(Magic); i < end; i++ {
		b := bytes.Clone(good)
		b[i] ^= 0x40
		if l, err := ParseLabel(b); err == nil || errors.Is(err, ErrNoLabel) {
			t.Fatalf("byte %d changed: got %v, %v", i, l, err)
		}
		if _, err := ParseLabel(good[:i]); err == nil || errors.Is(err, ErrNoLabel) {
			t.Fatalf("cut at byte %d: got %v", i, err)
		}
	}
}

func FuzzParseLabel(f *testing.F) {
	good, err := os.ReadFile(golden)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Fuzz(func(t *testing.T, b []byte) {
		if l, err := ParseLabel(b); (l == nil) == (err == nil) {
			t.Fatalf("label %v with error %v", l, err)
		}
	})
}
