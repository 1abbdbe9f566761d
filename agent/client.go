package agent

import (
	"errors"
	"net/http"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// callTimeout bounds one request to the API.
const callTimeout = 10 * time.Second

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), coordv1.AddToScheme(s), api.AddToScheme(s))
}

// newClient makes a client that asks the server nothing before the first request, so that an agent starts while there is no
// server: it knows its few kinds by itself.
func newClient(cfg *rest.Config, clock *serverClock) (client.WithWatch, error) {
	if cfg == nil {
		return nil, errors.New("it needs a way to the servers")
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &clockTripper{next: next, clock: clock} })
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: newMapper()})
}

func newMapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper([]schema.GroupVersion{api.GroupVersion, corev1.SchemeGroupVersion, coordv1.SchemeGroupVersion})
	m.Add(api.GroupVersion.WithKind("Host"), meta.RESTScopeRoot)
	m.Add(api.GroupVersion.WithKind("Daemon"), meta.RESTScopeNamespace)
	m.Add(api.GroupVersion.WithKind("Action"), meta.RESTScopeNamespace)
	m.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
	m.Add(coordv1.SchemeGroupVersion.WithKind("Lease"), meta.RESTScopeNamespace)
	return m
}
