package apiserver

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/authenticator"
)

// TestVerified: a certificate is verified once in a while, and again when the authorities change; never believed beyond its end; and
// one that is not good is not remembered.
func TestVerified(t *testing.T) {
	start := time.Now()
	now, good, asked := start, true, 0
	roots := x509.NewCertPool()
	v := &verified{
		next: authenticator.RequestFunc(func(*http.Request) (*authenticator.Response, bool, error) {
			asked++
			return &authenticator.Response{}, good, nil
		}),
		roots: func() *x509.CertPool { return roots }, now: func() time.Time { return now }, known: map[[sha256.Size]byte]belief{},
	}
	long, short := certUntil("long", start.Add(time.Hour)), certUntil("short", start.Add(time.Second))
	for _, tt := range []struct {
		what   string
		change func()
		cert   *x509.Certificate
		asked  int
		want   bool
	}{
		{"at first", func() {}, long, 1, true},
		{"again", func() {}, long, 0, true},
		{"another", func() {}, short, 1, true},
		{"ended", func() { now, good = start.Add(2*time.Second), false }, short, 1, false},
		{"ended, again", func() {}, short, 1, false},
		{"remembered yet", func() {}, long, 0, true},
		{"other authorities", func() { roots, good = x509.NewCertPool(), true }, long, 1, true},
		{"after a while", func() { now = now.Add(believedFor) }, long, 1, true},
		{"nobody", func() {}, nil, 1, true},
	} {
		tt.change()
		before := asked
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		if tt.cert != nil {
			r.TLS = &tls.ConnectionState{PeerCertificates: []*x509.Certificate{tt.cert}}
		}
		if _, ok, err := v.AuthenticateRequest(r); err != nil || ok != tt.want || asked-before != tt.asked {
			t.Errorf("%s: %v, %v, verified %d times; want %v and %d", tt.what, ok, err, asked-before, tt.want, tt.asked)
		}
	}
}

func certUntil(raw string, end time.Time) *x509.Certificate {
	return &x509.Certificate{Raw: []byte(raw), NotAfter: end}
}
