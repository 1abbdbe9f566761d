// Package apiserver is the API of the bare home: the Kubernetes API machinery as a library, serving the holdfast.io kinds
// and the few core kinds that they and their clients need (Namespace, Secret, ConfigMap, Event, Lease).
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	extensions "k8s.io/apiextensions-apiserver/pkg/apiserver"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/events"
	"github.com/holdfast-storage/holdfast/control/reviews"
)

// Config says how to serve the API.
type Config struct {
	// Listener is where the API is served. The server closes it.
	Listener net.Listener
	// Credentials are the server's certificate, and whom it believes.
	Credentials *Credentials
	// Loopback reaches this server with all rights; the server uses it for its own controllers.
	Loopback *rest.Config
	// Etcd is the local member.
	Etcd Etcd
	// EncryptionKey encrypts Secrets before they are stored.
	EncryptionKey [32]byte
	// Authorizer decides who may do what, Admission about what is written beyond its schema. Admission is asked after the
	// rules that concern namespaces.
	Authorizer authorizer.Authorizer
	Admission  []admission.Interface
	// Rules lists what the Authorizer lets a user do in a namespace with what is served.
	Rules func(
		ctx context.Context, u user.Info, namespace string, served []*metav1.APIResourceList,
	) authorizationv1.SubjectRulesReviewStatus
	// Checks are added to those of the library, under /healthz and /readyz.
	Checks []healthz.HealthChecker
	// Refused is called with each request whose certificate is not believed. Nil: nobody wants to know.
	Refused func(*http.Request)
	// Guard wraps what is served to those who are known and may do what they ask for. It may refuse them yet.
	Guard func(http.Handler) http.Handler
	// Open is served without asking who the client is, and Known to every client with a certificate. Both map a path to a
	// handler; one of Known that ends in a slash stands for all paths below it.
	Open, Known map[string]http.Handler
	// Long are those of the paths whose answers may take longer than a minute.
	Long []string
}

// Server is an API server. It serves nothing until Run is called, and nobody but the server itself until Open is called.
type Server struct {
	extensions *extensions.CustomResourceDefinitions
	loopback   *rest.Config
	listener   net.Listener
	gate       *gate
}

// stopGrace is how long watches, and then the remaining connections, may take to end when the server stops.
const stopGrace = time.Second

// rulesTimeout bounds how long the server looks what it serves, to list what somebody may do with
// it.
const rulesTimeout = 10 * time.Second

