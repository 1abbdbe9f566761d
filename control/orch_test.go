package control_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/internal/fence"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// TestOrch_rights: in the name of 'ceph orch' of a cluster the leader can declare services of that
// cluster, and reach no other cluster, no key, no machine that another cluster uses, and destroy
// nothing. The cases follow each other: a later one finds what an earlier one made.
func TestOrch_rights(t *testing.T) {
	x := newOrchRights(t)
	for _, test := range slices.Concat(x.ofCluster(), x.ofHosts(), x.ofActions()) {
		t.Run(test.name, func(t *testing.T) {
			err := test.do()
			refused := apierrors.IsForbidden(err) || apierrors.IsMethodNotSupported(err)
			if (err == nil) != test.allowed || err != nil && !refused {
				t.Errorf("%v, want allowed %v", err, test.allowed)
			}
			if err != nil && strings.Contains(err.Error(), "User \"\"") {
				t.Error(err)
			}
		})
	}
	t.Run("a fence that is lost", func(t *testing.T) {
		late := newClient(t, fence.Config(x.config, fence.Token{Name: "nobody", Value: "lost"}))
		fewer := []byte(`{"spec":{"ceph":{"mon":{"count":1}}}}`)
		err := late.Patch(x.ctx, x.cluster("a"), client.RawPatch("application/merge-patch+json", fewer))
		if err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%v", err)
		}
	})
}

// orchCase is a request in the name of 'ceph orch' of cluster a.
type orchCase struct {
	name    string
	allowed bool
	do      func() error
}

// orchRights has two clusters, a and b, and three hosts: cluster a alone uses mine, both have daemons on
// theirs, and b declares given.
type orchRights struct {
	ctx                 context.Context
	ns                  string
	mine, theirs, given string
	foreign             *api.Action
	config              *rest.Config
	orch                client.Client
}

func newOrchRights(t *testing.T) *orchRights {
	t.Helper()
	s, _ := sharedServer(t)
	admin := newClient(t, s.Config())
	ns := newNamespace(t, admin)
	x := &orchRights{ctx: t.Context(), ns: ns, mine: "mine-" + ns, theirs: "theirs-" + ns, given: "given-" + ns}
	store := &api.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "chooses"}}
	store.Spec.Cluster = "b"
	store.Spec.Gateways.Placement.Labels = map[string]string{wire.LabelPrefix + "theirs": ""}
	x.foreign = x.act(ns, "daemon.stop", "a", "", "daemon/da")
	x.foreign.GenerateName, x.foreign.Name = "", "foreign"
	for _, o := range []client.Object{
		x.cluster("a"), x.cluster("b"), x.fs("wiped", "a", api.DeletionWipe), x.fs("kept", "a", api.DeletionRetain),
		x.fs("other", "b", api.DeletionRetain), x.host(x.mine), x.host(x.theirs), x.host(x.given),
		x.node("given", "b", x.given), store, x.node("nobody", "", x.mine),
		x.onHost("da", "a", x.mine), x.onHost("da2", "a", x.theirs), x.onHost("db", "b", x.theirs), x.foreign,
	} {
		if err := admin.Create(x.ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	x.config = rest.CopyConfig(s.Config())
	x.config.Impersonate = rest.ImpersonationConfig{
		UserName: wire.User(types.NamespacedName{Namespace: ns, Name: "a"}), Groups: wire.Groups(),
	}
	x.orch = newClient(t, x.config)
	return x
}

func (x *orchRights) cluster(name string) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
	c.Spec.Type, c.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
	c.Spec.Interval = metav1.Duration{Duration: time.Minute}
	c.Spec.Ceph.Mon.Count, c.Spec.Ceph.Mgr.Count = 3, 2
	return c
}

func (x *orchRights) fs(name, of string, policy api.DeletionPolicy) *api.Filesystem {
	f := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
	f.Spec = api.FilesystemSpec{Cluster: of, DeletionPolicy: policy}
	return f
}

func (x *orchRights) onHost(name, of, host string) *api.Daemon {
	d := daemonOn(x.ns, name, host, "s")
	d.Spec.Cluster = of
	return d
}

func (x *orchRights) act(namespace, kind, of, host, target string) *api.Action {
	return &api.Action{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "a-"},
		Spec:       api.ActionSpec{Kind: kind, Cluster: of, Host: host, Target: target},
	}
}

func (x *orchRights) node(name, of, host string) *api.StorageNode {
	n := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
	n.Spec.Type, n.Spec.Cluster = api.StorageCeph, of
	n.Spec.NodeSelector = map[string]string{api.LabelHostname: host}
	return n
}

