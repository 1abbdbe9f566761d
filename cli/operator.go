package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	typed "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/holdfast-storage/holdfast/api/crd"
	election "github.com/holdfast-storage/holdfast/control/leader"
	"github.com/holdfast-storage/holdfast/internal/gctune"
	"github.com/holdfast-storage/holdfast/internal/version"
	"github.com/holdfast-storage/holdfast/internal/waits"
	"github.com/holdfast-storage/holdfast/leader"
	"github.com/holdfast-storage/holdfast/platform/kube"
	"github.com/holdfast-storage/holdfast/platform/store"
)

const (
	// installTimeout bounds bringing the definitions of the kinds to this version.
	installTimeout = time.Minute
	// stopTimeout bounds answering what was asked of the operator's HTTP port before it ends.
	stopTimeout = 5 * time.Second
)

// kubeTimes are those of the operators' election. API servers of Kubernetes are farther away than Holdfast's own, and an operator
// that is restarted releases the Lease.
var kubeTimes = election.Times{Lease: 15 * time.Second, Deadline: 10 * time.Second, Renew: 2 * time.Second, Retry: time.Second}

// operator is what 'holdfast operator' runs.
type operator struct {
	name     string
	nodes    string
	listen   string
	unfenced bool
	waits    waits.Waits
	log      *slog.Logger
	// problem is why the operator cannot lead. It counts for unfitFor.
	problem atomic.Pointer[problem]
}

func newOperator(g *globals) *cobra.Command {
	o := &operator{}
	cmd := &cobra.Command{
		Use:   "operator",
		Short: "Run the operator in a Kubernetes cluster",
		Long: `Runs the operator until it is stopped: it leads, or waits until the operator that leads ends.

The operator keeps no state outside the API. It reaches the API with its pod's ServiceAccount, or with --kubeconfig. The
manifests in deploy/kubernetes hold its rights and the policies that it needs. Stopping the operator stops no storage daemon.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.waits, o.log = g.waits, newLog(g)
			slog.SetDefault(o.log)
			selector, err := labels.Parse(o.nodes)
			if err != nil {
				return &exitError{exitUsage, fmt.Errorf("--node-selector: %w", err)}
			}
			config, err := g.clusterConfig()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), config, selector)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.name, "name", cmp.Or(os.Getenv("POD_NAME"), hostname()), "the name of this operator, unique among the operators (default $POD_NAME, or the host name)")
	f.StringVar(&o.nodes, "node-selector", "kubernetes.io/os=linux", "the labels of the Nodes that become Hosts: those that the agents' DaemonSet selects")
	f.StringVar(&o.listen, "listen", ":9443", "the address that serves /healthz, /readyz and /metrics; empty: none")
	f.BoolVar(&o.unfenced, "unfenced", false, "lead also where the admission policies are missing that refuse writes of a replaced operator")
	return cmd
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

// clusterConfig says how to reach the API of a Kubernetes cluster: by the kubeconfig that is given, or as the pod that this is.
func (g *globals) clusterConfig() (*rest.Config, error) {
	if g.kubeconfig == "" && os.Getenv("KUBECONFIG") == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("this is no pod of a Kubernetes cluster, so --kubeconfig has to say how to reach the API: %w", err)
		}
		return config, nil
	}
	return g.restConfig()
}

// run runs the operator until ctx ends.
func (o *operator) run(ctx context.Context, config *rest.Config, nodes labels.Selector) error {
	go gctune.Run(ctx)
	terms, err := kube.NewTerms(config, o.unfenced, o.log.With("part", "term"))
	if err != nil {
		return fmt.Errorf("while starting the operator: %w", err)
	}
	now := &leader.Metrics{}
	legacyregistry.RawMustRegister(now)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.serve(ctx) })
	group.Go(func() error {
		for ctx.Err() == nil {
			o.awaitFit(ctx, config, terms)
			if err := o.contend(ctx, config, terms, nodes, now); err != nil {
				return err
			}
		}
		return nil
	})
	return group.Wait()
}

// contend leads, or waits for another operator to end, until ctx ends or leading fails.
func (o *operator) contend(ctx context.Context, config *rest.Config, terms *kube.Terms, nodes labels.Selector, now *leader.Metrics) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	e := &election.Election{
		REST: config, Namespace: store.SystemNamespace, Name: store.LeaderLease, Server: o.name, Times: kubeTimes,
		Won: func(ctx context.Context, token string) error {
			err := installKinds(ctx, config)
			if err == nil {
				err = terms.Won(ctx, token)
			}
			o.tell(ctx, err)
			stopOn(err, stop)
			return err
		},
		Log: o.log.With("part", "election"),
	}
	return e.Run(ctx, func(ctx context.Context, token string) {
		o.tell(ctx, nil)
		if err := o.lead(ctx, config, token, terms, nodes, now); err != nil && ctx.Err() == nil {
			o.tell(ctx, err)
			o.log.Error("giving up leadership", "error", err)
			stopOn(err, stop)
		}
	})
}

// installKinds brings the definitions of the kinds to this version. Those of a newer release stay, and this operator does not lead
// beside them.
func installKinds(ctx context.Context, config *rest.Config) error {
	return withKinds(ctx, config, crd.Install)
}

// withKinds has do work on the definitions of the kinds.
func withKinds(
	ctx context.Context, config *rest.Config,
	do func(context.Context, typed.CustomResourceDefinitionInterface, crd.Options) error,
) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	all, err := crd.Kubernetes()
	if err != nil {
		return err
	}
	extensions, err := clientset.NewForConfig(config)
	if err != nil {
		return err
	}
	return do(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), crd.Options{Version: version.Version, Definitions: all})
}

// lead runs the leader until ctx ends. Whatever it writes carries token.
func (o *operator) lead(
	ctx context.Context, config *rest.Config, token string, terms *kube.Terms, nodes labels.Selector, now *leader.Metrics,
) error {
	s, err := store.New(ctx, store.Options{Config: config, Token: token, Fence: kube.Fenced, NodeLabels: true, Forbids: kube.Forbids})
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	defer s.Close()
	keeper, err := kube.NewKeeper(kube.Fenced(config, token), nodes, o.log.With("part", "keeper"))
	if err != nil {
		return fmt.Errorf("while starting to keep hosts: %w", err)
	}
	c := leads(o.waits)
	c.Store, c.Name, c.Metrics, c.Log = s, o.name, now, o.log.With("part", "engine")
	if c.Actions, err = s.Actions(ctx); err != nil {
		return fmt.Errorf("while starting to look after actions: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return terms.Watch(ctx, token) })
	group.Go(func() error { return keeper.Run(ctx) })
	group.Go(func() error { return leader.Run(ctx, c) })
	return group.Wait()
}

// serve answers the kubelet's probes and serves metrics until ctx ends.
func (o *operator) serve(ctx context.Context) error {
	if o.listen == "" {
		return nil
	}
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
	l, err := net.Listen("tcp", o.listen)
	if err != nil {
		return fmt.Errorf("while serving health and metrics: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: stopTimeout}
	defer context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		_ = server.Shutdown(ending) // what is asked for then is asked for again
	})()
	if err := server.Serve(l); err != http.ErrServerClosed {
		return fmt.Errorf("while serving health and metrics: %w", err)
	}
	return nil
}