// New sets the server up. Nothing is read from etcd yet.
func New(c Config) (*Server, error) {
	generic := genericapiserver.NewRecommendedConfig(extensions.Codecs)
	visits := newVisits(c.Listener)
	c.secure(&generic.Config, visits)
	transformers := secretTransformers(c.EncryptionKey)
	generic.RESTOptionsGetter = c.Etcd.extensions(transformers)
	generic.LoopbackClientConfig = c.Loopback
	generic.MergedResourceConfig = extensions.DefaultAPIResourceConfigSource()
	generic.EffectiveVersion = newEffectiveVersion()
	// Watches are ended at a stop; without this, they would hold it up for a minute.
	generic.ShutdownWatchTerminationGracePeriod = stopGrace
	// Profiles are for administrators alone, as every path that no rule opens is.
	generic.EnableIndex, generic.EnableProfiling = false, true
	generic.FlowControl = newShares()
	generic.DisabledPostStartHooks.Insert(crdHook)
	// The library would also check, once a minute and for ever, that its logger is not blocked.
	ping := []healthz.HealthChecker{healthz.PingHealthz}
	generic.HealthzChecks, generic.LivezChecks, generic.ReadyzChecks = ping[:1:1], ping[:1:1], ping[:1:1]
	generic.AddHealthChecks(c.Checks...)
	isLong := generic.LongRunningFunc
	generic.LongRunningFunc = func(r *http.Request, info *request.RequestInfo) bool {
		return slices.Contains(c.Long, r.URL.Path) || isLong(r, info)
	}
	describeAPI(&generic.Config)
	core, err := newCore(c.Etcd.core(transformers))
	if err != nil {
		return nil, err
	}
	namespaces := &namespaceRules{core: core, loopback: c.Loopback}
	generic.AdmissionControl = admission.NewChainHandler(append([]admission.Interface{namespaces}, c.Admission...)...)
	gate := &gate{}
	doors.Publish()
	generic.BuildHandlerChainFunc = func(api http.Handler, generic *genericapiserver.Config) http.Handler {
		return c.openChain(visits, gate.guard(c.Guard(visits.boundWatches(passFences(api), generic))), generic)
	}
	config := extensions.Config{
		GenericConfig: generic,
		// One server is one "master": a definition is established without waiting for others to hear of it.
		ExtraConfig: extensions.ExtraConfig{CRDRESTOptionsGetter: c.Etcd.custom(transformers), MasterCount: 1},
	}
	ext, err := config.Complete().New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, fmt.Errorf("while setting up the API server: %w", err)
	}
	// The library waits a second for clients to let idle connections go, and this long for all.
	ext.GenericAPIServer.ShutdownTimeout = 2 * stopGrace
	if err := awaitDefinitions(ext); err != nil {
		return nil, fmt.Errorf("while setting up the API server: %w", err)
	}
	namespaces.definitions = ext.Informers.Apiextensions().V1().CustomResourceDefinitions().Lister()
	shown, err := events.New(c.Loopback)
	if err != nil {
		return nil, fmt.Errorf("while setting up the core events: %w", err)
	}
	if err := core.install(ext.GenericAPIServer, shown, reviews.Storage(c.Authorizer, c.rules)); err != nil {
		return nil, fmt.Errorf("while setting up the core kinds: %w", err)
	}
	serveGroups(ext)
	for path, handler := range c.Known {
		if strings.HasSuffix(path, "/") {
			ext.GenericAPIServer.Handler.NonGoRestfulMux.HandlePrefix(path, handler)
			continue
		}
		ext.GenericAPIServer.Handler.NonGoRestfulMux.Handle(path, handler)
	}
	return &Server{extensions: ext, loopback: c.Loopback, listener: c.Listener, gate: gate}, nil
}

// Run serves until ctx ends, and returns when all requests but watches have been answered.
func (s *Server) Run(ctx context.Context) error {
	return s.extensions.GenericAPIServer.PrepareRun().RunWithContext(ctx)
}

// WaitReady waits until the server answers that it is ready.
func (s *Server) WaitReady(ctx context.Context) error {
	client, err := rest.HTTPClientFor(s.loopback)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ask(ctx, client, s.loopback.Host+"/readyz")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("while waiting for the API server to be ready: %w", errors.Join(context.Cause(ctx), err))
		case <-tick.C:
		}
	}
}

func ask(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	return nil
}

// openChain puts the handlers of c.Open before the library's chain, which would refuse clients without a certificate.
func (c *Config) openChain(visits *visits, api http.Handler, generic *genericapiserver.Config) http.Handler {
	mux := http.NewServeMux()
	for path, handler := range c.Open {
		mux.Handle(path, visits.open(handler))
	}
	mux.Handle("/", genericapiserver.DefaultBuildHandlerChain(api, generic))
	return visits.receive(mux)
}

// rules lists what a user may do with what is served now.
func (c *Config) rules(ctx context.Context, u user.Info, namespace string) authorizationv1.SubjectRulesReviewStatus {
	own := rest.CopyConfig(c.Loopback)
	own.Timeout = rulesTimeout
	discover, err := discovery.NewDiscoveryClientForConfig(own)
	var served []*metav1.APIResourceList
	if err == nil {
		_, served, err = discover.ServerGroupsAndResources()
	}
	status := c.Rules(ctx, u, namespace, served)
	if err != nil {
		status.Incomplete, status.EvaluationError = true, fmt.Sprintf("while looking what is served: %v", err)
	}
	return status
}

// describeAPI lets clients ask what the kinds look like (OpenAPI), as 'kubectl explain' and 'kubectl apply' do.
func describeAPI(c *genericapiserver.Config) {
	namer := openapinamer.NewDefinitionNamer(extensions.Scheme, coreScheme)
	c.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions(coreScheme), namer)
	c.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions(coreScheme), namer)
	c.OpenAPIConfig.Info.Title, c.OpenAPIV3Config.Info.Title = "Holdfast", "Holdfast"
}
