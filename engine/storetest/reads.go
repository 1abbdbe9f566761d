package storetest

import (
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

func testNotFound(b *bench) {
	none := types.NamespacedName{Namespace: "default", Name: "none"}
	_, viewErr := b.Store.View(b.ctx, none)
	_, clusterErr := b.Store.Cluster(b.ctx, none)
	_, hostErr := b.Store.Host(b.ctx, "none")
	_, secretErr := b.Store.Secrets(b.key).Secret(b.ctx, "none")
	for what, err := range map[string]error{
		"View": viewErr, "Cluster": clusterErr, "Host": hostErr, "Secret": secretErr, "Adopt": b.Store.Adopt(b.ctx, none),
		"PutClusterStatus": b.Store.PutClusterStatus(b.ctx, none, func(*api.StorageClusterStatus) {}),
	} {
		if !errors.Is(err, engine.ErrNotFound) {
			b.Errorf("%s of a cluster that is not there: %v", what, err)
		}
	}
	if err := b.Store.PutNodeStatus(b.ctx, "default", engine.NodeStatus{Name: "none"}); err != nil {
		b.Errorf("status of a node that is gone: %v", err)
	}
	if err := b.Store.RemoveDaemon(b.ctx, "default", "none"); err != nil {
		b.Errorf("removal of a daemon that is gone: %v", err)
	}
}

func testView(b *bench) {
	other := newCluster(b.name + "-other")
	b.must(b.World.Create(b.ctx, other))
	for _, name := range []string{"h3", "h2", "h1"} {
		h := b.newHost(name)
		b.must(b.World.Create(b.ctx, h))
		h.Status = api.HostStatus{BootID: "b", Devices: []api.Device{{ID: "d1", Availability: api.DeviceAvailable}}}
		b.must(b.World.UpdateStatus(b.ctx, h))
	}
	stranger := b.newNode("n0", b.name+"-h1")
	stranger.Spec.Cluster = other.Name
	// Of two nodes that have the same device, the older one holds it; within a second, that is the first by name.
	// What others have on a host that the cluster does not use is none of its business.
	far := b.newNode("n9", b.name+"-h3")
	far.Spec.Cluster = other.Name
	for _, n := range []*api.StorageNode{far, stranger, b.newNode("n2", b.name+"-h2"), b.newNode("n1", b.name+"-h1")} {
		b.must(b.World.Create(b.ctx, n))
	}
	for _, name := range []string{"m2", "m1"} {
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change(name, api.WantRunning)))
	}
	b.must(b.Store.PutDaemon(b.ctx, other, engine.DaemonChange{New: true, Daemon: b.change("m0", api.WantRunning).Daemon}))
	elsewhere := b.change("m9", api.WantRunning)
	elsewhere.Daemon.Spec.Host = b.name + "-h3"
	b.must(b.Store.PutDaemon(b.ctx, other, elsewhere))
	b.must(b.Store.PutStatus(b.ctx, b.cluster, api.StorageStatusStatus{Type: api.StorageCeph, Health: "HEALTH_OK"}))
	for _, s := range []string{"s2", "s1"} {
		want := engine.SecretWant{Name: b.name + "-" + s, Annotations: map[string]string{"holdfast.io/kind": "test"}}
		b.must(b.Store.MakeSecret(b.ctx, b.cluster, want, secretData))
	}
	b.eventually("hosts and nodes are seen", func() bool {
		v := b.view()
		return len(v.Nodes) == 2 && len(b.claims(v)) == 3
	})
	b.checkView(b.view())
}

// claims are the view's claims to the hosts of this test.
func (b *bench) claims(v *engine.View) []string {
	var all []string
	for _, c := range v.Claims {
		if strings.HasPrefix(c.Host, b.name+"-") {
			all = append(all, fmt.Sprintf("%s %s %s", c.Host, c.DeviceID, c.Node.Name))
		}
	}
	return all
}

func (b *bench) checkView(v *engine.View) {
	var hosts, secrets, others []string
	for i := range v.Others {
		if strings.HasPrefix(v.Others[i].Name, b.name+"-") {
			others = append(others, v.Others[i].Name)
		}
	}
	for i := range v.Hosts {
		if strings.HasPrefix(v.Hosts[i].Name, b.name+"-") {
			hosts = append(hosts, v.Hosts[i].Name)
		}
	}
	for _, s := range v.Secrets {
		secrets = append(secrets, fmt.Sprint(s.Name, s.Keys, s.Annotations["holdfast.io/kind"]))
	}
	have := strings.ReplaceAll(strings.Join([]string{
		v.Cluster.Name, strings.Join(hosts, " "), names(v.Nodes), names(v.Daemons), strings.Join(others, " "), v.Status.Status.Health,
		strings.Join(secrets, " "), strings.Join(b.claims(v), ", "),
	}, "\n"), b.name, "st")
	want := `st
st-h1 st-h2 st-h3
st-n1 st-n2
st-m1 st-m2
st-m0
HEALTH_OK
st-s1[a b]test st-s2[a b]test
st-h1 d1 st-n0, st-h1 d1 st-n1, st-h2 d1 st-n2`
	if have != want {
		b.Errorf("view:\n%s\nwant:\n%s", have, want)
	}
}

