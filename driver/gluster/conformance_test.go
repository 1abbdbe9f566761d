package gluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
	"github.com/holdfast-storage/holdfast/internal/glusterd"
)

func TestConformance(t *testing.T) {
	w := poolOf(t, 4)
	w.volume("v", "10Gi", replica3())
	w.volume("w", "10Gi", &api.VolumeDurability{Disperse: &api.VolumeDisperse{Data: 2, Redundancy: 1}})
	conformance.Test(t, conformance.Subject{
		New:     func(t conformance.T) conformance.System { return system{newWorld(t)} },
		Cluster: *w.cluster, Hosts: w.hosts, Nodes: w.nodes, Resources: w.view().Resources,
		Refusals: []conformance.Refusal{
			{Name: "a volume that shrinks", Declare: func(w *conformance.World) { w.Resources[0].(*api.Volume).Spec.Size = resource.MustParse("5Gi") }},
			{Name: "no room", Declare: func(w *conformance.World) {
				v := w.Resources[0].DeepCopyObject().(*api.Volume)
				v.Name, v.Spec.Size, v.Status = "x", resource.MustParse("1Ti"), api.VolumeStatus{}
				w.Resources = append(w.Resources, v)
			}},
			{Name: "another address", Declare: func(w *conformance.World) {
				w.Hosts[0].Status.Addresses = append(w.Hosts[0].Status.Addresses, "10.9.9.9")
				w.Nodes[0].Spec.StorageNetwork.IPs = []string{"10.9.9.9"}
			}},
		},
	})
}

// system is the GlusterFS in memory for the suite.
type system struct{ *world }

func (s system) Driver() engine.Driver { return Driver{} }

func (s system) Act(w *conformance.World) {
	s.hosts, s.daemons, s.now = w.Hosts, w.Daemons, w.Now
	s.agents()
	s.gluster.heal()
	s.gluster.move()
	s.gluster.settle()
}

func (s system) Ask(_ *conformance.World, d *api.Daemon, cmd engine.Command) error {
	defer s.gluster.settle()
	if cmd.Verb == glusterd.VerbDropBrick {
		return s.gluster.drop(s.gluster.nodes[d.Name], cmd)
	}
	if _, err := glusterd.CommandLines(cmd.Verb, cmd.Object, cmd.Params); err != nil {
		return err
	}
	return s.gluster.do(s.gluster.nodes[d.Name], cmd)
}
