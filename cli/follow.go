package cli

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/url"
	"reflect"
	"sync"

	"k8s.io/client-go/rest"
)

// follower reaches the API as the kubeconfig says now. A server writes the administrator's anew when the authority was rotated, or when another server has to
// be asked, and a command that waits for an hour goes on by that. Several goroutines may use it.
type follower struct {
	// load reads the kubeconfig.
	load func() (*rest.Config, error)
	// first is what requests are made for, and sends them before the kubeconfig changes.
	first reach

	mu  sync.Mutex
	now reach
}

// reach is how the API is reached by one content of the kubeconfig.
type reach struct {
	config *rest.Config
	by     http.RoundTripper
}

func newFollower(load func() (*rest.Config, error), first reach) *follower {
	return &follower{load: load, first: first, now: first}
}

// RoundTrip sends a request again, once, when the API did not take it and the kubeconfig is another one now.
func (f *follower) RoundTrip(r *http.Request) (*http.Response, error) {
	now := f.current()
	response, err := f.send(r, now)
	if !untaken(response, err) {
		return response, err
	}
	again, ok := repeated(r)
	if !ok || !f.reload(now) {
		return response, err
	}
	if response != nil {
		response.Body.Close()
	}
	return f.send(again, f.current())
}

func (f *follower) current() reach {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// reload reads the kubeconfig, and says whether it is another one than the one that a request was sent by.
func (f *follower) reload(used reach) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.now.config != used.config {
		return true // another request has seen it
	}
	config, err := f.load()
	if err != nil || same(config, used.config) {
		return false
	}
	by, err := rest.TransportFor(config)
	if err != nil {
		return false
	}
	f.now = reach{config, by}
	return true
}

// same says whether two kubeconfigs reach the same server in the same way.
func same(a, b *rest.Config) bool {
	a, b = rest.CopyConfig(a), rest.CopyConfig(b)
	a.Dial, b.Dial = nil, nil // of functions nobody can say so
	return reflect.DeepEqual(a, b)
}

// send sends a request, which was made for the first kubeconfig, by what the kubeconfig holds now: to another server if it was to that of the first one.
func (f *follower) send(r *http.Request, now reach) (*http.Response, error) {
	if now.config == f.first.config {
		return now.by.RoundTrip(r)
	}
	sent := r.Clone(r.Context())
	sent.Header.Del("Authorization")
	from, err1 := url.Parse(f.first.config.Host)
	to, err2 := url.Parse(now.config.Host)
	if err1 == nil && err2 == nil && sent.URL.Host == from.Host && to.Host != "" {
		sent.URL.Scheme, sent.URL.Host, sent.Host = to.Scheme, to.Host, ""
	}
	return now.by.RoundTrip(sent)
}

// untaken says whether a request came to nobody who would have done what it asks for: nobody listened, who did is none of ours, or we are none of theirs.
func untaken(response *http.Response, err error) bool {
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	return err == nil && response.StatusCode == http.StatusUnauthorized ||
		errors.As(err, &certificate) || errors.As(err, &dial) && dial.Op == "dial"
}

// repeated is a request that was sent before, with its body from the beginning.
func repeated(r *http.Request) (*http.Request, bool) {
	again := r.Clone(r.Context())
	if r.Body == nil {
		return again, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	again.Body = body
	return again, err == nil
}
