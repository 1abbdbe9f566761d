// Package operator is what 'holdfast operator' runs: the election of a leader in a Kubernetes
// cluster, with what leads.
package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/holdfast-storage/holdfast/api/crd"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/csi/classes"
	"github.com/holdfast-storage/holdfast/internal/livefigures"
	"github.com/holdfast-storage/holdfast/internal/version"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/platform/kube"
	"github.com/holdfast-storage/holdfast/platform/store"
)

const (
	// installTimeout bounds bringing the definitions of the kinds to this version.
	installTimeout = time.Minute
	// warmTimeout bounds the preparation of the kinds, which is of use and not needed.
	warmTimeout = 3 * time.Second
	// stopTimeout bounds answering what was asked of the operator's HTTP port before it ends.
	stopTimeout = 5 * time.Second
)

// times are those of the operators' election. API servers of Kubernetes are farther away than
// Holdfast's own, and an operator that is restarted releases the Lease.
var times = election.Times{
	Lease: 15 * time.Second, Deadline: 10 * time.Second, Renew: 2 * time.Second, Retry: time.Second,
}

// Config is what an operator needs.
type Config struct {
	// Name is unique among the operators.
	Name string
	// REST reaches the API as the operator's ServiceAccount.
	REST *rest.Config
	// Nodes selects the Nodes that become Hosts.
	Nodes labels.Selector
	// Listen is the address that serves health and metrics; empty: none.
	Listen string
	// Unfenced lets an operator lead where the policies are missing that hold the fence.
	Unfenced bool
	// VolumeBackends are those of the CSI driver, which get StorageClasses.
	VolumeBackends []string
	// Leader is what leads, without what this package adds: the Store, the name and the metrics.
	Leader leader.Config
	Log    *slog.Logger
}

type operator struct {
	Config

	terms   *kube.Terms
	metrics *leader.Metrics
	// problem is why the operator cannot lead. It counts for unfitFor.
	problem atomic.Pointer[problem]
	// asked answers while the operator leads; otherwise nil.
	asked atomic.Pointer[leader.Asked]
}

// Run runs an operator until ctx ends.
func Run(ctx context.Context, c Config) error {
	terms, err := kube.NewTerms(c.REST, c.Unfenced, c.Log.With("part", "term"))
	if err != nil {
		return fmt.Errorf("while starting the operator: %w", err)
	}
	o := &operator{Config: c, terms: terms, metrics: &leader.Metrics{}}
	legacyregistry.RawMustRegister(o.metrics)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.serve(ctx) })
	group.Go(func() error {
		for ctx.Err() == nil {
			o.awaitFit(ctx)
			if err := o.contend(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// contend leads, or waits for another operator to end, until ctx ends or leading fails by what
// lasts.
func (o *operator) contend(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e := &election.Election{
		REST: o.REST, Namespace: api.SystemNamespace, Name: api.LeaderLease, Server: o.Name, Times: times,
		Won: func(ctx context.Context, token string) error {
			err := o.won(ctx, token)
			o.tell(ctx, err)
			stopOn(err, stop)
			return err
		},
		Log: o.Log.With("part", "election"),
	}
	return e.Run(ctx, func(ctx context.Context, token string) {
		o.tell(ctx, nil)
		if err := o.lead(ctx, token); err != nil && ctx.Err() == nil {
			o.tell(ctx, err)
			o.Log.Error("giving up leadership", "error", err)
			stopOn(err, stop)
		}
	})
}

// won makes the kinds and the token count. Definitions of a newer release stay, and this operator
// does not lead beside them.
func (o *operator) won(ctx context.Context, token string) error {
	if err := o.withKinds(ctx, crd.Install); err != nil {
		return err
	}
	defer o.warm(ctx)()
	return o.terms.Won(ctx, token)
}

// warm has the API server prepare the kinds while the token comes to count, which takes as long. It
// returns what waits for that: an API server answers the first request for a new kind by "try again
// in a second".
func (o *operator) warm(ctx context.Context) (wait func()) {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := store.Warm(ctx, o.REST); err != nil && ctx.Err() == nil {
			o.Log.Debug("a kind is not prepared; the first request for it waits", "error", err)
		}
	}()
	return func() {
		<-done
		cancel()
	}
}

// withKinds has do work on the definitions of the kinds.
func (o *operator) withKinds(
	ctx context.Context, do func(context.Context, typed.CustomResourceDefinitionInterface, crd.Options) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	all, err := crd.Kubernetes()
	if err != nil {
		return err
	}
	extensions, err := clientset.NewForConfig(o.REST)
	if err != nil {
		return err
	}
	options := crd.Options{Version: version.Version, Definitions: all}
	return do(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), options)
}

// lead runs the leader until ctx ends. Whatever it writes carries token.
func (o *operator) lead(ctx context.Context, token string) error {
	s, err := store.New(ctx, store.Options{
		Config: o.REST, Token: token, Fence: kube.Fenced, NodeLabels: true, Reviews: true,
		Forbids: kube.Forbids,
	})
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	defer s.Close()
	keeper, err := kube.NewKeeper(kube.Fenced(o.REST, token), o.Nodes, o.Log.With("part", "keeper"))
	if err != nil {
		return fmt.Errorf("while starting to keep hosts: %w", err)
	}
	c := o.Leader
	c.Store, c.Plans, c.Name, c.Metrics, c.Log = s, s.Plans(), o.Name, o.metrics, o.Log.With("part", "engine")
	if c.Actions, err = s.Actions(ctx); err != nil {
		return fmt.Errorf("while starting the processing of actions: %w", err)
	}
	c.Ready = o.asked.Store
	defer o.asked.Store(nil)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.terms.Watch(ctx, token) })
	group.Go(func() error { return keeper.Run(ctx) })
	group.Go(func() error {
		return classes.Run(ctx, kube.Fenced(o.REST, token), o.VolumeBackends, o.Log.With("part", "classes"))
	})
	group.Go(func() error { return leader.Run(ctx, c) })
	return group.Wait()
}

// serve answers the kubelet's probes and serves metrics until ctx ends.
func (o *operator) serve(ctx context.Context) error {
	if o.Listen == "" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Listen)
	if err != nil {
		return fmt.Errorf("while serving health and metrics: %w", err)
	}
	server := &http.Server{Handler: o.handler(), ReadHeaderTimeout: stopTimeout}
	defer context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // what is asked for then is asked for again
	})()
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("while serving health and metrics: %w", err)
	}
	return nil
}

func (o *operator) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if p := o.problem.Load(); p != nil && time.Since(p.seen) < unfitFor {
			http.Error(w, "this operator cannot lead: "+p.text, http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", legacyregistry.Handler())
	mux.Handle("GET "+livefigures.Prefix, &livefigures.Handler{Ask: o.figures})
	return mux
}

// figures asks a storage system while this operator leads.
func (o *operator) figures(ctx context.Context, cluster types.NamespacedName) (*api.StorageFigures, error) {
	asked := o.asked.Load()
	if asked == nil {
		return nil, errors.New("this operator does not lead")
	}
	return asked.Figures(ctx, cluster)
}
