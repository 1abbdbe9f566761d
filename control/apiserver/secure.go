package apiserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"sync"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	x509request "k8s.io/apiserver/pkg/authentication/request/x509"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// Credentials are the server's certificate, and the authorities whose clients it believes. Both may be replaced while the
// server runs; connections that are open go on. It is safe for concurrent use; Set is called before the server is made.
type Credentials struct {
	mu        sync.Mutex
	chain     []byte
	key       []byte
	bundle    []byte
	roots     *x509.CertPool
	listeners []dynamiccertificates.Listener
}

var (
	_ dynamiccertificates.CertKeyContentProvider = &Credentials{}
	_ dynamiccertificates.CAContentProvider      = &Credentials{}
)

// NewCredentials returns Credentials that nothing was set in yet.
func NewCredentials() *Credentials { return &Credentials{} }

// Set has the server show a certificate, and believe these authorities, from the next connection on. Of clients whose authority
// is not among them, not even the next request is answered.
// cross are certificates by which those who believe another authority believe this one.
func (c *Credentials) Set(serving *pki.Pair, cross, trusted []*x509.Certificate) error {
	key, err := serving.KeyPEM()
	if err != nil {
		return err
	}
	c.mu.Lock()
	c.bundle, c.roots, c.key = pki.EncodeBundle(trusted), pki.PoolOf(trusted), key
	// The authorities are sent along for joiners, who know the fingerprint of one of them alone.
	c.chain = slices.Concat(serving.CertPEM(), pki.EncodeBundle(cross), c.bundle)
	listeners := c.listeners
	c.mu.Unlock()
	for _, l := range listeners {
		l.Enqueue()
	}
	return nil
}

// Name is for the library's log.
func (c *Credentials) Name() string { return "holdfast" }

// AddListener is called by the library, which wants to know of each change.
func (c *Credentials) AddListener(l dynamiccertificates.Listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.listeners = append(c.listeners, l)
}

// CurrentCertKeyContent is the certificate with the authorities, and its key.
func (c *Credentials) CurrentCertKeyContent() (cert, key []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chain, c.key
}

// CurrentCABundleContent is the authorities.
func (c *Credentials) CurrentCABundleContent() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bundle
}

// VerifyOptions says how the certificates of clients are verified, at each request.
func (c *Credentials) VerifyOptions() (x509.VerifyOptions, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return x509.VerifyOptions{Roots: c.roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, c.roots != nil
}

// believed are the authorities of clients. The pool is another one after each change.
func (c *Credentials) believed() *x509.CertPool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.roots
}

// secure has the server ask for certificates, and take a certificate's common name for the user's name and its
// organizations for the groups. There is no other way to log in.
func (c *Config) secure(generic *genericapiserver.Config, visits *visits) {
	generic.SecureServing = &genericapiserver.SecureServingInfo{
		Listener: c.Listener, Cert: c.Credentials, ClientCA: c.Credentials, MinTLSVersion: tls.VersionTLS13,
	}
	generic.Authentication.Authenticator = greeter{certificates(c.Credentials), visits.refused, c.Refused}
	generic.Authorization.Authorizer = c.Authorizer
}

func certificates(c *Credentials) authenticator.Request {
	return &verified{
		next:  group.NewAuthenticatedGroupAdder(x509request.NewDynamic(c.VerifyOptions, x509request.CommonNameUserConversion)),
		roots: c.believed, now: time.Now, known: map[[sha256.Size]byte]belief{},
	}
}
