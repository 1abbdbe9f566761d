package endpoints

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/atomicfile"
)

// TrustPath is where a server says whom to believe, to everyone who has a certificate: the authorities in PEM form, the one that
// signs first. A host says along with the question whom it believes by now; see pki.Belief.
const TrustPath = "/holdfast/v1/trust"

// TrustHandler serves the authorities. note is told what hosts say of themselves.
func TrustHandler(trusted func() []*x509.Certificate, note func(ctx context.Context, host string, b pki.Belief)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if u, ok := request.UserFrom(r.Context()); ok {
			host, isHost := access.AgentOf(u)
			if b, ok := pki.BeliefFrom(r.URL.Query()); ok && isHost {
				note(r.Context(), host, b)
			}
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(pki.EncodeBundle(trusted())) // An error means that the client is gone.
	})
}

// Trusted asks a server, which is believed already, whom to believe. The one that signs comes first.
func Trusted(ctx context.Context, config *rest.Config) ([]*x509.Certificate, error) {
	return askTrusted(ctx, config, pki.Belief{})
}

func askTrusted(ctx context.Context, config *rest.Config, mine pki.Belief) ([]*x509.Certificate, error) {
	client, err := plain(config)
	if err != nil {
		return nil, err
	}
	ask := client.Get().AbsPath(TrustPath)
	if len(mine.Trusted) > 0 {
		for name, values := range mine.Query() {
			for _, value := range values {
				ask = ask.Param(name, value)
			}
		}
	}
	text, err := ask.DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("while asking for the authorities: %w", err)
	}
	trusted, err := pki.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("while reading the authorities: %w", err)
	}
	return trusted, nil
}

// believe asks whom to believe, and follows: it writes it down, and has the certificate renewed when another authority signs
// now. The servers are told the next time.
func (s *Servers) believe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	trusted, err := askTrusted(ctx, s.config, s.Belief())
	if err != nil {
		return err
	}
	if err := s.trust(trusted); err != nil {
		return err
	}
	if s.Certificate().Cert.CheckSignatureFrom(trusted[0]) == nil {
		return nil
	}
	return s.Renew(ctx)
}

// Belief is whom this host believes, and who signed its certificate.
func (s *Servers) Belief() pki.Belief {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pki.BeliefOf(s.pair.Cert, s.roots)
}

func (s *Servers) trust(trusted []*x509.Certificate) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.EqualFunc(trusted, s.roots, (*x509.Certificate).Equal) {
		return nil
	}
	if err := atomicfile.Write(filepath.Join(s.dir, caFile), pki.EncodeBundle(trusted), 0o600); err != nil {
		return err
	}
	s.roots = trusted
	s.transport.Set(s.pair, pki.PoolOf(trusted))
	return nil
}
