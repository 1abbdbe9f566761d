package sight_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/control/sight"
	"github.com/holdfast-storage/holdfast/internal/absence"
)

// TestBook: a certificate that has ended counts as its host's, and one of another authority proves
// nothing but the address.
func TestBook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	own, other := authority(t, now), authority(t, now)
	b := &sight.Book{
		Running: func() map[string]int { return map[string]int{"h1": 2, "h3": 1} },
		Verify: func() (x509.VerifyOptions, bool) {
			return x509.VerifyOptions{Roots: own.Pool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, true
		},
		Now: func() time.Time { return now },
	}
	b.Refused(with(t, own, "h1", now.Add(-3*time.Hour), "10.0.0.1:4"))
	b.Refused(with(t, other, "h2", now, "10.0.0.2:4"))
	b.Refused(httptest.NewRequest(http.MethodGet, "/", http.NoBody)) // without a certificate
	now = now.Add(5 * time.Second)

	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequest(http.MethodGet, absence.Path, http.NoBody))
	var got absence.Sightings
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	h1, h2, stranger := got.Hosts["h1"], got.Hosts["h2"], got.Addresses["10.0.0.2"]
	if h1.Refused != absence.Ended || h1.Open != 2 || h1.Ago < 5 || h1.Certificate.After(now.Add(-time.Hour)) {
		t.Errorf("of h1 it saw %+v", h1)
	}
	if h2 != (absence.Seen{}) || stranger.Refused != absence.Stranger || len(got.Addresses) != 1 {
		t.Errorf("of h2 it saw %+v, and of addresses %+v", h2, got.Addresses)
	}
	if got.Hosts["h3"] != (absence.Seen{Open: 1}) {
		t.Errorf("of h3 it saw %+v", got.Hosts["h3"])
	}
}

// TestBook_broken: a client that ends connections again and again before it asks for anything does
// not trust the servers.
func TestBook_broken(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := &sight.Book{Running: func() map[string]int { return nil }, Now: func() time.Time { return now }}
	distrusts := func() bool { return b.Sightings().Addresses["10.0.0.2"].Refused == absence.Distrusts }
	for range 5 {
		b.Broken("10.0.0.2:4")
		b.Broken("127.0.0.1:4")
		now = now.Add(time.Minute) // too seldom
	}
	if distrusts() {
		t.Error("single connections count")
	}
	for range 3 {
		b.Broken("10.0.0.2:4")
		now = now.Add(5 * time.Second)
	}
	if !distrusts() || len(b.Sightings().Addresses) != 1 {
		t.Errorf("it saw %+v", b.Sightings())
	}
}

func authority(t *testing.T, now time.Time) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(now.Add(-24 * time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// with is a request with the certificate of a host that is valid for an hour.
func with(t *testing.T, a *pki.Authority, host string, from time.Time, address string) *http.Request {
	t.Helper()
	pair, err := a.Signing(time.Hour).NewPair(pki.Leaf{
		User:   access.HostUser(host),
		Groups: []string{access.GroupHosts},
	}, from)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	r.RemoteAddr, r.TLS = address, &tls.ConnectionState{PeerCertificates: []*x509.Certificate{pair.Cert}}
	return r
}