func (x *orchRights) host(name string) *api.Host {
	return &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func (x *orchRights) daemon(name string) *api.Daemon {
	return &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: name}}
}

func (x *orchRights) patch(o client.Object, text string) func() error {
	patch := client.RawPatch("application/merge-patch+json", []byte(text))
	return func() error { return x.orch.Patch(x.ctx, o, patch) }
}

func (x *orchRights) create(o client.Object) func() error {
	return func() error { return x.orch.Create(x.ctx, o) }
}

func (x *orchRights) remove(o client.Object) func() error {
	return func() error { return x.orch.Delete(x.ctx, o) }
}

func (x *orchRights) list(o client.ObjectList, opts ...client.ListOption) func() error {
	return func() error { return x.orch.List(x.ctx, o, opts...) }
}

// ofCluster are requests about clusters and what belongs to them.
func (x *orchRights) ofCluster() []orchCase {
	return []orchCase{
		{"number of mons", true, x.patch(x.cluster("a"), `{"spec":{"ceph":{"mon":{"count":5}}}}`)},
		{"pause", true, x.patch(x.cluster("a"), `{"spec":{"mode":"Observed"}}`)},
		{"approval", false, x.patch(x.cluster("a"), `{"spec":{"approval":"Required"}}`)},
		{"deletionPolicy", false, x.patch(x.cluster("a"), `{"spec":{"deletionPolicy":"Wipe"}}`)},
		{"orch itself", false, x.patch(x.cluster("a"), `{"spec":{"ceph":{"orch":{"conflicts":"Take"}}}}`)},
		{"a finalizer", false, x.patch(x.cluster("a"), `{"metadata":{"finalizers":["holdfast.io/x"]}}`)},
		{"another cluster", false, x.patch(x.cluster("b"), `{"spec":{"ceph":{"mon":{"count":5}}}}`)},
		{"an option", true, x.patch(x.cluster("a"), `{"spec":{"ceph":{"config":{"osd":{"osd_max_backfills":"2"}}}}}`)},
		{
			"a program of the hosts", false,
			x.patch(x.cluster("a"), `{"spec":{"ceph":{"config":{"osd":{"crush_location_hook":"/bin/x"}}}}}`),
		},
		{
			"a directory of the hosts", false,
			x.patch(x.cluster("a"), `{"spec":{"ceph":{"config":{"mgr":{"mgr_module_path":"/tmp"}}}}}`),
		},
		{"make a cluster", false, x.create(x.cluster("c"))},
		{"delete its cluster", false, x.remove(x.cluster("a"))},
		{"a status", false, func() error {
			empty := client.RawPatch("application/merge-patch+json", []byte(`{"status":{}}`))
			return x.orch.Status().Patch(x.ctx, x.cluster("a"), empty)
		}},

		{"file system", true, x.create(x.fs("new", "a", ""))},
		{"file system of another cluster", false, x.create(x.fs("new2", "b", ""))},
		{"file system that wipes", false, x.create(x.fs("new3", "a", api.DeletionWipe))},
		{"have one wiped", false, x.patch(x.fs("kept", "a", ""), `{"spec":{"deletionPolicy":"Wipe"}}`)},
		{"delete what wipes", false, x.remove(x.fs("wiped", "a", ""))},
		{"keep what would wipe", true, x.patch(x.fs("wiped", "a", ""), `{"spec":{"deletionPolicy":"Retain"}}`)},
		{"delete what is kept", true, x.remove(x.fs("kept", "a", ""))},
		{"delete another cluster's", false, x.remove(x.fs("other", "b", ""))},
		{"a Pool", false, x.create(&api.Pool{
			ObjectMeta: metav1.ObjectMeta{Namespace: x.ns, Name: "p"}, Spec: api.PoolSpec{Cluster: "a"},
		})},
		{"another namespace", false, x.create(&api.Filesystem{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Spec: api.FilesystemSpec{Cluster: "a"},
		})},
	}
}

