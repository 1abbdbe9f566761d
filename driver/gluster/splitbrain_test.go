package gluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// The status names what is in split-brain first, with a command that ends it: nothing but a person
// mends it.
func TestSplitBrainIsTold(t *testing.T) {
	v := splitVolume()
	state, text := newPlanner(&engine.View{}, time.Time{}, waits.Default()).judgeVolume(v)
	if state != api.ResourceDegraded || !strings.Contains(text, "/f. ") || !strings.Contains(text,
		"'holdfast volume resolve -n files v FILE --keep NODE', the node with the right copy (n0, n1, n2)") {
		t.Errorf("%s: %s", state, text)
	}
}

func splitVolume() *volume {
	v := &volume{
		name: "v", pool: &glusterd.Volume{Name: "v", State: glusterd.VolumeStarted, Replica: 3},
		status: api.VolumeStatus{SplitBrains: []string{"/d", "/f"}},
	}
	for i := range 3 {
		v.pool.Bricks = append(v.pool.Bricks, glusterd.Brick{
			State: glusterd.BrickOnline,
			Heal:  &glusterd.Heal{Pending: 2, SplitBrain: 1},
		})
		v.status.Bricks = append(v.status.Bricks, api.VolumeBrick{
			Node: fmt.Sprintf("n%d", i),
			Path: fmt.Sprintf("/b%d", i), Online: i < 2,
		})
	}
	v.declared = &api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "files", Name: "v"}, Status: v.status}
	return v
}

// One brick knows by its path what another knows by its gfid alone.
func TestSplitFiles(t *testing.T) {
	set := func(bricks ...*glusterd.Heal) *glusterd.Volume {
		v := &glusterd.Volume{Replica: 3}
		for _, h := range bricks {
			v.Bricks = append(v.Bricks, glusterd.Brick{Heal: h})
		}
		return v
	}
	heal := func(count int64, files ...string) *glusterd.Heal {
		return &glusterd.Heal{SplitBrain: count, Files: files}
	}
	for _, tt := range []struct {
		v    *glusterd.Volume
		want []string
	}{
		{set(heal(2, "<gfid:1>", "<gfid:2>"), heal(2, "/b", "/a"), heal(2, "/a", "/b")), []string{"/a", "/b"}},
		{set(heal(2, "<gfid:1>", "<gfid:2>"), heal(2, "/a", "<gfid:2>"), nil), []string{"/a", "<gfid:1>", "<gfid:2>"}},
		{set(heal(0), heal(0), nil), []string{}},
	} {
		if got := sets.SplitFiles(tt.v); !slices.Equal(got, tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
