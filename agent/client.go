package agent

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	coordv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/clock"
	"github.com/holdfast-storage/holdfast/agent/pending"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// callTimeout bounds one request to the API. A server to which a whole fleet comes at once has each request wait its turn: whoever
// gave up early would have to stand in line again. A server that does not answer at all is found by its heartbeats, much earlier.
const callTimeout = 30 * time.Second

func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(corev1.AddToScheme(s), coordv1.AddToScheme(s), api.AddToScheme(s))
}

// newClient makes a client that asks the server nothing before the first request, so that an agent starts while there is no
// server: it knows its few kinds by itself.
func newClient(cfg *rest.Config, to *clock.Server) (client.WithWatch, error) {
	if cfg == nil {
		return nil, errors.New("it needs a way to the servers")
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &clock.Tripper{Next: next, Clock: to} })
	line := make(chan struct{}, atOnce)
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return &lineTripper{next: next, line: line} })
	return client.NewWithWatch(cfg, client.Options{Scheme: scheme, Mapper: newMapper()})
}

// atOnce is how many requests an agent has under way at once. A server that has a fleet to bring up holds all that wait there, some
// 60 KB for each; and to have more of them gains a host little.
const atOnce = 2

// lineTripper keeps requests waiting here rather than at the server. Heartbeats and watches do not wait.
type lineTripper struct {
	next http.RoundTripper
	line chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (t *lineTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.Contains(r.URL.Path, "/leases") || r.URL.Query().Has("watch") {
		return t.next.RoundTrip(r)
	}
	select {
	case t.line <- struct{}{}:
		defer func() { <-t.line }()
		return t.next.RoundTrip(r)
	case <-r.Context().Done():
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, context.Cause(r.Context())
	}
}

// unanswered says of an error of a request that it is none of what was asked for: the server was not reached, or has too much to do,
// or cannot work. To tell that of a daemon would be untrue, and one request more.
func unanswered(err error) bool {
	var status apierrors.APIStatus
	switch {
	case err == nil, pending.Is(err):
		return false
	case errors.As(err, &status):
		return status.Status().Code == http.StatusTooManyRequests || status.Status().Code >= http.StatusInternalServerError
	}
	return true
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
