package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
)

const (
	// gather is how long changes are gathered before they are looked at, and retryAfter how soon a
	// look that failed is repeated.
	gather     = 50 * time.Millisecond
	retryAfter = 2 * time.Second
	// lookAgain is how soon a look follows in which nothing changed: what is told again needs it.
	lookAgain = 10 * time.Minute
	// lookTimeout bounds one look with its writes, and syncTimeout the first filling of the caches.
	lookTimeout = time.Minute
	syncTimeout = time.Minute
)

// Keeper keeps what follows from other objects: Hosts from Nodes, the identities of their agents,
// and the label that protects the namespaces of clusters. It has no state of its own, and is the
// leader's alone.
type Keeper struct {
	client client.Client
	cache  cache.Cache
	nodes  labels.Selector
	log    *slog.Logger
	// changed has room for one word.
	changed chan struct{}
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
	k := &Keeper{nodes: nodes, log: log, changed: make(chan struct{}, 1), told: map[types.UID]told{}}
	var err error
	if k.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	if k.cache, err = newCache(config, scheme, k.unwatched); err != nil {
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
	failed toolscache.WatchErrorHandlerWithContext) (cache.Cache, error) {
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
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	defer func() {
		cancel()
		<-ended
	}()
	if err := k.watch(ctx); err != nil {
		ended <- nil
		return err
	}
	go func() { ended <- k.cache.Start(ctx) }()
	filling, done := context.WithTimeout(ctx, syncTimeout)
	defer done()
	if !k.cache.WaitForCacheSync(filling) && ctx.Err() == nil {
		return fmt.Errorf("while filling the caches of Nodes and accounts: %w", context.Cause(filling))
	}
	k.look(ctx)
	return nil
}

// watch has each change that matters wake the keeper.
func (k *Keeper) watch(ctx context.Context) error {
	wake := func() {
		select {
		case k.changed <- struct{}{}:
		default:
		}
	}
	for _, kind := range kinds() {
		informer, err := k.cache.GetInformer(ctx, kind, cache.BlockUntilSynced(false))
		if err != nil {
			return fmt.Errorf("while watching %T: %w", kind, err)
		}
		handler := toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { wake() }, DeleteFunc: func(any) { wake() },
			UpdateFunc: func(was, is any) {
				if matters(was, is) {
					wake()
				}
			},
		}
		if _, err := informer.AddEventHandler(handler); err != nil {
			return fmt.Errorf("while watching %T: %w", kind, err)
		}
	}
	return nil
}

// unwatched tells why a kind cannot be watched, such as a right that the operator lacks. The watch
// is tried again.
func (k *Keeper) unwatched(ctx context.Context, r *toolscache.Reflector, err error) {
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		k.log.Warn("watching; trying again", "kind", r.TypeDescription(), "error", err)
	}
}

// look brings everything to what it should be, whenever something changed, until ctx ends.
func (k *Keeper) look(ctx context.Context) {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-k.changed:
			if pause(ctx, gather) != nil {
				return
			}
		case <-again.C:
		}
		wait := lookAgain
		if err := k.once(ctx); err != nil && ctx.Err() == nil {
			k.log.Warn("keeping hosts and their rights; trying again", "error", err)
			wait = retryAfter
		}
		again.Reset(wait)
	}
}

func (k *Keeper) once(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	w, err := k.read(ctx)
	if err != nil {
		return err
	}
	return k.keep(ctx, w)
}
