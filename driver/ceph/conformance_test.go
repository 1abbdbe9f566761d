package ceph

import (
	"testing"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/conformance"
)

func TestConformance(t *testing.T) {
	w := newWorld(3, 2)
	for i := 1; i <= 5; i++ {
		w.host(i, 2)
		w.node(i, w.hosts[i-1].Status.Devices[0].ID)
	}
	conformance.Test(t, conformance.Subject{
		New:     func(conformance.T) conformance.System { return system{withFake(newWorld(3, 2))} },
		Cluster: *w.cluster, Hosts: w.hosts, Nodes: w.nodes, Resources: []api.Resource{replicated("images", 3), erasure("archive", 2, 1), filesystemOf("home"), clientOf("app", api.ClientCaps{"mon": "allow r", "osd": "allow rw pool=images"}), storeOf("s3"), userOf("app", "s3")},
		Refusals: []conformance.Refusal{
			{Name: "a device with data", Declare: func(w *conformance.World) {
				d := &w.Hosts[0].Status.Devices[1]
				d.Availability, d.Reasons = api.DeviceUnavailable, []string{"it has an ext4 file system"}
				w.Nodes[0].Spec.Devices = append(w.Nodes[0].Spec.Devices, d.ID)
			}},
			{Name: "more copies than hosts", Declare: func(w *conformance.World) {
				w.Resources = append(w.Resources, replicated("wide", 6, func(p *api.Pool) { p.Spec.FailureDomain = "host" }))
			}},
			{Name: "MDS that no host may run", Declare: func(w *conformance.World) {
				w.Resources = append(w.Resources, filesystemOf("away", func(f *api.Filesystem) { f.Spec.Placement.Hosts = []string{"nowhere"} }))
			}},
			{Name: "an address of another host", Declare: func(w *conformance.World) { w.Nodes[0].Spec.StorageNetwork.IPs = []string{"192.168.9.9"} }},
		},
		Rounds: 200,
	})
}

// system is the Ceph in memory for the suite.
type system struct{ *fakeWorld }

func (s system) Driver() engine.Driver { return &Driver{Dial: s.ceph.Dial, Now: radostest.Clock()} }

func (s system) Act(w *conformance.World) {
	s.hosts, s.daemons, s.now, s.cluster = w.Hosts, w.Daemons, w.Now, w.Cluster
	clear(s.mute)
	for i := range s.hosts {
		s.mute[s.hosts[i].Name] = !s.hosts[i].AgentHeard()
	}
	s.agents()
}

func (s system) Ask(_ *conformance.World, d *api.Daemon, cmd engine.Command) error {
	return s.askGateway(d, cmd)
}
