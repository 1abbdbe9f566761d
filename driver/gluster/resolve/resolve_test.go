package resolve

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

func split() *api.Volume {
	v := &api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "files", Name: "v"}}
	v.Status.SplitBrains = []string{"/d", "/f"}
	for i := range 3 {
		v.Status.Bricks = append(v.Status.Bricks, api.VolumeBrick{
			Node: fmt.Sprintf("n%d", i), Path: fmt.Sprintf("/b%d", i), Online: i < 2,
		})
	}
	return v
}

// What a person chose becomes a command for the agent of the node that speaks for the pool, or is
// refused with the reason.
func TestResolveCommand(t *testing.T) {
	speaker := api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: "d1"}, Spec: api.DaemonSpec{
			Type: glusterd.Type,
			ID:   "n1", Parameters: map[string]string{
				glusterd.ParamReport: glusterd.DepthPool, glusterd.ParamAddress: "10.0.0.1",
			},
		},
		Status: api.DaemonStatus{State: api.DaemonRunning},
	}
	full, healed := split(), *split()
	healed.Status.SplitBrains = nil
	for _, tt := range []struct {
		name, target, files, keep, want string
		volume                          api.Volume
	}{
		{"a node's copy", "volume/v", "/f", "n1", "source-brick /f 10.0.0.1:/b1", *full},
		{"of files in a directory", "volume/v", "/d/x\n/d/y", "latest-mtime", "latest-mtime /d/x\n/d/y ", *full},
		{"by its gfid", "volume/v", "<gfid:12>", "bigger-file", "bigger-file gfid:12 ", *full},
		{"another volume", "volume/w", "/f", "n1", "no volume", *full},
		{
			"a node that does not serve", "volume/v", "/f", "n2", `"n2" is no node with a brick of volume v that serves`,
			*full,
		},
		{"no path", "volume/v", "f", "n1", "no path within the volume", *full},
		{"a path that goes up", "volume/v", "/d/../f", "n1", "no path within the volume", *full},
		{"a file that is well", "volume/v", "/e/f", "n1", "/e/f is not in split-brain", *full},
		{"all is well", "volume/v", "/f", "n1", "nothing of volume v is in split-brain", healed},
	} {
		a := &api.Action{Spec: api.ActionSpec{
			Target: tt.target, Cluster: "c",
			Parameters: map[string]api.ActionParameter{
				Files: api.ActionParameter(tt.files), Keep: api.ActionParameter(tt.keep),
			},
		}}
		d, cmd, err := resolveCommand(&engine.View{
			Resources: []api.Resource{&tt.volume},
			Daemons:   []api.Daemon{speaker},
		}, a)
		got := cmd.Params[glusterd.ParamKeep] + " " + cmd.Params[glusterd.ParamFiles] + " " +
			"" + cmd.Params[glusterd.ParamBricks]
		switch {
		case err != nil && (!errors.Is(err, action.ErrRefused) || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case err == nil && (got != tt.want || d.Name != "d1" || cmd.Object != "v"):
			t.Errorf("%s: %q by %s, want %q", tt.name, got, d.Name, tt.want)
		}
	}
}
