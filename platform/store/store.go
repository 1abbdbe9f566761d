package store

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	goruntime "runtime"
	"sync"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/platform/eventlog"
	"github.com/holdfast-storage/holdfast/platform/heartbeat"
	"github.com/holdfast-storage/holdfast/platform/silence"
)

// syncTimeout bounds the first filling of the caches.
const syncTimeout = time.Minute

// Store is an engine.Store over the API. It reads from caches that watches keep fresh, and writes
// to the API; a View waits until the caches have seen the Store's own writes. It is safe for
// concurrent use.
type Store struct {
	// Logs are the events of clusters: Emit and Told.
	*eventlog.Logs

	token      string
	nodeLabels bool
	forbids    func(*corev1.Namespace) *engine.Prohibition
	log        *slog.Logger
	// api reaches the API server, cache what the watches have seen of it.
	api   client.Client
	cache cache.Cache
	// daemons and secrets are what the cache has of them.
	daemons, secrets toolscache.Indexer
	fresh            *freshness

	// life ends with the Store; what goes on in the background ends with it.
	life       context.Context //nolint:containedctx // it is the Store's own life, not that of a call
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu    sync.Mutex
	locks map[types.NamespacedName]*lock
	// terms are the latest terms of locks that were seen, whoever had them.
	terms    map[types.NamespacedName]int32
	watchers map[*watcher]bool
	beats    *heartbeat.Beats
	// silence examines hosts whose agents do not report; nil where nobody does.
	silence *silence.Watcher
	// actionWatchers are told of changes of actions.
	actionWatchers map[*func()]bool
	// planWatchers are told of changes of Plans.
	planWatchers map[*func()]bool
	// plain reaches the API without the leader's token, fenced with it.
	plain, fenced *rest.Config
	reviews       bool
}

var _ engine.Store = (*Store)(nil)

// Options are what the homes differ in.
type Options struct {
	// Config reaches the API.
	Config *rest.Config
	// Token proves that its owner leads. It is another one in each term.
	Token string
	// Fence returns a copy of a Config whose writes carry the token, and that the API refuses once
	// another leader has another token.
	Fence func(config *rest.Config, token string) *rest.Config
	// Reviews says that the leader may not act in the name of other users, as in Kubernetes. It
	// answers a Plan by asking what the requester may do, and sends the dry runs in its own name.
	Reviews bool
	// AskServers says that Config reaches Holdfast's own servers, which know why an agent does not report.
	AskServers bool
	// NodeLabels says that the labels of Hosts are those of Kubernetes' Nodes: the Store does not
	// set kubernetes.io/hostname.
	NodeLabels bool
	// Forbids is why the platform starts no daemons in a namespace, nil where it does. Without it
	// nothing is forbidden.
	Forbids func(*corev1.Namespace) *engine.Prohibition
}

