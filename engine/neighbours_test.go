package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// fleet is a view of a cluster with one node and ten daemons on each host.
func fleet(hosts int) *View {
	v := &View{Cluster: &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}}}
	for i := range hosts {
		name := fmt.Sprintf("h%04d", i)
		labels := map[string]string{api.LabelHostname: name}
		v.Hosts = append(v.Hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
		v.Nodes = append(v.Nodes, api.StorageNode{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: api.StorageNodeSpec{NodeSelector: labels}})
		for d := range 10 {
			v.Daemons = append(v.Daemons, api.Daemon{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(name, d)}, Spec: api.DaemonSpec{Host: name}})
		}
	}
	return v
}

func nobody(map[string]bool) []*api.Daemon { return nil }

// What a view remembers of its hosts is never out of date.
func TestUsedHosts_remembered(t *testing.T) {
	v := fleet(3)
	v.AddNeighbours(nil, nobody, nil)
	moved := api.StorageNodeStatus{Host: "h9"}
	after := v.after(&Plan{Nodes: []NodeStatus{{Name: "h0001", Status: moved}}})
	for name, x := range map[string]*View{"as it was made": v, "without changes": v.after(&Plan{}), "with a node elsewhere": after} {
		if diff := cmp.Diff(x.findUsed(newHostIndex(x.Hosts)), x.UsedHosts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if !after.UsedHosts()["h9"] {
		t.Error("the host of the node's new status is missing")
	}
}

// BenchmarkUsedHosts asks for the hosts of a large cluster as often as a run does: once for the neighbours' daemons, once for their
// claims, and four times for what differs and what is told.
func BenchmarkUsedHosts(b *testing.B) {
	for name, forget := range map[string]bool{"found once": false, "found each time": true} {
		b.Run(name, func(b *testing.B) {
			v := fleet(1000)
			for b.Loop() {
				hosts := newHostIndex(v.Hosts)
				v.used = v.findUsed(hosts)
				for range 5 {
					if forget {
						v.used = nil
					}
					if len(v.UsedHosts()) != 1000 {
						b.Fatal("some hosts are missing")
					}
				}
			}
		})
	}
}
