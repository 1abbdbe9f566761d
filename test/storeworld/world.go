// Package storeworld is the world around a Store under test, in both homes: the people and the
// agents who write what the Store reads.
package storeworld

import (
	"context"
	"errors"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine/storetest"
	"github.com/holdfast-storage/holdfast/platform/store"
)

// Home is what the homes differ in.
type Home struct {
	// Config reaches the API as somebody who may do everything.
	Config *rest.Config
	// Writers is Config for the people and the agents; nil for Config itself.
	Writers *rest.Config
	// NewStore returns the Store of a leader with a token.
	NewStore func(ctx context.Context, token string) (*store.Store, error)
	// Lead makes token that of the leader, as an election does.
	Lead func(ctx context.Context, c client.Client, token string) error
}

// World is the administrator and the agents, by a client of their own.
type World struct {
	client.Client

	home Home
}

// New returns the world of a home.
func New(h Home) (World, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return World{}, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	config := h.Writers
	if config == nil {
		config = rest.CopyConfig(h.Config)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	return World{c, h}, err
}

// Create implements storetest.World.
func (w World) Create(ctx context.Context, o storetest.Object) error { return w.Client.Create(ctx, o) }

// Update implements storetest.World.
func (w World) Update(ctx context.Context, o storetest.Object) error { return w.Client.Update(ctx, o) }

// Delete implements storetest.World.
func (w World) Delete(ctx context.Context, o storetest.Object) error { return w.Client.Delete(ctx, o) }

// Get implements storetest.World.
func (w World) Get(ctx context.Context, o storetest.Object) error {
	return w.Client.Get(ctx, client.ObjectKeyFromObject(o), o)
}

// UpdateStatus implements storetest.World.
func (w World) UpdateStatus(ctx context.Context, o storetest.Object) error {
	return w.Status().Update(ctx, o)
}

// Events implements storetest.World.
func (w World) Events(ctx context.Context, cluster types.NamespacedName) ([]api.ClusterEvent, error) {
	var list api.ClusterEventList
	err := w.List(ctx, &list, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{api.LabelCluster: cluster.Name})
	slices.SortFunc(list.Items, func(a, b api.ClusterEvent) int { return int(a.Sequence - b.Sequence) })
	return list.Items, err
}

// TakeLock makes holder the leader, who then takes the lock.
func (w World) TakeLock(ctx context.Context, cluster types.NamespacedName, holder string) error {
	if err := w.LeadAs(ctx, holder); err != nil {
		return err
	}
	var lock coordinationv1.Lease
	name := types.NamespacedName{
		Namespace: api.SystemNamespace, Name: "orchestrate-" + cluster.Namespace + "." + cluster.Name,
	}
	if err := w.Client.Get(ctx, name, &lock); err != nil {
		return err
	}
	lock.Spec.HolderIdentity = &holder
	lock.Spec.LeaseTransitions = ptr.To(*lock.Spec.LeaseTransitions + 1)
	return w.Client.Update(ctx, &lock)
}

// Own is the token of the Store under test.
const Own = "s1"

// Lead makes the server of the Store under test the leader.
func (w World) Lead(ctx context.Context) error { return w.LeadAs(ctx, Own) }

// LeadAs makes the owner of a token the leader.
func (w World) LeadAs(ctx context.Context, token string) error {
	return w.home.Lead(ctx, w.Client, token)
}

// Beat renews the Lease of a host's agent.
func (w World) Beat(ctx context.Context, host string) error {
	now := metav1.NowMicro()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = api.SystemNamespace, api.HostLease(host)
	err := w.Client.Get(ctx, client.ObjectKeyFromObject(lease), lease)
	lease.Spec.RenewTime = &now
	if apierrors.IsNotFound(err) {
		return w.Client.Create(ctx, lease)
	}
	return errors.Join(err, w.Client.Update(ctx, lease))
}
