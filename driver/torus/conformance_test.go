package torus

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
)

// TestConformance: with an etcd of its own, and with one that is given.
func TestConformance(t *testing.T) {
	for name, endpoints := range map[string][]string{"own etcd": nil, "given etcd": {"http://10.9.9.9:2379"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 4)
			w.cluster.Spec.Torus.Endpoints = endpoints
			w.volume("v", "1Gi")
			conformance.Test(t, conformance.Subject{
				New:      func(t conformance.T) conformance.System { return system{newWorld(t, 0)} },
				Anchored: map[bool][]string{true: {"h1", "h2", "h3"}}[endpoints == nil], // a member of the etcd is not moved
				Cluster:  *w.cluster, Hosts: w.hosts, Nodes: w.nodes, Resources: w.view().Resources,
				Refusals: []conformance.Refusal{
					{Name: "replication above the peers", Declare: func(w *conformance.World) { w.Cluster.Spec.Torus.Replication = 9 }},
					{Name: "another port", Declare: func(w *conformance.World) { w.Nodes[0].Spec.Torus.Port = 40001 }},
					{Name: "a volume with options", Declare: func(w *conformance.World) {
						v := w.Resources[0].DeepCopyObject().(*api.Volume)
						v.Name, v.Spec.Options, v.Status = "x", api.VolumeOptions{"a.b": "1"}, api.VolumeStatus{}
						w.Resources = append(w.Resources, v)
					}},
				},
			})
		})
	}
}

// system is the Torus in memory for the suite.
type system struct{ *world }

func (s system) Driver() engine.Driver { return Driver{} }

func (s system) Act(w *conformance.World) {
	s.hosts, s.daemons, s.cluster, s.now = w.Hosts, w.Daemons, w.Cluster, w.Now
	s.agents()
	if len(s.torus.blocks) < 10 {
		s.torus.write()
	}
	if s.torus.move(); s.torus.lost() && w.Cluster.DeletionTimestamp == nil {
		s.t.Fatal("a block was lost")
	}
}

func (s system) Ask(_ *conformance.World, _ *api.Daemon, cmd engine.Command) error {
	return s.torus.do(cmd)
}