func testReadYourWrites(b *bench) {
	b.must(b.World.Create(b.ctx, b.newNode("n1", b.name+"-h1")))
	b.eventually("the node is seen", func() bool { return len(b.view().Nodes) == 1 })
	for i := range 20 {
		name := fmt.Sprintf("m%d", i)
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change(name, api.WantPrepared)))
		if n := len(b.view().Daemons); n != i+1 {
			b.Fatalf("%d daemons are seen, %d were written", n, i+1)
		}
		b.must(b.Store.PutDaemon(b.ctx, b.cluster, b.change(name, api.WantRunning)))
		b.must(b.Store.PutStatus(b.ctx, b.cluster, api.StorageStatusStatus{Message: name}))
		b.must(b.Store.PutNodeStatus(b.ctx, "default", engine.NodeStatus{Name: b.name + "-n1", Status: statusOf("h", name)}))
		b.must(b.Store.PutClusterStatus(b.ctx, b.key, func(s *api.StorageClusterStatus) { s.ObservedGeneration = int64(i + 1) }))
		b.must(b.Store.MakeSecret(b.ctx, b.cluster, engine.SecretWant{Name: b.name + name}, secretData))
		v := b.view()
		if v.Status.Status.Message != name || v.Nodes[0].Status.Devices[0].ID != name || len(v.Secrets) != i+1 ||
			v.Cluster.Status.ObservedGeneration != int64(i+1) {
			b.Fatalf("round %d: the view is older than the writes: %+v", i, v)
		}
		for _, d := range v.Daemons {
			if d.Spec.State != api.WantRunning {
				b.Fatalf("round %d: daemon %s is seen as %s", i, d.Name, d.Spec.State)
			}
		}
	}
	for i := range 20 {
		name := fmt.Sprintf("%s-m%d", b.name, i)
		b.must(b.Store.RemoveDaemon(b.ctx, "default", name))
		for _, d := range b.view().Daemons {
			if d.Name == name && d.DeletionTimestamp == nil {
				b.Fatalf("daemon %s is seen as not deleted", name)
			}
		}
	}
}

func testNotify(b *bench) {
	changes := make(chan engine.Change, 1000)
	b.Store.Notify(b.ctx, func(c engine.Change) { changes <- c })
	b.passOver(changes)
	// expect does something and waits until it is told of; another change before it must not be told.
	expect := func(kind, object string, err error) {
		b.Helper()
		b.must(err)
		select {
		case c := <-changes:
			if c.Cluster != b.key || c.Kind != kind || c.Object != object {
				b.Errorf("told of %+v, want %s %s", c, kind, object)
			}
		case <-b.ctx.Done():
			b.Fatalf("nobody was told of %s %s", kind, object)
		}
	}
	n := b.newNode("n1", b.name+"-h1")
	expect(engine.KindNode, "storagenode/"+n.Name, b.World.Create(b.ctx, n))
	h := b.newHost("h1")
	// A new host is told to all clusters, those of other tests among them.
	b.must(b.World.Create(b.ctx, h))
	b.drain(changes, "host/"+h.Name)

	h.Status.Devices = []api.Device{{ID: "d1", Availability: api.DeviceAvailable}}
	expect(engine.KindHost, "host/"+h.Name, b.World.UpdateStatus(b.ctx, h))
	// A host in another mode is told to those that use it: what one of them places may move there, or away.
	b.must(b.World.Get(b.ctx, h))
	h.Spec.Mode = api.HostDrain
	expect(engine.KindHost, "host/"+h.Name, b.World.Update(b.ctx, h))
	// Of what the engine itself writes into a status nobody is told.
	b.must(b.Store.PutClusterStatus(b.ctx, b.key, func(s *api.StorageClusterStatus) { s.ObservedGeneration = 7 }))
	b.must(b.Store.PutNodeStatus(b.ctx, "default", engine.NodeStatus{Name: n.Name, Status: statusOf(h.Name, "d1")}))
	b.must(b.Store.PutStatus(b.ctx, b.cluster, api.StorageStatusStatus{Health: "x"}))
	d := b.change("m1", api.WantRunning)
	expect(engine.KindDaemon, "daemon/"+d.Daemon.Name, b.Store.PutDaemon(b.ctx, b.cluster, d))
	have := b.daemon("m1")
	have.Status.State = api.DaemonRunning
	expect(engine.KindDaemon, "daemon/"+d.Daemon.Name, b.World.UpdateStatus(b.ctx, have))
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name}}
	b.must(b.World.Get(b.ctx, c))
	c.Spec.Interval.Duration *= 2
	expect(engine.KindCluster, "storagecluster/"+b.name, b.World.Update(b.ctx, c))
	expect(engine.KindNode, "storagenode/"+n.Name, b.World.Delete(b.ctx, n))
}

// passOver takes the changes that were made before now: those of clusters are told in order, so they come before that of a
// new one.
func (b *bench) passOver(changes chan engine.Change) {
	b.Helper()
	last := newCluster(b.name + "-last")
	b.must(b.World.Create(b.ctx, last))
	for {
		select {
		case c := <-changes:
			if c.Cluster.Name == last.Name {
				return
			}
		case <-b.ctx.Done():
			b.Fatalf("nobody was told of %s", last.Name)
		}
	}
}

// drain takes the changes of one object until this test's cluster was told of it, and those of other clusters after it.
func (b *bench) drain(changes chan engine.Change, object string) {
	told := map[types.NamespacedName]bool{}
	clusters, err := b.Store.Clusters(b.ctx)
	b.must(err)
	for len(told) < len(clusters) {
		select {
		case c := <-changes:
			if c.Object != object {
				b.Errorf("told of %+v, want %s", c, object)
			}
			told[c.Cluster] = true
		case <-b.ctx.Done():
			b.Fatalf("%d of %d clusters were told of %s", len(told), len(clusters), object)
		}
	}
}