// ofHosts are requests about hosts and what declares them.
func (x *orchRights) ofHosts() []orchCase {
	const labelled = `{"metadata":{"labels":{"ceph.holdfast.io/label.gw":""}}}`
	return []orchCase{
		{"label a host", true, x.patch(x.host(x.mine), labelled)},
		{"another label", false, x.patch(x.host(x.mine), `{"metadata":{"labels":{"rack":"1"}}}`)},
		{"mode of a host", false, x.patch(x.host(x.mine), `{"spec":{"mode":"Drain"}}`)},
		{"label another cluster's host", false, x.patch(x.host(x.theirs), labelled)},
		{"place of a host", true, x.patch(x.host(x.mine), `{"metadata":{"labels":{"topology.holdfast.io/rack":"r1"}}}`)},
		{"another place", false, x.patch(x.host(x.mine), `{"metadata":{"labels":{"topology.holdfast.io/rack":"r2"}}}`)},
		{
			"label that another cluster chooses by", false,
			x.patch(x.host(x.mine), `{"metadata":{"labels":{"ceph.holdfast.io/label.theirs":""}}}`),
		},
		{"label a host that another cluster declares", false, x.patch(x.host(x.given), labelled)},
		{"host twice", true, x.create(x.node("twice", "a", x.given))},
		{"host of no cluster", false, x.create(x.node("none", "", x.mine))},
		{"device for another cluster", false, x.patch(x.node("given", "", ""), `{"spec":{"devices":["x"]}}`)},
		{"take a node over", false, x.patch(x.node("given", "", ""), `{"spec":{"cluster":"a"}}`)},
		{"give a node away", false, x.patch(x.node("twice", "", ""), `{"spec":{"cluster":"b"}}`)},
		{"node that names no cluster", false, x.patch(x.node("nobody", "", ""), `{"spec":{"exclude":["x"]}}`)},
		{"delete a host", false, x.remove(x.host(x.mine))},
	}
}

// ofActions are requests about Actions and Daemons, and reads.
func (x *orchRights) ofActions() []orchCase {
	const leaving = `{"metadata":{"annotations":{"holdfast.io/leave-requested":"now"}}}`
	return []orchCase{
		{"drain a host", true, x.create(x.act(api.SystemNamespace, "host.drain", "", x.mine, "host/"+x.mine))},
		{
			"drain another cluster's host", false,
			x.create(x.act(api.SystemNamespace, "host.drain", "", x.theirs, "host/"+x.theirs)),
		},
		{
			"drain a host that another cluster declares", false,
			x.create(x.act(api.SystemNamespace, "host.drain", "", x.given, "host/"+x.given)),
		},
		{"wipe there", false, x.create(x.act(api.SystemNamespace, "device.wipe", "", x.given, "device/x"))},
		{"drain in the cluster's namespace", false, x.create(x.act(x.ns, "host.drain", "", x.mine, "host/"+x.mine))},
		{"restart what is no daemon", false, x.create(x.act(x.ns, api.ActionDaemonRestart, "a", x.theirs, "db"))},
		{"service on a host", false, x.create(x.act(x.ns, "ceph.restart-service", "a", x.theirs, "service/mon"))},
		{"replace a host", false, x.create(x.act(api.SystemNamespace, "host.replace", "", x.mine, "host/"+x.mine))},
		{"stop a daemon", true, x.create(x.act(x.ns, "daemon.stop", "a", "", "daemon/da"))},
		{"stop another cluster's daemon", false, x.create(x.act(x.ns, "daemon.stop", "a", "", "daemon/db"))},
		{"restart on another host", false, x.create(x.act(x.ns, api.ActionDaemonRestart, "a", x.theirs, "daemon/da"))},
		{"in another cluster", false, x.create(x.act(x.ns, "orch.apply", "b", "", "storagecluster/b"))},
		{"rotate the authority", false, x.create(x.act(api.SystemNamespace, "ca.rotate", "", x.mine, "host/"+x.mine))},
		{"cancel what others asked for", false, x.patch(x.foreign, `{"spec":{"want":"Cancelled"}}`)},
		{"approve", false, x.patch(x.foreign, `{"spec":{"approval":"Granted"}}`)},

		{"ask a daemon to leave", true, x.patch(x.daemon("da"), leaving)},
		{"ask another's", false, x.patch(x.daemon("db"), leaving)},
		{"change a daemon", false, x.patch(x.daemon("da"), `{"spec":{"state":"Stopped"}}`)},
		{"delete a daemon", false, x.remove(x.daemon("da"))},

		{"read hosts", true, x.list(&api.HostList{})},
		{"read its namespace", true, x.list(&api.FilesystemList{}, client.InNamespace(x.ns))},
		{"read another namespace", false, x.list(&api.FilesystemList{}, client.InNamespace("default"))},
		{"read plans", false, x.list(&api.PlanList{}, client.InNamespace(x.ns))},
	}
}
