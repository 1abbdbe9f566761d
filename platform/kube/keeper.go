package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/platform/reconcile"
)

// again is how soon a run follows where nothing changed: what is logged once more needs it.
const again = 10 * time.Minute

// Keeper keeps what follows from other objects: Hosts from Nodes, the identities of their agents,
// and the label that protects the namespaces of clusters. It has no state of its own, and is the
// leader's alone.
type Keeper struct {
	client client.Client
	cache  cache.Cache
	nodes  labels.Selector
	log    *slog.Logger
	// told are the nodes that were said to be no hosts.
	told map[types.UID]told
}

// NewKeeper returns a Keeper that writes with config, which carries the leader's token. nodes
// selects the Nodes that become Hosts.
func NewKeeper(config *rest.Config, nodes labels.Selector, log *slog.Logger) (*Keeper, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "keeper")
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	k := &Keeper{nodes: nodes, log: log, told: map[types.UID]told{}}
	var err error
	if k.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	if k.cache, err = newCache(config, scheme, reconcile.Unwatched(log)); err != nil {
		return nil, fmt.Errorf("while preparing the caches: %w", err)
	}
	return k, nil
}

// kinds are what a Keeper watches.
func kinds() []client.Object {
	return []client.Object{
		&corev1.Node{}, &corev1.Namespace{}, &api.Host{}, &api.Daemon{}, &api.Action{}, &api.StorageCluster{},
		&corev1.ServiceAccount{}, &rbacv1.Role{}, &rbacv1.RoleBinding{}, &corev1.Pod{},
	}
}

func newCache(config *rest.Config, scheme *runtime.Scheme,
	failed toolscache.WatchErrorHandlerWithContext,
) (cache.Cache, error) {
	kept, err := labels.NewRequirement(labelKept, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	only := cache.ByObject{Label: labels.NewSelector().Add(*kept)}
	accounts := cache.ByObject{Label: only.Label, Namespaces: map[string]cache.Config{HostsNamespace: {}}}
	agents := cache.ByObject{
		Label:      labels.SelectorFromSet(labels.Set{"app.kubernetes.io/name": agentsApp}),
		Namespaces: map[string]cache.Config{api.SystemNamespace: {}},
	}
	return cache.New(config, cache.Options{
		Scheme: scheme, ReaderFailOnMissingInformer: true, DefaultWatchErrorHandler: failed,
		DefaultTransform: cache.TransformStripManagedFields(),
		// The keeper writes to nothing that the cache holds.
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ServiceAccount{}: accounts, &rbacv1.Role{}: only, &rbacv1.RoleBinding{}: only,
			&corev1.Pod{}: agents,
			// Their managed fields say which labels came from the Node.
			&api.Host{}: {Transform: func(o any) (any, error) { return o, nil }},
		},
	})
}

// Run keeps until ctx ends.
func (k *Keeper) Run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		What: "keeping hosts and their rights", Cache: k.cache, Kinds: kinds(), Matters: matters,
		Reconcile: k.reconcile, Log: k.log,
	})
}

// reconcile brings everything to what it should be.
func (k *Keeper) reconcile(ctx context.Context) (time.Duration, error) {
	w, err := k.read(ctx)
	if err != nil {
		return 0, err
	}
	return again, k.keep(ctx, w)
}
