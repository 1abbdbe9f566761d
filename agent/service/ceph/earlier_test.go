package ceph

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast-storage/holdfast/internal/bluestore"
)

// TestOSD_earlier: the directory of an earlier OSD of the number, which a removed host still has
// when it is back, does not keep the new OSD from being made on its own disk.
func TestOSD_earlier(t *testing.T) {
	earlier := osdOn(t, loopDevice(t), "7", ours)
	if err := (OSD{}).ConfigureLocalService(t.Context(), earlier); err != nil {
		t.Fatal(err)
	}
	path := loopDevice(t)
	l := osdOn(t, path, "7", other)
	dir := filepath.Join(l.Data, directoryName)
	if err := os.Rename(filepath.Join(earlier.Data, directoryName), dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := (OSD{}).ConfigureLocalService(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		l.Devices[deviceBlock] = scan(t, path)
	}
	if label, err := bluestore.ReadLabel(path); err != nil || label.OSDUUID != other || !label.MkfsDone() {
		t.Errorf("the label is %+v, %v", label, err)
	}
	if !complete(dir) || !complete(dir+".of-"+ours) {
		t.Error("a directory is not whole")
	}
}
