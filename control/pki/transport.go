package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Transport sends requests to servers with a certificate, and trusts authorities, that may be replaced while it is used. After
// that, new requests go over new connections; what runs on the old ones, such as a watch, goes on there to its end. It is
// safe for concurrent use; Set is called before the first request.
type Transport struct {
	serverName string
	dial       func(ctx context.Context, network, address string) (net.Conn, error)
	current    atomic.Pointer[http.Transport]
	// HTTP2 is set before Set, if at all.
	HTTP2 *http.HTTP2Config
}

// NewTransport returns a transport for servers whose certificates are valid for serverName. dial may be nil.
func NewTransport(serverName string, dial func(ctx context.Context, network, address string) (net.Conn, error)) *Transport {
	return &Transport{serverName: serverName, dial: dial}
}

// Set has requests sent with pair from now on, to servers that roots vouch for.
func (t *Transport) Set(pair *Pair, roots *x509.CertPool) {
	next := utilnet.SetTransportDefaults(&http.Transport{
		DialContext: t.dial,
		// Servers are reached directly: a proxy between members of a control plane would be one more thing that can fail.
		Proxy:               func(*http.Request) (*url.URL, error) { return nil, nil },
		MaxIdleConnsPerHost: 25, // as client-go has it
		HTTP2:               t.HTTP2,
		TLSClientConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, ServerName: t.serverName, RootCAs: roots,
			Certificates: []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key, Leaf: pair.Cert}},
		},
	})
	if last := t.current.Swap(next); last != nil {
		// A connection that is in use now closes when it has been idle for a while.
		last.CloseIdleConnections()
	}
}

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current.Load().RoundTrip(r)
}

// CloseIdleConnections lets connections go that nobody uses now. http.Client looks for this method.
func (t *Transport) CloseIdleConnections() { t.current.Load().CloseIdleConnections() }
