package control_test

import (
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
// nothing.
func TestOrch_rights(t *testing.T) {
	s, _ := sharedServer(t)
	admin, ctx := newClient(t, s.Config()), t.Context()
	ns := newNamespace(t, admin)
	mine, theirs, given := "mine-"+ns, "theirs-"+ns, "given-"+ns // hosts
	cluster := func(name string) *api.StorageCluster {
		c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		c.Spec.Type, c.Spec.Ceph = api.StorageCeph, &api.CephSpec{}
		c.Spec.Interval = metav1.Duration{Duration: time.Minute}
		c.Spec.Ceph.Mon.Count, c.Spec.Ceph.Mgr.Count = 3, 2
		return c
	}
	fs := func(name, of string, policy api.DeletionPolicy) *api.Filesystem {
		f := &api.Filesystem{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		f.Spec = api.FilesystemSpec{Cluster: of, DeletionPolicy: policy}
		return f
	}
	onHost := func(name, of, host string) *api.Daemon {
		d := daemonOn(ns, name, host, "s")
		d.Spec.Cluster = of
		return d
	}
	act := func(namespace, kind, of, host, target string) *api.Action {
		return &api.Action{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "a-"},
			Spec:       api.ActionSpec{Kind: kind, Cluster: of, Host: host, Target: target},
		}
	}
	node := func(name, of, host string) *api.StorageNode {
		n := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		n.Spec.Type, n.Spec.Cluster = api.StorageCeph, of
		n.Spec.NodeSelector = map[string]string{api.LabelHostname: host}
		return n
	}
	store := &api.ObjectStore{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "chooses"}}
	store.Spec.Cluster = "b"
	store.Spec.Gateways.Placement.Labels = map[string]string{wire.LabelPrefix + "theirs": ""}
	foreign := act(ns, "daemon.stop", "a", "", "daemon/da")
	foreign.GenerateName, foreign.Name = "", "foreign"
	for _, o := range []client.Object{
		cluster("a"), cluster("b"), fs("wiped", "a", api.DeletionWipe), fs("kept", "a", api.DeletionRetain),
		fs("other", "b", api.DeletionRetain),
		&api.Host{ObjectMeta: metav1.ObjectMeta{Name: mine}}, &api.Host{ObjectMeta: metav1.ObjectMeta{Name: theirs}},
		&api.Host{ObjectMeta: metav1.ObjectMeta{Name: given}},
		node("given", "b", given), store, node("nobody", "", mine),
		onHost("da", "a", mine), onHost("da2", "a", theirs), onHost("db", "b", theirs), foreign,
	} {
		if err := admin.Create(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(s.Config())
	config.Impersonate = rest.ImpersonationConfig{
		UserName: wire.User(types.NamespacedName{Namespace: ns, Name: "a"}), Groups: wire.Groups(),
	}
	orch := newClient(t, config)

	patch := func(o client.Object, text string) func() error {
		return func() error { return orch.Patch(ctx, o, client.RawPatch("application/merge-patch+json", []byte(text))) }
	}
	create := func(o client.Object) func() error { return func() error { return orch.Create(ctx, o) } }
	remove := func(o client.Object) func() error { return func() error { return orch.Delete(ctx, o) } }
	list := func(o client.ObjectList, opts ...client.ListOption) func() error {
		return func() error { return orch.List(ctx, o, opts...) }
	}
	host := func(name string) *api.Host { return &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	daemon := func(name string) *api.Daemon {
		return &api.Daemon{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
	}
	const (
		labelled = `{"metadata":{"labels":{"ceph.holdfast.io/label.gw":""}}}`
		leaving  = `{"metadata":{"annotations":{"holdfast.io/leave-requested":"now"}}}`
	)
	for _, test := range []struct {
		name    string
		allowed bool
		do      func() error
	}{
		{"number of mons", true, patch(cluster("a"), `{"spec":{"ceph":{"mon":{"count":5}}}}`)},
		{"pause", true, patch(cluster("a"), `{"spec":{"mode":"Observed"}}`)},
		{"approval", false, patch(cluster("a"), `{"spec":{"approval":"Required"}}`)},
		{"deletionPolicy", false, patch(cluster("a"), `{"spec":{"deletionPolicy":"Wipe"}}`)},
		{"orch itself", false, patch(cluster("a"), `{"spec":{"ceph":{"orch":{"conflicts":"Take"}}}}`)},
		{"a finalizer", false, patch(cluster("a"), `{"metadata":{"finalizers":["holdfast.io/x"]}}`)},
		{"another cluster", false, patch(cluster("b"), `{"spec":{"ceph":{"mon":{"count":5}}}}`)},
		{"an option", true, patch(cluster("a"), `{"spec":{"ceph":{"config":{"osd":{"osd_max_backfills":"2"}}}}}`)},
		{"a program of the hosts", false,
			patch(cluster("a"), `{"spec":{"ceph":{"config":{"osd":{"crush_location_hook":"/bin/x"}}}}}`)},
		{"a directory of the hosts", false,
			patch(cluster("a"), `{"spec":{"ceph":{"config":{"mgr":{"mgr_module_path":"/tmp"}}}}}`)},
		{"make a cluster", false, create(cluster("c"))},
		{"delete its cluster", false, remove(cluster("a"))},
		{"a status", false, func() error {
			empty := client.RawPatch("application/merge-patch+json", []byte(`{"status":{}}`))
			return orch.Status().Patch(ctx, cluster("a"), empty)
		}},

		{"file system", true, create(fs("new", "a", ""))},
		{"file system of another cluster", false, create(fs("new2", "b", ""))},
		{"file system that wipes", false, create(fs("new3", "a", api.DeletionWipe))},
		{"have one wiped", false, patch(fs("kept", "a", ""), `{"spec":{"deletionPolicy":"Wipe"}}`)},
		{"delete what wipes", false, remove(fs("wiped", "a", ""))},
		{"keep what would wipe", true, patch(fs("wiped", "a", ""), `{"spec":{"deletionPolicy":"Retain"}}`)},
		{"delete what is kept", true, remove(fs("kept", "a", ""))},
		{"delete another cluster's", false, remove(fs("other", "b", ""))},
		{"a Pool", false, create(&api.Pool{
			ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: api.PoolSpec{Cluster: "a"},
		})},
		{"another namespace", false, create(&api.Filesystem{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}, Spec: api.FilesystemSpec{Cluster: "a"},
		})},

		{"label a host", true, patch(host(mine), labelled)},
		{"another label", false, patch(host(mine), `{"metadata":{"labels":{"rack":"1"}}}`)},
		{"mode of a host", false, patch(host(mine), `{"spec":{"mode":"Drain"}}`)},
		{"label another cluster's host", false, patch(host(theirs), labelled)},
		{"place of a host", true, patch(host(mine), `{"metadata":{"labels":{"topology.holdfast.io/rack":"r1"}}}`)},
		{"another place", false, patch(host(mine), `{"metadata":{"labels":{"topology.holdfast.io/rack":"r2"}}}`)},
		{"label that another cluster chooses by", false,
			patch(host(mine), `{"metadata":{"labels":{"ceph.holdfast.io/label.theirs":""}}}`)},
		{"label a host that another cluster declares", false, patch(host(given), labelled)},
		{"host twice", true, create(node("twice", "a", given))},
		{"host of no cluster", false, create(node("none", "", mine))},
		{"device for another cluster", false, patch(node("given", "", ""), `{"spec":{"devices":["x"]}}`)},
		{"take a node over", false, patch(node("given", "", ""), `{"spec":{"cluster":"a"}}`)},
		{"give a node away", false, patch(node("twice", "", ""), `{"spec":{"cluster":"b"}}`)},
		{"node that names no cluster", false, patch(node("nobody", "", ""), `{"spec":{"exclude":["x"]}}`)},
		{"delete a host", false, remove(host(mine))},

		{"drain a host", true, create(act(api.SystemNamespace, "host.drain", "", mine, "host/"+mine))},
		{"drain another cluster's host", false,
			create(act(api.SystemNamespace, "host.drain", "", theirs, "host/"+theirs))},
		{"drain a host that another cluster declares", false,
			create(act(api.SystemNamespace, "host.drain", "", given, "host/"+given))},
		{"wipe there", false, create(act(api.SystemNamespace, "device.wipe", "", given, "device/x"))},
		{"drain in the cluster's namespace", false, create(act(ns, "host.drain", "", mine, "host/"+mine))},
		{"restart what is no daemon", false, create(act(ns, api.ActionDaemonRestart, "a", theirs, "db"))},
		{"service on a host", false, create(act(ns, "ceph.restart-service", "a", theirs, "service/mon"))},
		{"replace a host", false, create(act(api.SystemNamespace, "host.replace", "", mine, "host/"+mine))},
		{"stop a daemon", true, create(act(ns, "daemon.stop", "a", "", "daemon/da"))},
		{"stop another cluster's daemon", false, create(act(ns, "daemon.stop", "a", "", "daemon/db"))},
		{"restart on another host", false, create(act(ns, api.ActionDaemonRestart, "a", theirs, "daemon/da"))},
		{"in another cluster", false, create(act(ns, "orch.apply", "b", "", "storagecluster/b"))},
		{"rotate the authority", false, create(act(api.SystemNamespace, "ca.rotate", "", mine, "host/"+mine))},
		{"cancel what others asked for", false, patch(foreign, `{"spec":{"want":"Cancelled"}}`)},
		{"approve", false, patch(foreign, `{"spec":{"approval":"Granted"}}`)},

		{"ask a daemon to leave", true, patch(daemon("da"), leaving)},
		{"ask another's", false, patch(daemon("db"), leaving)},
		{"change a daemon", false, patch(daemon("da"), `{"spec":{"state":"Stopped"}}`)},
		{"delete a daemon", false, remove(daemon("da"))},

		{"read hosts", true, list(&api.HostList{})},
		{"read its namespace", true, list(&api.FilesystemList{}, client.InNamespace(ns))},
		{"read another namespace", false, list(&api.FilesystemList{}, client.InNamespace("default"))},
		{"read plans", false, list(&api.PlanList{}, client.InNamespace(ns))},
	} {
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
		late := newClient(t, fence.Config(config, fence.Token{Name: "nobody", Value: "lost"}))
		fewer := []byte(`{"spec":{"ceph":{"mon":{"count":1}}}}`)
		err := late.Patch(ctx, cluster("a"), client.RawPatch("application/merge-patch+json", fewer))
		if err == nil || !strings.Contains(err.Error(), "replaced") {
			t.Errorf("%v", err)
		}
	})
}
