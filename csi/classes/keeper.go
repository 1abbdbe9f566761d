package classes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/backend"
	"github.com/holdfast-storage/holdfast/platform/reconcile"
)

const (
	// again is how soon a run follows where nothing changed, and claimsAgain while something waits for
	// claims, which are not watched.
	again       = 10 * time.Minute
	claimsAgain = time.Minute
	// startAgain is how soon a keeper is started again that could not watch.
	startAgain = 10 * time.Second
)

// Run keeps the classes until ctx ends. config carries the leader's token, and backends are those
// that the driver has. The leader leads also where it lacks the rights for classes, such as those of
// a newer release.
func Run(ctx context.Context, config *rest.Config, backends []string, log *slog.Logger) error {
	for {
		k, err := newKeeper(config, backends, log)
		if err != nil {
			return err
		}
		err = k.run(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // its end was asked for
		}
		log.Warn("keeping StorageClasses; trying again: apply deploy/kubernetes if rights are missing", "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startAgain):
		}
	}
}

// keeper keeps the classes.
type keeper struct {
	cache    cache.Cache
	have     client.Reader
	writer   *writer
	backends []string
	log      *slog.Logger
	// said are the notes of the last run.
	said []string
}

func newKeeper(config *rest.Config, backends []string, log *slog.Logger) (*keeper, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "classes")
	config.QPS = -1
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	k := &keeper{writer: newWriter(c), backends: backends, log: log}
	if k.cache, err = newCache(config, scheme, log); err != nil {
		return nil, fmt.Errorf("while preparing the caches: %w", err)
	}
	k.have = k.cache
	return k, nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, storagev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	return scheme, nil
}

func newCache(config *rest.Config, scheme *runtime.Scheme, log *slog.Logger) (cache.Cache, error) {
	ours, err := labels.NewRequirement(LabelClass, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	return cache.New(config, cache.Options{
		Scheme: scheme, ReaderFailOnMissingInformer: true, DefaultWatchErrorHandler: reconcile.Unwatched(log),
		DefaultTransform: cache.TransformStripManagedFields(),
		// The keeper writes to nothing that the cache holds.
		DefaultUnsafeDisableDeepCopy: ptr.To(true),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.Secret{}:           {Label: labels.NewSelector().Add(*ours), Transform: withoutValues},
			&corev1.PersistentVolume{}: {Transform: withoutDetails},
		},
	})
}

// withoutValues drops what a Secret holds before it is kept.
func withoutValues(o any) (any, error) {
	if s, ok := o.(*corev1.Secret); ok {
		s.Data, s.ManagedFields = nil, nil
	}
	return o, nil
}

// withoutDetails leaves of a volume what Decide reads.
func withoutDetails(o any) (any, error) {
	if v, ok := o.(*corev1.PersistentVolume); ok {
		v.ManagedFields, v.Spec.NodeAffinity, v.Labels = nil, nil, nil
	}
	return o, nil
}

// kinds are what a keeper watches.
func kinds() []client.Object {
	return []client.Object{
		&api.StorageCluster{}, &api.StorageStatus{}, &api.Pool{}, &api.Filesystem{}, &api.Client{}, &corev1.Secret{},
		&corev1.PersistentVolume{}, &storagev1.StorageClass{}, &storagev1.CSIDriver{},
	}
}

func (k *keeper) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		What: "keeping StorageClasses", Cache: k.cache, Kinds: kinds(), Matters: matters,
		Reconcile: k.reconcile, Log: k.log,
	})
}

// reconcile brings everything to what it should be.
func (k *keeper) reconcile(ctx context.Context) (time.Duration, error) {
	world, err := read(ctx, k.have)
	if err != nil {
		return 0, err
	}
	wait, p := again, Decide(*world, k.backends)
	if p.NeedsClaims {
		if err := k.writer.readClaims(ctx, world); err != nil {
			return 0, err
		}
		wait, p = claimsAgain, Decide(*world, k.backends)
	}
	k.say(p.Notes)
	return wait, k.writer.write(ctx, p)
}

// say logs the notes that the last run did not have.
func (k *keeper) say(notes []string) {
	for _, note := range notes {
		if !slices.Contains(k.said, note) {
			k.log.Warn(note)
		}
	}
	k.said = notes
}

func read(ctx context.Context, from client.Reader) (*World, error) {
	var (
		w        World
		clusters api.StorageClusterList
		statuses api.StorageStatusList
		pools    api.PoolList
		fs       api.FilesystemList
		clients  api.ClientList
		secrets  corev1.SecretList
		volumes  corev1.PersistentVolumeList
		classes  storagev1.StorageClassList
	)
	for _, list := range []client.ObjectList{
		&clusters, &statuses, &pools, &fs, &clients, &secrets, &volumes, &classes,
	} {
		var options []client.ListOption
		if list == &secrets {
			options = append(options, client.HasLabels{LabelClass})
		}
		if err := from.List(ctx, list, options...); err != nil {
			return nil, fmt.Errorf("while reading %T: %w", list, err)
		}
	}
	err := from.Get(ctx, types.NamespacedName{Name: backend.DriverName}, &storagev1.CSIDriver{})
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("while looking for the CSI driver: %w", err)
	}
	w.Driver = err == nil
	w.Clusters, w.Statuses, w.Pools, w.Filesystems = clusters.Items, statuses.Items, pools.Items, fs.Items
	w.Clients, w.Secrets, w.Volumes, w.Classes = clients.Items, secrets.Items, volumes.Items, classes.Items
	return &w, nil
}
