package endpoints

import (
	"context"
	"crypto/x509"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/holdfast-storage/holdfast/control/pki"
)

// TrustPath is where a server says whom to believe, to everyone who has a certificate: the authorities in PEM form, the one that
// signs first.
const TrustPath = "/holdfast/v1/trust"

// TrustHandler serves the authorities.
func TrustHandler(trusted func() []*x509.Certificate) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(pki.EncodeBundle(trusted())) // An error means that the client is gone.
	})
}

// Trusted asks a server, which is believed already, whom to believe. The one that signs comes first.
func Trusted(ctx context.Context, config *rest.Config) ([]*x509.Certificate, error) {
	text, err := get(ctx, config, TrustPath)
	if err != nil {
		return nil, fmt.Errorf("while asking for the authorities: %w", err)
	}
	trusted, err := pki.ParseBundle(text)
	if err != nil {
		return nil, fmt.Errorf("while reading the authorities: %w", err)
	}
	return trusted, nil
}
