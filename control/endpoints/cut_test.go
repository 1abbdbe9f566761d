package endpoints

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

var hostLeaf = pki.Leaf{User: access.HostUser("h1"), Groups: []string{access.GroupHosts}}

// TestBelieve_cut has the power cut before every single file that a host writes when the authority is replaced. It starts each time
// with an identity that the servers believe, and servers that it believes; then it asks again, and is where it would be without the cut.
func TestBelieve_cut(t *testing.T) {
	t.Parallel()
	now := time.Now()
	old, next := newAuthority(t, now), newAuthority(t, now)
	both := []*x509.Certificate{old.Certificate(), next.Certificate()}
	address := trustServer(t, old, next)
	before := t.TempDir()
	pair, err := old.NewPair(hostLeaf, now)
	if err != nil {
		t.Fatal(err)
	}
	if err := Save(before, pki.EncodeBundle(both[:1]), pair, []string{address}); err != nil {
		t.Fatal(err)
	}
	cuts := 0
	for ; ; cuts++ {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS(before)); err != nil {
			t.Fatal(err)
		}
		restore := atomicfile.Cut(dir, cuts)
		err := opened(t, dir).believe(t.Context())
		cut := restore()
		if cut != errors.Is(err, atomicfile.ErrCut) {
			t.Fatalf("cut before file %d: %v, %v", cuts, cut, err)
		}
		if err := opened(t, dir).believe(t.Context()); err != nil {
			t.Fatalf("cut before file %d: it asks again: %v", cuts, err)
		}
		s := opened(t, dir)
		if len(s.roots) != 2 || !next.Good(s.Certificate().Cert, now) {
			t.Errorf("cut before file %d: it believes %d, and its certificate is by %s", cuts, len(s.roots), s.Certificate().Cert.Issuer)
		}
		if !cut {
			break
		}
	}
	if cuts != 2 {
		t.Errorf("it was cut %d times, want 2: whom it believes, and its certificate", cuts)
	}
}

func opened(t *testing.T, dir string) *Servers {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newAuthority(t *testing.T, now time.Time) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// trustServer is a server whose certificate the old authority signed, and that signs by the next one. It returns its address.
func trustServer(t *testing.T, old, next *pki.Authority) string {
	t.Helper()
	pair, err := old.NewPair(pki.Leaf{User: "serving", Server: true, DNS: []string{ServerName}, IPs: []net.IP{net.IPv4(127, 0, 0, 1)}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(TrustPath, TrustHandler(func() []*x509.Certificate { return []*x509.Certificate{next.Certificate(), old.Certificate()} },
		func(context.Context, string, pki.Belief) {}))
	mux.HandleFunc(access.RenewPath, func(w http.ResponseWriter, r *http.Request) {
		csr, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		public, err := pki.ParseRequest(csr)
		if err != nil {
			t.Error(err)
			return
		}
		cert, err := next.Issue(hostLeaf, public, time.Now())
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = w.Write(pki.EncodeCert(cert))
	})
	server := httptest.NewUnstartedServer(mux)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{pair.Cert.Raw}, PrivateKey: pair.Key}}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}
