package engine

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

func labelled(pairs ...map[string]string) (hosts []api.Host) {
	for i, labels := range pairs {
		hosts = append(hosts, api.Host{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("x", i), Labels: labels}})
	}
	return hosts
}

func TestNearLabels(t *testing.T) {
	type set = map[string]string
	hosts := labelled(
		set{api.LabelHostname: "storage-1", api.LabelRack: "r1", "disk": "ssd"}, set{api.LabelHostname: "storage-2", api.LabelRack: "r2", "disk": "ssd"},
	)
	for name, tt := range map[string]struct {
		selector set
		want     []string
	}{
		"a slip":                     {set{api.LabelHostname: "storage-11"}, []string{api.LabelHostname + "=storage-1"}},
		"equally near":               {set{api.LabelHostname: "storage-3"}, []string{api.LabelHostname + "=storage-1", api.LabelHostname + "=storage-2"}},
		"the domain is left out":     {set{"rack": "r2"}, []string{api.LabelRack + "=r2"}},
		"the key is misspelt":        {set{"dsik": "ssd"}, []string{"disk=ssd"}},
		"only what no host has":      {set{"disk": "ssd", "rack": "r1"}, []string{api.LabelRack + "=r1"}},
		"nothing is like it":         {set{"room": "cellar"}, nil},
		"no letter in common":        {set{"disk": "no"}, nil},
		"each alone, and no one all": {set{api.LabelHostname: "storage-1", api.LabelRack: "r2"}, nil},
	} {
		if got := NearLabels(tt.selector, hosts); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

// TestAwaitHosts_suggests only hosts that no node means, and nothing to a fleet whose machines have yet to join.
func TestAwaitHosts_suggests(t *testing.T) {
	hosts := []api.Host{host("h1"), host("h2"), host("h3")}
	on := func(name, host string) api.StorageNode {
		return node(name, func(n *api.StorageNode) { n.Spec.NodeSelector = map[string]string{api.LabelHostname: host} })
	}
	nodes := []api.StorageNode{on("n1", "h1"), on("n2", "h2"), on("n3", "h33")}
	const bare = "no host has the labels kubernetes.io/hostname=h33: check that the host has joined"
	if got := ResolveNodes(view(hosts, nodes...))[2].Waits; len(got) != 1 || got[0] != bare+"; did you mean kubernetes.io/hostname=h3?" {
		t.Errorf("with h3 free: %q", got)
	}
	if got := ResolveNodes(view(hosts[:2], nodes...))[2].Waits; len(got) != 1 || got[0] != bare {
		t.Errorf("with no host free: %q", got)
	}
	for i := range mostSuggested {
		nodes = append(nodes, on(fmt.Sprint("m", i), fmt.Sprint("later-", i)))
	}
	if got := ResolveNodes(view(hosts, nodes...))[2].Waits; len(got) != 1 || got[0] != bare {
		t.Errorf("with many that wait: %q", got)
	}
}
