package gluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

// projected lists what a projection does, one line for a step.
func projected(p *engine.Projection) (steps []string) {
	for _, s := range p.Steps {
		var words []string
		for _, c := range s.Plan.Daemons {
			words = append(words, "daemon "+c.Daemon.Spec.ID)
		}
		for _, c := range s.Plan.Remove {
			words = append(words, "remove "+c.Name)
		}
		for _, c := range s.Plan.Commands {
			words = append(words, c.Verb)
		}
		steps = append(steps, strings.Join(words, ", "))
	}
	return steps
}

func (w *world) project() *engine.Projection { return engine.Project(Driver{}, w.view(), w.now) }

// A plan that is shown tells all that will happen, to the end.
func TestForesee(t *testing.T) {
	bringUp := poolOf(t, 3)
	bringUp.volume("v", "10Gi", replica3())
	grow := poolOf(t, 6)
	grow.volume("v", "60Gi", nil)
	grow.settle()
	grow.vol("v").Spec.Size = resource.MustParse("150Gi")
	removal := poolOf(t, 4)
	removal.volume("v", "10Gi", nil)
	removal.settle()
	removal.undeclare("n1")
	single := poolOf(t, 2)
	single.volume("v", "10Gi", &api.VolumeDurability{Distribute: &api.VolumeDistribute{}})
	single.settle()
	single.undeclare("n1")
	maintenance := poolOf(t, 3)
	maintenance.volume("v", "10Gi", nil)
	maintenance.settle()
	maintenance.now = maintenance.now.Add(waits.Default().GlusterBack) // no glusterd was started just now
	maintenance.setMode(1, api.HostMaintenance)
	for _, test := range []struct {
		name string
		w    *world
		want []string
	}{
		{"bring-up", bringUp, []string{"daemon n1, daemon n2, daemon n3", "peer probe, peer probe", "volume create, volume set, volume start"}},
		{"growth", grow, []string{"volume add-brick", "volume rebalance"}},
		{"removal", removal, []string{
			"daemon n2", "daemon n1, volume replace-brick", "brick drop", "peer detach", "remove c-glusterd-n1",
		}},
		{"single bricks", single, []string{
			"daemon n2", "daemon n1, volume add-brick", "volume remove-brick start", "volume remove-brick commit", "brick drop", "peer detach", "remove c-glusterd-n1",
		}},
		{"maintenance", maintenance, []string{"daemon n2", "daemon n1"}},
	} {
		p := test.w.project()
		if diff := cmp.Diff(test.want, projected(p)); diff != "" {
			t.Errorf("%s (-want +got):\n%s%v", test.name, diff, fmt.Sprint(p.Open, decisions(p.Last)))
		}
		if len(p.Open) > 0 {
			t.Errorf("%s: open: %v", test.name, p.Open)
		}
	}
}

// Of directories nobody knows how much room they have: the projection ends where that is needed, and says so.
func TestForesee_directories(t *testing.T) {
	w := newWorld(t)
	for i := 1; i <= 3; i++ {
		w.host(i, 0)
		w.node(i, 1).Spec.Directories = []string{"/srv/bricks"}
	}
	w.volume("v", "10Gi", nil)
	p := w.project()
	if len(p.Steps) != 1 || p.Last.Done {
		t.Errorf("%v", projected(p))
	}
	if last := w.settle(); !last.Done || w.vol("v").Status.Bricks[0].Directory != "/srv/bricks" {
		t.Errorf("%v", decisions(last))
	}
}

// A volume of which a report names no options can have some set: a report leaves out what is empty.
func TestForesee_firstOption(t *testing.T) {
	v := &glusterd.Volume{Name: "v"}
	change(v, engine.Command{Verb: glusterd.VerbReset, Params: map[string]string{"a": ""}})
	change(v, engine.Command{Verb: glusterd.VerbSet, Params: map[string]string{"a": "1", "b": "2"}})
	change(v, engine.Command{Verb: glusterd.VerbReset, Params: map[string]string{"b": ""}})
	if diff := cmp.Diff(map[string]string{"a": "1"}, v.Options); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	w := poolOf(t, 3)
	w.volume("v", "10Gi", replica3())
	w.settle()
	for name := range w.gluster.volumes["v"].options {
		delete(w.gluster.volumes["v"].options, name)
	}
	w.vol("v").Spec.Options = api.VolumeOptions{"performance.io-cache": "off"}
	w.agents()
	if p := w.project(); p.Last == nil || !p.Last.Done {
		t.Errorf("%v", projected(p))
	}
}
