package torus

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestStories: whatever happens to the machines and to what is declared, as long as no store is lost no block is; no torusd goes that
// has blocks; and when all is mended the cluster comes to rest.
func TestStories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		nodes := rapid.IntRange(3, 6).Draw(rt, "nodes")
		w := newWorld(rt, nodes)
		if rapid.Bool().Draw(rt, "given etcd") {
			w.cluster.Spec.Torus.Endpoints = []string{"http://10.9.9.9:2379"}
		}
		for range rapid.IntRange(5, 50).Draw(rt, "steps") {
			w.happen(rt, rapid.IntRange(1, nodes).Draw(rt, "host"))
			w.agents()
			w.round()
			if rapid.Bool().Draw(rt, "move") {
				w.torus.move()
			}
			if w.torus.lost() {
				rt.Fatalf("a block was lost")
			}
		}
		for i := 1; i <= nodes; i++ {
			w.power(i, true)
			w.setMode(i, api.HostActive)
			w.declare(i)
		}
		w.cluster.Spec.Torus.Replication = 2
		if p := w.settle(); !p.Done || w.torus.lost() || len(w.torus.ring) != nodes {
			rt.Fatalf("mended, and not well: %v", decisions(p))
		}
	})
}

func (w *world) declare(i int) {
	if !slices.ContainsFunc(w.nodes, func(n api.StorageNode) bool { return n.Name == fmt.Sprintf("n%d", i) }) {
		w.node(i)
	}
}

// happen lets one thing happen.
func (w *world) happen(rt *rapid.T, i int) {
	switch rapid.SampledFrom([]string{"nothing", "nothing", "write", "write", "off", "on", "maintenance", "drain", "active", "undeclare", "declare", "replication", "volume"}).Draw(rt, "event") {
	case "write":
		w.torus.write()
	case "off":
		w.power(i, false)
	case "on":
		w.power(i, true)
	case "maintenance":
		w.setMode(i, api.HostMaintenance)
	case "drain":
		w.setMode(i, api.HostDrain)
	case "active":
		w.setMode(i, api.HostActive)
	case "undeclare":
		w.undeclare(fmt.Sprintf("n%d", i))
	case "declare":
		w.declare(i)
	case "replication":
		w.cluster.Spec.Torus.Replication = rapid.Int32Range(1, 3).Draw(rt, "replication")
	case "volume":
		if name := fmt.Sprintf("v%d", len(w.volumes)); len(w.volumes) < 3 && w.vol(name) == nil {
			w.volume(name, "1Gi")
		}
	}
}
