package fsspec

import (
	"testing"

	"github.com/holdfast-storage/holdfast/driver/ceph/fsmap"
)

// TestClosingOf: MDS are waited for as long as they can end in order.
func TestClosingOf(t *testing.T) {
	serves := map[int]fsmap.MDS{0: {Name: "a", State: "up:active"}}
	for name, tt := range map[string]struct {
		fs   fsmap.FS
		want Closing
	}{
		"it serves":                     {fsmap.FS{MaxMDS: 1, MDS: serves}, Open},
		"a standby is wanted":           {fsmap.FS{StandbyWanted: 1}, Open},
		"its MDS stop":                  {fsmap.FS{MDS: serves}, Stopping},
		"its MDS hangs":                 {fsmap.FS{MDS: map[int]fsmap.MDS{0: {Name: "a", Laggy: true}}}, Closed},
		"nobody has a rank":             {fsmap.FS{MDS: serves, Down: []int{1}}, Closed},
		"a rank is damaged":             {fsmap.FS{MDS: serves, Damaged: []int{1}}, Closed},
		"a rank is damaged, and serves": {fsmap.FS{MaxMDS: 2, MDS: serves, Damaged: []int{1}}, Open},
		"no MDS is left":                {fsmap.FS{}, Closed},
	} {
		if got := ClosingOf(&tt.fs); got != tt.want {
			t.Errorf("%s: %v, not %v", name, got, tt.want)
		}
	}
}
