package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/cli/fallback"
	"github.com/holdfast-storage/holdfast/cli/noquorum"
	"github.com/holdfast-storage/holdfast/cli/patient"
	"github.com/holdfast-storage/holdfast/control"
	"github.com/holdfast-storage/holdfast/control/damaged"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/internal/waits"
)

const (
	defaultDataDir   = "/var/lib/holdfast"
	defaultNamespace = "default"
)

// globals are the flags that every command has, and what is made from them.
type globals struct {
	streams
	kubeconfig string
	context    string
	namespace  string
	dataDir    string
	// waits are those of waits.Variable.
	waits waits.Waits
	// atOnce says that the command only asks: without a quorum it ends at once.
	atOnce bool
	// told is done when it was said that an answer is waited for, and elsewhere when it was that another server is asked.
	told, elsewhere sync.Once
	// asked are the plans that the leader was asked with, and the Secrets that go with them. They are removed in the end.
	asked []client.Object
}

func (g *globals) bind(flags *pflag.FlagSet) {
	flags.StringVar(&g.kubeconfig, "kubeconfig", "", "the kubeconfig for the API (default: "+
		"$HOLDFAST_KUBECONFIG, $KUBECONFIG, or the server's own admin.kubeconfig on this machine)")
	flags.StringVar(&g.context, "context", "", "the context of the kubeconfig (default: its current one)")
	flags.StringVarP(&g.namespace, "namespace", "n", "", "the namespace (default: that of the context, or default)")
	flags.StringVar(&g.dataDir, "data-dir", envOr("HOLDFAST_DATA_DIR", defaultDataDir), "the directory of Holdfast's state on this machine")
}

// prepare reads what the environment sets, before any command does anything.
func (g *globals) prepare(cmd *cobra.Command, _ []string) (err error) {
	g.atOnce = slices.Contains([]string{"quorum", "status", "get", "why"}, topLevel(cmd))
	if g.waits, err = waits.Parse(os.Getenv(waits.Variable)); err != nil {
		return &exitError{exitUsage, fmt.Errorf("$%s: %w", waits.Variable, err)}
	}
	if g.namespace == "" {
		g.namespace = contextNamespace(g)
	}
	return nil
}

// contextNamespace is the namespace that the context of the kubeconfig names. Those who need a
// kubeconfig tell of one that cannot be read.
func contextNamespace(g *globals) string {
	loader, err := g.kubeconfigLoader()
	if err != nil {
		return defaultNamespace
	}
	namespace, _, err := loader.Namespace()
	if err != nil || namespace == "" {
		return defaultNamespace
	}
	return namespace
}

func envOr(name, otherwise string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return otherwise
}

// kubeconfigPath finds the file that says how to reach the API.
func (g *globals) kubeconfigPath() (string, error) {
	own := control.AdminKubeconfig(g.dataDir)
	for _, path := range []string{g.kubeconfig, os.Getenv("HOLDFAST_KUBECONFIG"), os.Getenv("KUBECONFIG")} {
		if path != "" {
			return path, nil
		}
	}
	if f, err := os.Open(own); err == nil {
		f.Close()
		return own, nil
	} else if errors.Is(err, os.ErrPermission) {
		return "", fmt.Errorf("only root may read %s: use sudo, or your own kubeconfig with --kubeconfig", own)
	}
	if known := endpoints.Known(control.HostDir(g.dataDir)); len(known) > 0 {
		return "", fmt.Errorf("this machine runs an agent and has no kubeconfig: run the command on a server (%s), or "+
			"give a kubeconfig with --kubeconfig (create one with 'holdfast kubeconfig create NAME' on a server)",
			strings.Join(known, ", "))
	}
	return "", fmt.Errorf("this machine has no server yet (%s does not exist): run 'holdfast server --init' and wait "+
		"until it is ready, or give a kubeconfig with --kubeconfig", own)
}

// quietLibraries keeps what the API's libraries log to themselves from a command's output: it is said in the command's own
// error. It is called once, before anything runs that logs there.
func quietLibraries() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
}

