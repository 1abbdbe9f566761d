package orch

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	conditions "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/holdfast-storage/holdfast/action"
	"github.com/holdfast-storage/holdfast/agent"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/driver/ceph"
	"github.com/holdfast-storage/holdfast/driver/ceph/leaving"
	"github.com/holdfast-storage/holdfast/driver/ceph/rados"
	"github.com/holdfast-storage/holdfast/driver/ceph/radostest"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/orch/apply"
	"github.com/holdfast-storage/holdfast/orch/server"
	"github.com/holdfast-storage/holdfast/orch/wire"
	"github.com/holdfast-storage/holdfast/orch/write"
	"github.com/holdfast-storage/holdfast/platform/bare"
	"github.com/holdfast-storage/holdfast/test/loopback"
)

// Home is Holdfast as a mgr meets it: a server with its API, its authorizer and its admission, and
// a leader that plans, declares and carries out Actions.
//
// Two things are made up: the Ceph that the leader sees is one in memory (radostest), not the one
// whose mgr calls, because that one has no OSDs; and the agents are loops that say that all is done
// (agents.go), because the hosts and disks do not exist.
type Home struct {
	t testing.TB
	// Client may do everything.
	Client client.Client
	// Ceph is the one in memory.
	Ceph *radostest.Cluster

	server *control.Server
	log    *slog.Logger
}

