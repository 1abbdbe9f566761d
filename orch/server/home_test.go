package server_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/server"
	"github.com/holdfast-storage/holdfast/orch/wire"
	"github.com/holdfast-storage/holdfast/propose"
)

// home is a cluster at the real API server. Its planner is a stand-in, which has nothing against
// anything: what is asked of the planner has tests of its own.
type home struct {
	*testing.T
	admin client.Client
	ns    string
	hosts []string
	*server.Handler
	// asked answers for the storage system; nil: at once.
	asked func(context.Context) error
}

// newHome declares a cluster with two hosts, of which the first has three disks.
func newHome(t *testing.T) *home {
	t.Helper()
	x := &home{T: t}
	var err error
	if x.admin, err = newClient(config); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "orch-"}}
	x.create(ns)
	x.ns = ns.Name
	x.create(x.cluster("ceph"))
	for _, name := range []string{"h1-" + x.ns, "h2-" + x.ns} {
		h := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name}}}
		n := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
		n.Spec.Type, n.Spec.Cluster, n.Spec.NodeSelector = api.StorageCeph, "ceph", h.Labels
		x.create(h)
		for _, id := range []string{"d1", "d2", "d3"} {
			d := api.Device{ID: id, Path: "/dev/" + id, Kind: api.DeviceDisk, Availability: api.DeviceAvailable}
			h.Status.Devices = append(h.Status.Devices, d)
		}
		if err := x.admin.Status().Update(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		x.create(n)
		n.Status.Host = name
		n.Status.Devices = []api.ClaimedDevice{{Name: "d1", ID: "d1"}, {Name: "d2", ID: "d2"}}
		if err := x.admin.Status().Update(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		x.hosts = append(x.hosts, name)
	}
	x.Handler = &server.Handler{
		Store: x, Home: x, Leader: "s1", Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Clients: &server.Clients{InNameOf: func(user string, groups []string) (client.Client, error) {
			c := rest.CopyConfig(config)
			c.QPS, c.Impersonate = -1, rest.ImpersonationConfig{UserName: user, Groups: groups}
			return newClient(c)
		}},
	}
	return x
}

func (x *home) cluster(name string) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
	c.Spec.Type, c.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	c.Spec.Interval = metav1.Duration{Duration: time.Minute}
	c.Spec.Ceph.Mon.Count, c.Spec.Ceph.Mgr.Count = 3, 2
	c.Spec.Ceph.Orch = &api.CephOrchSpec{Conflicts: api.CephOrchTake}
	return c
}

// osd has an OSD run on a disk of a host.
func (x *home) osd(id, host, device string) *api.Daemon {
	d := &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: "ceph-osd-" + id}}
	d.Spec = api.DaemonSpec{
		Cluster: "ceph", Type: "ceph-osd", ID: id, Host: host, State: api.WantRunning, Command: []string{"true"},
		Devices: []api.DaemonDevice{{ID: device}},
	}
	return d
}

func (x *home) create(o client.Object) {
	x.Helper()
	if err := x.admin.Create(x.Context(), o); err != nil {
		x.Fatal(err)
	}
}

// View reads the cluster from the API.
func (x *home) View(ctx context.Context, name types.NamespacedName) (*engine.View, error) {
	v := &engine.View{Cluster: &api.StorageCluster{}}
	if err := x.admin.Get(ctx, name, v.Cluster); err != nil {
		if apierrors.IsNotFound(err) {
			err = engine.ErrNotFound
		}
		return nil, err
	}
	var nodes api.StorageNodeList
	var hosts api.HostList
	var daemons api.DaemonList
	var groups api.DriveGroupList
	var actions api.ActionList
	for _, list := range []client.ObjectList{&nodes, &daemons, &groups, &actions} {
		if err := x.admin.List(ctx, list, client.InNamespace(name.Namespace)); err != nil {
			return nil, err
		}
	}
	if err := x.admin.List(ctx, &hosts); err != nil {
		return nil, err
	}
	v.Nodes, v.Hosts, v.Daemons, v.Actions = nodes.Items, hosts.Items, daemons.Items, actions.Items
	for i := range groups.Items {
		v.Resources = append(v.Resources, &groups.Items[i])
	}
	return v, nil
}

func (x *home) wait(ctx context.Context) error {
	if x.asked == nil {
		return nil
	}
	return x.asked(ctx)
}

// Propose has nothing against a request.
func (x *home) Propose(ctx context.Context, r propose.Request, _ time.Duration) (*propose.Proposal, error) {
	return &propose.Proposal{Targets: r.Targets}, x.wait(ctx)
}

// Suppose has nothing against a change.
func (x *home) Suppose(
	ctx context.Context, _ api.StorageType, name types.NamespacedName, change func(*engine.View),
) (*engine.View, *engine.Plan, error) {
	v, err := x.View(ctx, name)
	if err == nil && change != nil {
		change(v)
	}
	if err == nil {
		err = x.wait(ctx)
	}
	return v, &engine.Plan{}, err
}

// call calls a method. args is JSON.
func (x *home) call(method, id, args string) wire.Reply {
	x.Helper()
	return x.callOf("ceph", method, id, args)
}

func (x *home) callOf(cluster, method, id, args string) (reply wire.Reply) {
	x.Helper()
	w := httptest.NewRecorder()
	path := wire.Path(types.NamespacedName{Namespace: x.ns, Name: cluster}, method)
	r := httptest.NewRequestWithContext(x.Context(), http.MethodPost, path, strings.NewReader(args))
	r.Header.Set(wire.HeaderCall, id)
	began := time.Now()
	x.ServeHTTP(w, r)
	if took := time.Since(began); took > 2500*time.Millisecond {
		x.Errorf("%s took %v", method, took)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &reply); err != nil {
		x.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return reply
}

// actions are all Actions of the namespace of the cluster.
func (x *home) actions() []api.Action {
	x.Helper()
	var list api.ActionList
	if err := x.admin.List(x.Context(), &list, client.InNamespace(x.ns)); err != nil {
		x.Fatal(err)
	}
	return list.Items
}
