package engine

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestResolveNodes_neverTwoOwners: whatever nodes of whatever clusters ask for, and whatever of it was recorded before, each
// cluster's own view gives a device to one node at most, and to a daemon's cluster alone.
func TestResolveNodes_neverTwoOwners(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := []api.Host{host("h1", disk("d1", "/dev/sdb"), disk("d2", "/dev/sdc")), host("h2", disk("d1", "/dev/sdb"))}
		clusters := []api.StorageCluster{cluster("c"), cluster("d")}
		var nodes []api.StorageNode
		for i := range rapid.IntRange(1, 5).Draw(t, "nodes") {
			nodes = append(nodes, drawNode(t, fmt.Sprintf("n%d", i)))
		}
		var daemons []api.Daemon
		if rapid.Bool().Draw(t, "daemon") {
			daemons = append(daemons, api.Daemon{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"},
				Spec:       api.DaemonSpec{Cluster: "c", Host: "h1", Devices: []api.DaemonDevice{{Name: "block", ID: "d1"}}},
			})
		}
		owner := map[string]string{}
		for i := range clusters {
			v := &View{Cluster: &clusters[i], Hosts: hosts}
			for j := range nodes {
				if ClusterOf(&nodes[j], clusters) == clusters[i].Name {
					v.Nodes = append(v.Nodes, nodes[j])
				}
			}
			v.AddNeighbours(nodes, func(map[string]bool) []*api.Daemon { return pointers(daemons) }, clusters)
			for _, r := range ResolveNodes(v) {
				for _, d := range r.Devices {
					if d.ID == "" || d.Problem != "" {
						continue
					}
					device := r.Host.Name + "/" + d.ID
					if other, taken := owner[device]; taken {
						t.Fatalf("device %s belongs to %s and to %s", device, other, r.Node.Name)
					}
					owner[device] = r.Node.Name
					if device == "h1/d1" && len(daemons) > 0 && clusters[i].Name != "c" {
						t.Fatalf("node %s of cluster d was given a device that a daemon of cluster c uses", r.Node.Name)
					}
				}
			}
		}
	})
}

func pointers[T any](list []T) []*T {
	var all []*T
	for i := range list {
		all = append(all, &list[i])
	}
	return all
}

func drawNode(t *rapid.T, name string) api.StorageNode {
	return node(name, func(n *api.StorageNode) {
		n.Spec.Cluster = rapid.SampledFrom([]string{"c", "d"}).Draw(t, "cluster")
		n.Spec.NodeSelector[api.LabelHostname] = rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host")
		n.Spec.Devices = rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"d1", "d2", "/dev/sdb", "/dev/sdc"}), 0, 4,
			func(s string) string { return s }).Draw(t, "devices")
		n.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(rapid.IntRange(0, 2).Draw(t, "age")) * time.Second))
		if len(n.Spec.Devices) > 0 && rapid.Bool().Draw(t, "recorded") {
			n.Status.Host = n.Spec.NodeSelector[api.LabelHostname]
			n.Status.Devices = []api.ClaimedDevice{{Name: n.Spec.Devices[0], ID: rapid.SampledFrom([]string{"d1", "d2"}).Draw(t, "id")}}
		}
	})
}

func TestDiff_ofAViewWithItselfIsEmpty(t *testing.T) {
	hosts := []api.Host{host("h1", disk("d1", "/dev/sdb"))}
	v := view(hosts, node("n", devices("d1")))
	v.Daemons = []api.Daemon{{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: api.DaemonSpec{Host: "h1"}}}
	if events := Diff(v, v, epoch); len(events) > 0 {
		t.Errorf("events = %+v", events)
	}
}

// BenchmarkResolveNodes is the part of a run without changes that grows with hosts and daemons.
func BenchmarkResolveNodes(b *testing.B) {
	var hosts []api.Host
	var nodes []api.StorageNode
	var daemons []api.Daemon
	for i := range 1000 {
		name := fmt.Sprintf("h%04d", i)
		hosts = append(hosts, host(name, disk("d1", "/dev/sdb"), disk("d2", "/dev/sdc")))
		nodes = append(nodes, node(name, devices("d1", "d2"), recorded(name, "d1", "d1"), recorded(name, "d2", "d2"),
			func(n *api.StorageNode) { n.Spec.NodeSelector[api.LabelHostname] = name }))
		for j := range 10 {
			daemons = append(daemons, api.Daemon{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint(name, j)},
				Spec:       api.DaemonSpec{Cluster: "c", Host: name, Devices: []api.DaemonDevice{{Name: "block", ID: fmt.Sprint("d", j)}}},
			})
		}
	}
	v := view(hosts, nodes...)
	for b.Loop() {
		v.Claims = ClaimsOf(nodes, pointers(daemons), hosts, []api.StorageCluster{*v.Cluster})
		ResolveNodes(v)
	}
}
