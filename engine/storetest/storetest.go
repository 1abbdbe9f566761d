// Package storetest is the suite that every engine.Store passes: reading one's own writes, locks,
// refused stale writes, events that are written once, and the end of clusters, daemons and hosts.
package storetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// Object is a resource of package api.
type Object interface {
	metav1.Object
	runtime.Object
}

// World is what administrators and agents do beside the Store.
type World interface {
	Create(ctx context.Context, o Object) error
	// Update writes metadata and spec of an object that was read or created before.
	Update(ctx context.Context, o Object) error
	UpdateStatus(ctx context.Context, o Object) error
	Delete(ctx context.Context, o Object) error
	// Get fills in the object of this name.
	Get(ctx context.Context, o Object) error
	// Events returns the events of a cluster in their order.
	Events(ctx context.Context, cluster types.NamespacedName) ([]api.ClusterEvent, error)
	// Lead makes the server of the Store under test the leader.
	Lead(ctx context.Context) error
	// TakeLock makes holder the leader, and gives it a cluster's lock.
	TakeLock(ctx context.Context, cluster types.NamespacedName, holder string) error
	// Serve has the agent of a host, which is there, carry out commands by perform until ctx ends.
	Serve(ctx context.Context, host string, perform Perform) error
}

// Perform carries out a command on the host of a daemon.
type Perform func(daemon string, cmd engine.Command) (message string, err error)

// Backend is a Store under test, and the world around it. Several tests share one.
type Backend struct {
	Store engine.Store
	World World
}

// Run runs the suite. What it makes in b carries names of its own for each test.
func Run(t *testing.T, b Backend) {
	for _, test := range []struct {
		name string
		run  func(*bench)
	}{
		{"NotFound", testNotFound},
		{"View", testView},
		{"ReadYourWrites", testReadYourWrites},
		{"EqualWritesWriteNothing", testEqualWrites},
		{"DaemonKeepsStatus", testDaemonKeepsStatus},
		{"Memory", testMemory},
		{"Service", testService},
		{"Annotations", testAnnotations},
		{"DaemonGone", testDaemonGone},
		{"StaleNodeStatus", testStaleNodeStatus},
		{"WritesBesideTheAgent", testWritesBesideTheAgent},
		{"Secrets", testSecrets},
		{"RemoveDaemon", testRemoveDaemon},
		{"Events", testEvents},
		{"Told", testTold},
		{"EventsAreBounded", testEventsAreBounded},
		{"FinishRetain", func(b *bench) { testFinish(b, api.DeletionRetain) }},
		{"FinishWipe", func(b *bench) { testFinish(b, api.DeletionWipe) }},
		{"Host", testHost},
		{"PutHost", testPutHost},
		{"RemoveHost", testRemoveHost},
		{"PutNode", testPutNode},
		{"ReleaseDaemon", testReleaseDaemon},
		{"Lock", testLock},
		{"Notify", testNotify},
		{"Actions", testActions},
		{"Ask", testAsk},
		{"AskNobody", testAskNobody},
		{"Reports", testReports},
		{"Resources", testResources},
		{"StaleResource", testStaleResource},
		{"ResourcesOutliveTheirCluster", testResourcesOutlive},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(newBench(t, b)) })
	}
}

// bench is one test's place: a cluster of its own.
type bench struct {
	*testing.T
	Backend
	ctx     context.Context
	name    string
	key     types.NamespacedName
	cluster *api.StorageCluster
}

var number atomic.Int64

// limit bounds each test. It is only reached by a Store that does not work, however busy the machine is.
const limit = 5 * time.Minute

func newBench(t *testing.T, backend Backend) *bench {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	name := fmt.Sprintf("st%d", number.Add(1))
	b := &bench{T: t, Backend: backend, ctx: ctx, name: name, key: types.NamespacedName{Namespace: "default", Name: name}}
	b.cluster = newCluster(name)
	b.must(b.World.Lead(ctx))
	b.must(b.World.Create(ctx, b.cluster))
	b.eventually("the store shows the cluster", func() bool {
		_, err := b.Store.Cluster(ctx, b.key)
		return err == nil
	})
	return b
}

func newCluster(name string) *api.StorageCluster {
	return &api.StorageCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: api.StorageClusterSpec{
			Type: api.StorageCeph, Interval: metav1.Duration{Duration: 10 * time.Second}, DeletionPolicy: api.DeletionRetain,
			Ceph: &api.CephSpec{Mon: api.CephMonSpec{Count: 1}, Mgr: api.CephMgrSpec{Count: 1}},
		},
	}
}

func (b *bench) newNode(name, host string) *api.StorageNode {
	return &api.StorageNode{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-" + name},
		Spec: api.StorageNodeSpec{
			Type: api.StorageCeph, Cluster: b.name, NodeSelector: map[string]string{api.LabelHostname: host},
			Devices: []string{"d1"},
		},
	}
}

func (b *bench) newHost(name string) *api.Host {
	return &api.Host{ObjectMeta: metav1.ObjectMeta{
		Name: b.name + "-" + name, Labels: map[string]string{api.LabelHostname: b.name + "-" + name},
	}}
}

func (b *bench) change(name string, state api.WantedState) engine.DaemonChange {
	return engine.DaemonChange{Reason: "test", New: true, Daemon: api.Daemon{
		ObjectMeta: metav1.ObjectMeta{Name: b.name + "-" + name},
		Spec: api.DaemonSpec{
			Cluster: b.name, Type: "ceph-mon", ID: name, Host: b.name + "-h1", State: state, Command: []string{"/bin/true"},
		},
	}}
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) view() *engine.View {
	b.Helper()
	v, err := b.Store.View(b.ctx, b.key)
	b.must(err)
	return v
}

func (b *bench) daemon(name string) *api.Daemon {
	b.Helper()
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: b.name + "-" + name}}
	b.must(b.World.Get(b.ctx, d))
	return d
}

// eventually waits for what a Store may learn a little later: what others write.
func (b *bench) eventually(what string, ok func() bool) {
	b.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-b.ctx.Done():
			b.Fatalf("%s: did not come true", what)
		case <-tick.C:
		}
	}
}

func secretData() (map[string][]byte, error) {
	return map[string][]byte{"b": []byte("2"), "a": []byte("1")}, nil
}

func names[T any, P interface {
	*T
	metav1.Object
}](items []T) string {
	var all []string
	for i := range items {
		all = append(all, P(&items[i]).GetName())
	}
	return strings.Join(all, " ")
}

func statusOf(host, device string) api.StorageNodeStatus {
	return api.StorageNodeStatus{Host: host, Devices: []api.ClaimedDevice{{Name: device, ID: device}}}
}

func sortedKeys[V any](m map[string]V) string { return strings.Join(slices.Sorted(maps.Keys(m)), " ") }
