package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Each cluster has this many of Ceph's other daemons, beside an OSD for each disk of its hosts.
const mons, mgrs = 3, 2

// declaring is how many objects are declared at once.
const declaring = 8

func newClient(config *rest.Config) (client.WithWatch, error) {
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, err
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

func clusterName(n int) string { return fmt.Sprintf("ceph%d", n) }

// declareClusters makes the clusters.
func (b *bench) declareClusters(ctx context.Context) error {
	for n := range b.clusters {
		if err := b.api.Create(ctx, newCluster(clusterName(n))); err != nil {
			return err
		}
	}
	return nil
}

// declareNodes makes a StorageNode for each of these hosts, with all its disks.
func (b *bench) declareNodes(ctx context.Context, from, to int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(declaring)
	for n, h := range b.fleet.hosts[from:to] {
		group.Go(func() error { return b.api.Create(ctx, newNode(clusterName((from+n)%b.clusters), h)) })
	}
	return group.Wait()
}

func newCluster(name string) *api.StorageCluster {
	c := &api.StorageCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	c.Spec.Type = api.StorageCeph
	c.Spec.Interval = metav1.Duration{Duration: 10 * time.Second}
	c.Spec.DeletionPolicy = api.DeletionRetain
	c.Spec.Ceph = &api.CephSpec{Mon: api.CephMonSpec{Count: mons}, Mgr: api.CephMgrSpec{Count: mgrs}}
	return c
}

func newNode(cluster string, h *host) *api.StorageNode {
	n := &api.StorageNode{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: cluster + "-" + h.name}}
	n.Spec.Type, n.Spec.Cluster = api.StorageCeph, cluster
	n.Spec.NodeSelector = map[string]string{api.LabelHostname: h.name}
	for i := range h.disks {
		n.Spec.Devices = append(n.Spec.Devices, h.disks[i].ID)
	}
	return n
}

// heard says whether the leader hears all agents.
func (b *bench) heard(ctx context.Context) (bool, string, error) {
	var list api.HostList
	if err := b.api.List(ctx, &list); err != nil {
		return false, "", err
	}
	heard := 0
	for i := range list.Items {
		h := &list.Items[i]
		if h.Status.BootID != "" && meta.IsStatusConditionTrue(h.Status.Conditions, api.HostAgentConnected) {
			heard++
		}
	}
	return heard == b.hosts+1, fmt.Sprintf("%d of %d", heard, b.hosts+1), nil // the server is a host, too
}

// ready says whether all clusters are ready, with the OSDs of so many hosts.
func (b *bench) ready(ctx context.Context, hosts int) (bool, string, error) {
	if runs, want := b.fleet.processes(), hosts*b.disks+b.clusters*(mons+mgrs); runs < want {
		return false, fmt.Sprintf("%d of %d daemons run", runs, want), nil
	}
	var list api.StorageClusterList
	if err := b.api.List(ctx, &list); err != nil {
		return false, "", err
	}
	ready, state := 0, ""
	for i := range list.Items {
		c := meta.FindStatusCondition(list.Items[i].Status.Conditions, api.ClusterReady)
		switch {
		case c != nil && c.Status == metav1.ConditionTrue:
			ready++
		case c != nil:
			state = list.Items[i].Name + ": " + c.Message
		}
	}
	return ready == b.clusters, fmt.Sprintf("%d of %d; %.300s", ready, b.clusters, state), nil
}