// New returns a Store whose caches are filled. It lives until ctx ends or Close is called.
func New(ctx context.Context, o Options) (*Store, error) {
	// The engine's writes come in bursts and are few on the whole. A limit in the client would only
	// delay a bring-up; the API server has its own limits.
	plain := rest.AddUserAgent(rest.CopyConfig(o.Config), "engine")
	plain.QPS = -1
	config := rest.AddUserAgent(o.Fence(o.Config, o.Token), "engine")
	config.QPS = -1
	config.Wrap(newLine(atOncePerCore * max(2, goruntime.GOMAXPROCS(0))))
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	s := &Store{
		token: o.Token, nodeLabels: o.NodeLabels, forbids: o.Forbids, log: slog.Default(), fresh: newFreshness(),
		locks: map[types.NamespacedName]*lock{}, terms: map[types.NamespacedName]int32{}, watchers: map[*watcher]bool{},
		beats: heartbeat.New(), actionWatchers: map[*func()]bool{},
		planWatchers: map[*func()]bool{}, plain: plain, fenced: config, reviews: o.Reviews,
	}
	if s.api, err = client.New(config, client.Options{Scheme: scheme, Mapper: newMapper(), HTTPClient: httpClient}); err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	if s.cache, err = newCache(config, httpClient, scheme, s.unwatched); err != nil {
		return nil, fmt.Errorf("while preparing the caches: %w", err)
	}
	if o.AskServers {
		s.silence = silenceOf(s, plain)
	}
	s.life, s.cancel = context.WithCancel(ctx)
	s.Logs = eventlog.New(s.life, s.api, s.log)
	if err := s.start(s.life); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Close ends the watches and waits for everything that the Store started.
func (s *Store) Close() {
	s.cancel()
	s.background.Wait()
	s.WaitForEvents()
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	return scheme, nil
}

// namespaced are the kinds that a Store uses and that are in namespaces: all but hostKind.
func namespaced() []schema.GroupVersionKind {
	var all []schema.GroupVersionKind
	for _, kind := range []string{"StorageCluster", "StorageNode", "StorageStatus", "Daemon", "ClusterEvent", "Action", "Plan"} {
		all = append(all, api.GroupVersion.WithKind(kind))
	}
	for _, o := range kindsOfResources() {
		all = append(all, api.GroupVersion.WithKind(kindOf(o)))
	}
	return append(all, corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		coordinationv1.SchemeGroupVersion.WithKind("Lease"))
}

func hostKind() schema.GroupVersionKind { return api.GroupVersion.WithKind("Host") }

// newMapper knows the few kinds that the Store uses. Asking the API server for them would take a
// round trip at each start.
func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(hostKind(), meta.RESTScopeRoot)
	m.Add(authorizationv1.SchemeGroupVersion.WithKind("SubjectAccessReview"), meta.RESTScopeRoot)
	m.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
	for _, kind := range namespaced() {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	return m
}

func newCache(
	config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, failed toolscache.WatchErrorHandlerWithContext,
) (cache.Cache, error) {
	ofClusters, err := labels.NewRequirement(api.LabelCluster, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return cache.New(config, cache.Options{
		Scheme: scheme, Mapper: newMapper(), HTTPClient: httpClient,
		ReaderFailOnMissingInformer: true, DefaultWatchErrorHandler: failed,
		DefaultTransform: cache.TransformStripManagedFields(),
		// Views share what the cache holds; nobody writes to a View, and the Store copies what it
		// changes.
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:        {Label: labels.NewSelector().Add(*ofClusters), Transform: withoutValues},
			&api.Plan{}:             {Transform: withoutContent},
			&coordinationv1.Lease{}: {Namespaces: map[string]cache.Config{api.SystemNamespace: {}}},
		},
	})
}

// unwatched tells why a kind cannot be watched, such as a right that the leader lacks. The watch is
// tried again.
func (s *Store) unwatched(ctx context.Context, r *toolscache.Reflector, err error) {
	if ctx.Err() == nil && apierrors.IsForbidden(err) {
		s.log.Warn("watching; trying again", "kind", r.TypeDescription(), "error", err)
	}
}

// withoutValues keeps what a Secret holds out of the cache: its keys stay, the values go.
func withoutValues(o any) (any, error) {
	if secret, ok := o.(*corev1.Secret); ok {
		secret.ManagedFields = nil
		for key := range secret.Data {
			secret.Data[key] = nil
		}
	}
	return o, nil
}

// start fills the caches, all at once. They are made before they run: waiting for one that is made
// later polls.
func (s *Store) start(ctx context.Context) error {
	syncCtx, cancel := context.WithTimeout(ctx, syncTimeout)
	defer cancel()
	if err := addIndexes(syncCtx, s.cache); err != nil {
		return err
	}
	filled, err := s.watch(syncCtx)
	if err != nil {
		return err
	}
	s.background.Go(func() {
		if err := s.cache.Start(ctx); err != nil {
			s.log.Error("the caches of the API ended", "error", err)
		}
	})
	// The API server prepares a kind when it is first asked for it, which can take a second. Events
	// are in no cache, and the first of them shall not wait.
	if err := s.api.List(syncCtx, &api.ClusterEventList{}, client.Limit(1)); err != nil {
		return fmt.Errorf("while reading events: %w", err)
	}
	for _, f := range filled {
		select {
		case <-f.Done():
		case <-syncCtx.Done():
			return fmt.Errorf("while filling the cache of %s: %w", f.Name(), context.Cause(syncCtx))
		}
	}
	return nil
}
