package storetest

import (
	"errors"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func (b *bench) named(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: b.name + "-" + name}
}

// onHost reads the host h1 with everything on it.
func (b *bench) onHost() *engine.HostView {
	b.Helper()
	v, err := b.Store.Host(b.ctx, b.name+"-h1")
	b.must(err)
	return v
}

func testHost(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	b.must(b.World.Create(b.ctx, b.newHost("h2")))
	for _, n := range []*api.StorageNode{b.newNode("n2", b.name+"-h1"), b.newNode("n1", b.name+"-h1"), b.newNode("n0", b.name+"-h2")} {
		b.must(b.World.Create(b.ctx, n))
	}
	for _, name := range []string{"m2", "m1"} {
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change(name, api.WantRunning)))
	}
	elsewhere := b.change("m0", api.WantRunning)
	elsewhere.Daemon.Spec.Host = b.name + "-h2"
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, elsewhere))
	b.eventually("host and nodes are seen", func() bool {
		v, err := b.Store.Host(b.ctx, b.name+"-h1")
		return err == nil && len(v.Nodes) == 2
	})
	hosts, err := b.Store.Hosts(b.ctx)
	b.must(err)
	hosts = slices.DeleteFunc(hosts, func(h api.Host) bool { return !strings.HasPrefix(h.Name, b.name+"-") })
	if got, want := names(hosts), b.name+"-h1 "+b.name+"-h2"; got != want {
		b.Errorf("hosts %s, want %s", got, want)
	}
	v := b.onHost()
	if v.Host.Name != b.name+"-h1" || names(v.Nodes) != b.name+"-n1 "+b.name+"-n2" || names(v.Daemons) != b.name+"-m1 "+b.name+"-m2" {
		b.Errorf("host %s with nodes %s and daemons %s", v.Host.Name, names(v.Nodes), names(v.Daemons))
	}
	if len(v.Clusters) != 1 || v.Clusters[0] != b.key {
		b.Errorf("clusters = %v", v.Clusters)
	}
}

func testPutHost(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	put := func() string {
		b.must(b.Store.PutHost(b.ctx, b.name+"-h1", func(h *api.Host) {
			h.Spec.Mode, h.Spec.Reason = api.HostMaintenance, "a new fan"
			h.Annotations = map[string]string{"holdfast.io/test": "yes"}
		}))
		v := b.onHost()
		if v.Host.Spec.Mode != api.HostMaintenance || v.Host.Spec.Reason != "a new fan" || v.Host.Annotations["holdfast.io/test"] != "yes" {
			b.Errorf("the host after the write: %+v %v", v.Host.Spec, v.Host.Annotations)
		}
		return v.Host.ResourceVersion
	}
	if first, second := put(), put(); first != second {
		b.Errorf("versions after the same writes: %s and %s", first, second)
	}
	if err := b.Store.PutHost(b.ctx, b.name+"-none", func(*api.Host) {}); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("a host that is not there: %v", err)
	}
}

func testRemoveHost(b *bench) {
	b.must(b.World.Create(b.ctx, b.newHost("h1")))
	for range 2 {
		b.must(b.Store.RemoveHost(b.ctx, b.name+"-h1"))
	}
	if _, err := b.Store.Host(b.ctx, b.name+"-h1"); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("the host after its removal: %v", err)
	}
}

func testPutNode(b *bench) {
	b.must(b.World.Create(b.ctx, b.newNode("n1", b.name+"-h1")))
	move := func(s *api.StorageNodeSpec) { s.NodeSelector = map[string]string{api.LabelHostname: b.name + "-h2"} }
	node := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-n1"}}
	put := func() string {
		b.must(b.Store.PutNode(b.ctx, b.named("n1"), move))
		b.must(b.World.Get(b.ctx, node))
		if node.Spec.NodeSelector[api.LabelHostname] != b.name+"-h2" {
			b.Errorf("selector = %v", node.Spec.NodeSelector)
		}
		return node.ResourceVersion
	}
	if first, second := put(), put(); first != second {
		b.Errorf("versions after the same writes: %s and %s", first, second)
	}
	if err := b.Store.PutNode(b.ctx, b.named("none"), move); !errors.Is(err, engine.ErrNotFound) {
		b.Errorf("a node that is not there: %v", err)
	}
	for range 2 {
		b.must(b.Store.RemoveNode(b.ctx, b.named("n1")))
	}
	if nodes := b.view().Nodes; len(nodes) != 0 {
		b.Errorf("nodes after the removal: %s", names(nodes))
	}
}

func testReleaseDaemon(b *bench) {
	b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change("m1", api.WantRunning)))
	b.must(b.Store.ReleaseDaemon(b.ctx, b.named("m1")))
	if d := b.daemon("m1"); len(d.Finalizers) == 0 {
		b.Error("a daemon that was not deleted lost its finalizer")
	}
	b.must(b.Store.RemoveDaemon(b.ctx, "default", b.name+"-m1"))
	for range 2 {
		b.must(b.Store.ReleaseDaemon(b.ctx, b.named("m1")))
	}
	if daemons := b.view().Daemons; len(daemons) != 0 {
		b.Errorf("daemons after the release: %s", names(daemons))
	}
}
