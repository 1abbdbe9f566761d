package gluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/gluster/sets"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// What is in split-brain is told before all else, with a command that ends it: nothing but a person mends it.
func TestSplitBrainIsTold(t *testing.T) {
	v := splitVolume()
	state, text := newPlanner(&engine.View{}, time.Time{}, waits.Default()).judgeVolume(v)
	if state != api.ResourceDegraded || !strings.Contains(text, "/f. ") || !strings.Contains(text, "'holdfast volume resolve -n files v FILE --keep NODE', the node with the right copy (n0, n1, n2)") {
		t.Errorf("%s: %s", state, text)
	}
}

func splitVolume() *volume {
	v := &volume{name: "v", pool: &glusterd.Volume{Name: "v", State: glusterd.VolumeStarted, Replica: 3}, status: api.VolumeStatus{SplitBrains: []string{"/d", "/f"}}}
	for i := range 3 {
		v.pool.Bricks = append(v.pool.Bricks, glusterd.Brick{State: glusterd.BrickOnline, Heal: &glusterd.Heal{Pending: 2, SplitBrain: 1}})
		v.status.Bricks = append(v.status.Bricks, api.VolumeBrick{Node: fmt.Sprintf("n%d", i), Path: fmt.Sprintf("/b%d", i), Online: i < 2})
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

// What a person chose becomes a command for the agent of the node that speaks for the pool, or is refused with the reason.
func TestResolveCommand(t *testing.T) {
	speaker := api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: "d1"}, Spec: api.DaemonSpec{Type: glusterd.Type, ID: "n1", Parameters: map[string]string{
		glusterd.ParamReport: glusterd.DepthPool, glusterd.ParamAddress: "10.0.0.1"}}, Status: api.DaemonStatus{State: api.DaemonRunning}}
	full, healed := splitVolume().declared, *splitVolume().declared
	healed.Status.SplitBrains = nil
	for _, tt := range []struct {
		name, target, files, keep, want string
		volume                          api.Volume
	}{
		{"a node's copy", "volume/v", "/f", "n1", "source-brick /f 10.0.0.1:/b1", *full},
		{"of files in a directory", "volume/v", "/d/x\n/d/y", "latest-mtime", "latest-mtime /d/x\n/d/y ", *full},
		{"by its gfid", "volume/v", "<gfid:12>", "bigger-file", "bigger-file gfid:12 ", *full},
		{"another volume", "volume/w", "/f", "n1", "no volume", *full},
		{"a node that does not serve", "volume/v", "/f", "n2", `"n2" is no node with a brick of volume v that serves`, *full},
		{"no path", "volume/v", "f", "n1", "no path within the volume", *full},
		{"a path that goes up", "volume/v", "/d/../f", "n1", "no path within the volume", *full},
		{"a file that is well", "volume/v", "/e/f", "n1", "/e/f is not in split-brain", *full},
		{"all is well", "volume/v", "/f", "n1", "nothing of volume v is in split-brain", healed},
	} {
		a := &api.Action{Spec: api.ActionSpec{Target: tt.target, Cluster: "c", Parameters: map[string]api.ActionParameter{
			ResolveFiles: api.ActionParameter(tt.files), ResolveKeep: api.ActionParameter(tt.keep)}}}
		d, cmd, err := resolveCommand(&engine.View{Resources: []api.Resource{&tt.volume}, Daemons: []api.Daemon{speaker}}, a)
		got := cmd.Params[glusterd.ParamKeep] + " " + cmd.Params[glusterd.ParamFiles] + " " + cmd.Params[glusterd.ParamBricks]
		switch {
		case err != nil && (!errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case err == nil && (got != tt.want || d.Name != "d1" || cmd.Object != "v"):
			t.Errorf("%s: %q by %s, want %q", tt.name, got, d.Name, tt.want)
		}
	}
}
