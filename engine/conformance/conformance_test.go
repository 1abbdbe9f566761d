package conformance

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/engine/sim"
)

// toy is the simulator's storage system; fault makes its driver a bad one.
type toy struct {
	*sim.Toy
	fault func(engine.Driver) engine.Driver
}

func (s toy) Driver() engine.Driver { return s.fault(s.Toy) }

func (s toy) Act(w *World) {
	w.Agents()
	var running []api.Daemon
	for _, name := range slices.Sorted(maps.Keys(w.Daemons)) {
		if d := w.Daemons[name]; d.Status.State == api.DaemonRunning {
			running = append(running, *d)
		}
	}
	s.Step(w.Now, running)
	for i := range running {
		s.report(w, &running[i])
	}
}

func (s toy) report(w *World, d *api.Daemon) {
	if text, err := s.Report(d); err == nil && d.Spec.Parameters[api.ParameterReport] != "" {
		w.Daemons[d.Name].Status.Report = text
	}
}

func (s toy) Ask(w *World, d *api.Daemon, cmd engine.Command) error {
	_, err := s.Command(d, cmd)
	s.report(w, d)
	return err
}

func subject(fault func(engine.Driver) engine.Driver) Subject {
	s := Subject{
		New:     func(T) System { return toy{sim.NewToy(), fault} },
		Cluster: api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c", UID: "uid-c", Generation: 1}},
		Refusals: []Refusal{{"a device that is not there", func(w *World) {
			n := w.Nodes[0].DeepCopy()
			n.Name, n.Spec.Devices = "n9", []string{"wwn-9", "wwn-9"}
			w.Nodes = append(w.Nodes, *n)
		}}},
	}
	s.Cluster.Spec.Type = sim.ToyType
	for i := 1; i <= 4; i++ {
		h := api.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("h", i), Labels: map[string]string{api.LabelHostname: fmt.Sprint("h", i)}}}
		h.Status.Addresses, h.Status.Devices = []string{fmt.Sprint("10.0.0.", i)}, []api.Device{sim.Disk(fmt.Sprint("wwn-", i), "/dev/sdb")}
		n := api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("n", i), Generation: 1}}
		n.Spec = api.StorageNodeSpec{Type: sim.ToyType, Cluster: "c", NodeSelector: h.Labels, Devices: []string{fmt.Sprint("wwn-", i)}}
		s.Hosts, s.Nodes = append(s.Hosts, h), append(s.Nodes, n)
	}
	v := api.Volume{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "v", Generation: 1}}
	v.Spec = api.VolumeSpec{Cluster: "c", Size: resource.MustParse("1Gi")}
	s.Resources = []api.Resource{&v}
	return s
}

func sound(d engine.Driver) engine.Driver { return d }

func TestToy(t *testing.T) { Test(t, subject(sound)) }
