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
	// fit is set while the operator leads, or waits for another one to end.
	fit atomic.Bool
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
	e := &election.Election{
		REST: config, Namespace: store.SystemNamespace, Name: store.LeaderLease, Server: o.name, Times: kubeTimes,
		Won: func(ctx context.Context, token string) error {
			o.fit.Store(false)
			if err := installKinds(ctx, config); err != nil {
				return err
			}
			return terms.Won(ctx, token)
		},
		Log: o.log.With("part", "election"),
	}
	o.fit.Store(true)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return o.serve(ctx) })
	group.Go(func() error {
		return e.Run(ctx, func(ctx context.Context, token string) {
			o.fit.Store(true)
			if err := o.lead(ctx, config, token, terms, nodes, now); err != nil && ctx.Err() == nil {
				o.fit.Store(false)
				o.log.Error("giving up leadership", "error", err)
			}
		})
	})
	return group.Wait()
}

// installKinds brings the definitions of the kinds to this version. Those of a newer release stay, and this operator does not lead
// beside them.
func installKinds(ctx context.Context, config *rest.Config) error {
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
	options := crd.Options{Version: version.Version, Definitions: all}
	return crd.Install(ctx, extensions.ApiextensionsV1().CustomResourceDefinitions(), options)
}

// lead runs the leader until ctx ends. Whatever it writes carries token.
func (o *operator) lead(
	ctx context.Context, config *rest.Config, token string, terms *kube.Terms, nodes labels.Selector, now *leader.Metrics,
) error {
	s, err := store.New(ctx, store.Options{Config: config, Token: token, Fence: kube.Fenced, NodeLabels: true})
	if err != nil {
		return fmt.Errorf("while starting the engine: %w", err)
	}
	defer s.Close()
	keeper, err := kube.NewKeeper(kube.Fenced(config, token), nodes, o.log.With("part", "keeper"))
	if err != nil {
		return fmt.Errorf("while starting to keep hosts: %w", err)
	}
	c := leads(o.waits)
	c.Store, c.Plans, c.Name, c.Metrics, c.Log = s, kube.Plans{Plans: s.Plans()}, o.name, now, o.log.With("part", "engine")
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
		if !o.fit.Load() {
			http.Error(w, "this operator cannot lead; its log says why", http.StatusServiceUnavailable)
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