// StartHome starts a home with hosts h1 to h4, of which h1 to h3 are a cluster in service, and
// waits until it is Ready. All ends with the test.
func StartHome(t *testing.T) *Home {
	t.Helper()
	h := &Home{
		t: t, Ceph: radostest.New(), server: loopback.ServerInside(t, hostName(0)),
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	scheme := runtime.NewScheme()
	h.must(api.AddToScheme(scheme))
	var err error
	h.Client, err = client.New(h.server.Config(), client.Options{Scheme: scheme})
	h.must(err)
	for i := range 4 {
		h.addHost(i)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { h.agents(ctx) })
	running.Go(func() { h.contend(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	h.Declare(manifest)
	h.AwaitReady("StorageCluster/ceph", "Filesystem/home", "DriveGroup/fast") // the Ceph in memory knows no gateways
	return h
}

const manifest = `
kind: StorageCluster
metadata: {name: ceph}
spec: {type: ceph, interval: 1s, ceph: {mon: {count: 3}, mgr: {count: 3}}}
---
kind: StorageNode
metadata: {name: n1}
spec: {type: ceph, cluster: ceph, nodeSelector: {kubernetes.io/hostname: h1}, devices: [disk-1-a]}
---
kind: StorageNode
metadata: {name: n2}
spec: {type: ceph, cluster: ceph, nodeSelector: {kubernetes.io/hostname: h2}, devices: [disk-2-a]}
---
kind: StorageNode
metadata: {name: n3}
spec: {type: ceph, cluster: ceph, nodeSelector: {kubernetes.io/hostname: h3}, devices: [disk-3-a]}
---
kind: DriveGroup
metadata: {name: fast}
spec: {cluster: ceph, placement: {hosts: [h1, h2, h3]}, dataDevices: [{rotational: false}]}
---
kind: Filesystem
metadata: {name: home}
spec: {cluster: ceph, placement: {hosts: [h1, h2, h3]}}
---
kind: ObjectStore
metadata: {name: s3}
spec: {cluster: ceph, gateways: {placement: {count: 1, hosts: [h1]}}}
`

func (h *Home) must(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// Declare applies objects of the cluster, as 'holdfast apply' does.
func (h *Home) Declare(manifest string) {
	h.t.Helper()
	for text := range strings.SplitSeq(manifest, "---\n") {
		u := &unstructured.Unstructured{}
		h.must(yaml.Unmarshal([]byte(text), &u.Object))
		u.SetAPIVersion(api.GroupVersion.String())
		u.SetNamespace(Name.Namespace)
		applied := client.ApplyConfigurationFromUnstructured(u)
		h.must(h.Client.Apply(h.t.Context(), applied, client.FieldOwner("holdfast")))
	}
}

// Object reads an object of the cluster, KIND/NAME; nil where there is none.
func (h *Home) Object(name string) *unstructured.Unstructured {
	h.t.Helper()
	kind, name, _ := strings.Cut(name, "/")
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(api.GroupVersion.WithKind(kind))
	key := client.ObjectKey{Namespace: Name.Namespace, Name: name}
	if kind == "Host" {
		key.Namespace = ""
	}
	err := h.Client.Get(h.t.Context(), key, u)
	if client.IgnoreNotFound(err) != nil {
		h.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return u
}

// AwaitReady waits for objects.
func (h *Home) AwaitReady(names ...string) {
	h.t.Helper()
	for _, name := range names {
		await(h.t, name, func() error {
			u := h.Object(name)
			if u == nil {
				return fmt.Errorf("it does not exist")
			}
			ready := readyOf(u)
			if ready == nil || ready.Status != metav1.ConditionTrue || ready.ObservedGeneration < u.GetGeneration() {
				return fmt.Errorf("its status is %v", u.Object["status"])
			}
			return nil
		})
	}
}

// readyOf is the condition Ready of an object, nil where it has none.
func readyOf(u *unstructured.Unstructured) *metav1.Condition {
	var of struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &of); err != nil {
		return nil
	}
	return conditions.FindStatusCondition(of.Status.Conditions, api.ConditionReady)
}

// addHost makes a host with three disks that is connected.
func (h *Home) addHost(i int) {
	h.t.Helper()
	name := hostName(i)
	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{api.LabelHostname: name}}}
	if err := h.Client.Create(h.t.Context(), host); apierrors.IsAlreadyExists(err) { // the server's own
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%q}}}`, api.LabelHostname, name)
		h.must(h.Client.Patch(h.t.Context(), host, client.RawPatch(types.MergePatchType, patch)))
	} else {
		h.must(err)
	}
	host.Status.Facts = &api.HostFacts{OS: "Debian", CPUThreads: 2, Memory: resource.NewScaledQuantity(8, resource.Giga)}
	host.Status.Addresses, host.Status.BootID = []string{addressOf(i)}, "b"
	host.Status.Conditions = []metav1.Condition{{
		Type: api.HostAgentConnected, Status: metav1.ConditionTrue, Reason: "Test",
		LastTransitionTime: metav1.NewTime(time.Now().Add(-time.Hour)),
	}}
	for n, letter := range []string{"a", "b", "c"} {
		media := api.MediaRotational
		if n == 1 {
			media = api.MediaSolidState
		}
		host.Status.Devices = append(host.Status.Devices, api.Device{
			ID: fmt.Sprintf("disk-%d-%s", i+1, letter), Path: "/dev/sd" + string(rune('b'+n)),
			Kind: api.DeviceDisk, Media: media,
			Size: resource.MustParse("4Ti"), Model: "X", Vendor: "Y", Availability: api.DeviceAvailable,
		})
	}
	h.must(h.Client.Status().Update(h.t.Context(), host))
}

// contend leads, as the program does (cli/lead.go).
func (h *Home) contend(ctx context.Context) {
	e := &election.Election{
		REST: h.server.Config(), Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: h.server.Name(),
		Log: h.log,
	}
	_ = e.Run(ctx, func(ctx context.Context, token string) { // it ends with ctx
		if err := h.lead(ctx, token); err != nil && ctx.Err() == nil {
			h.t.Errorf("leading: %v", err)
		}
	})
}

func (h *Home) lead(ctx context.Context, token string) error {
	store, err := bare.NewStore(ctx, h.server.Config(), token)
	if err != nil {
		return err
	}
	defer store.Close()
	actions, err := store.Actions(ctx)
	if err != nil {
		return err
	}
	clients, end := &server.Clients{InNameOf: bare.InNameOf(h.server.Config(), token)}, func() {}
	defer func() { end() }()
	return leader.Run(ctx, leader.Config{
		Store: store, Actions: actions, Plans: store.Plans(), Name: h.server.Name(), Log: h.log,
		Drivers:  []engine.Driver{&ceph.Driver{Dial: func(c rados.Config) rados.Client { return h.Ceph.Dial(c) }}},
		Handlers: []action.Handler{&apply.Handler{Client: clients.Of}}, Agents: agent.ActionKinds(),
		Waits: waits.Waits{AgentSilent: time.Hour}, // no agent has a heart that beats here
		Ready: func(a *leader.Asked) {
			calls := server.New(store, a, clients, h.server.Name(), h.log)
			calls.Leaving = func(v *engine.View) write.Leaving { return leaving.Of(v) }
			end = h.server.Leads.Lead(calls)
		},
	})
}

// AwaitWritten waits until an Action has written what it declares, or has ended, or is not one that
// declares something.
func (h *Home) AwaitWritten(name string) {
	h.t.Helper()
	await(h.t, "action "+name, func() error {
		for _, a := range h.Actions() {
			switch {
			case a.Name != name:
			case apply.WillWrite(&a):
				return fmt.Errorf("it has not written: %+v", a.Status)
			default:
				return nil
			}
		}
		return fmt.Errorf("it does not exist")
	})
}

// Actions are the Actions that 'ceph orch' of the cluster asked for, the oldest first.
func (h *Home) Actions() []api.Action {
	h.t.Helper()
	var list api.ActionList
	h.must(h.Client.List(h.t.Context(), &list))
	mine := slices.DeleteFunc(list.Items, func(a api.Action) bool { return a.Spec.Requester != wire.User(Name) })
	slices.SortFunc(mine, func(a, b api.Action) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	return mine
}