// restConfig says how to reach the API, also when the kubeconfig is written anew meanwhile.
func (g *globals) restConfig() (*rest.Config, error) {
	config, err := g.readConfig()
	if err != nil {
		return nil, err
	}
	first := rest.CopyConfig(config)
	config.Wrap(func(by http.RoundTripper) http.RoundTripper { return newFollower(g.readConfig, reach{first, by}) })
	if g.err != nil {
		config.Wrap(func(by http.RoundTripper) http.RoundTripper {
			return patient.RoundTripper{By: by, Out: g.err, Once: &g.told}
		})
	}
	if g.atOnce {
		config.Wrap(func(by http.RoundTripper) http.RoundTripper {
			look := func(ctx context.Context) *noquorum.Error { return lookAtServers(ctx, g) }
			return &noquorum.RoundTripper{By: by, Look: look}
		})
	}
	return config, nil
}

// readConfig says how to reach the API by what the kubeconfig holds now.
func (g *globals) readConfig() (*rest.Config, error) {
	if config, err := g.podConfig(); config != nil || err != nil {
		return config, err
	}
	loader, err := g.kubeconfigLoader()
	if err != nil {
		return nil, err
	}
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("while reading the kubeconfig: %w", err)
	}
	config.UserAgent = "holdfast-cli"
	// A person waits for the answer: no client-side throttling.
	config.QPS = -1
	if path, err := g.kubeconfigPath(); err == nil && path == control.AdminKubeconfig(g.dataDir) {
		withFallback(g, config)
	}
	return config, nil
}

// asVariable is the user that commands act as in the operator's pod.
const asVariable = "HOLDFAST_AS"

// podConfig says how to reach the API from a pod of a Kubernetes cluster where nothing else is said. It is nil elsewhere.
func (g *globals) podConfig() (*rest.Config, error) {
	if g.kubeconfig != "" || os.Getenv("HOLDFAST_KUBECONFIG") != "" || os.Getenv("KUBECONFIG") != "" {
		return nil, nil
	}
	if _, err := os.Stat(control.AdminKubeconfig(g.dataDir)); err == nil {
		return nil, nil
	}
	config, err := inCluster()
	if errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("while reading the account of this pod: %w", err)
	}
	config.UserAgent, config.Impersonate.UserName = "holdfast-cli", os.Getenv(asVariable)
	return config, nil
}

// client makes a client for our kinds and the core kinds, which writes in the name of this user.
func (g *globals) client() (client.WithWatch, error) {
	config, err := g.restConfig()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(config, client.Options{Scheme: newScheme()})
	if err != nil {
		return nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	owner, err := g.owner()
	if err != nil {
		return nil, err
	}
	return ownedClient{client.WithFieldOwner(c, owner), c}, nil
}

// mapper resolves what people call kinds: storagecluster, storageclusters, stc.
func (g *globals) mapper(config *rest.Config) (meta.RESTMapper, error) {
	dc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("while connecting to %s: %w", config.Host, err)
	}
	cached := memory.NewMemCacheClient(dc)
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(cached), cached, nil), nil
}

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme, coordinationv1.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // the types are compiled in
		}
	}
	return s
}

// withFallback has requests to the server of a machine reach another one that the machine knows.
// The certificate of each is good for one name.
func withFallback(g *globals, config *rest.Config) {
	host, err := url.Parse(config.Host)
	if err != nil || g.err == nil {
		return
	}
	d := fallback.Dialer{
		Own: host.Host, Out: g.err, Once: &g.elsewhere,
		Others: func() []string { return endpoints.Known(control.HostDir(g.dataDir)) },
	}
	config.Dial, config.ServerName = d.Dial, endpoints.ServerName
}

// lookAtServers asks each server that is known here whether it is ready.
func lookAtServers(ctx context.Context, g *globals) *noquorum.Error {
	e := &noquorum.Error{}
	config, err := g.readConfig()
	if err != nil {
		return e
	}
	var servers []string
	if host, err := url.Parse(config.Host); err == nil {
		servers = []string{host.Host}
	}
	if config.ServerName == endpoints.ServerName { // the kubeconfig is this machine's own
		servers = append(servers, endpoints.Known(control.HostDir(g.dataDir))...)
		if n, err := damaged.Read(g.dataDir); err == nil && n != nil && n.Kept == "" {
			e.Here = "the files of etcd are damaged (" + n.String() + "): " + damaged.NextStep(g.dataDir, len(servers) < 2)
		}
	}
	slices.Sort(servers)
	e.Servers = noquorum.Look(ctx, config, slices.Compact(servers))
	return e
}
