package join

import (
	"crypto/ecdsa"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// Renewer gives hosts a new certificate for the one that they come with: for the same host and key, with the same rights. It
// is for requests whose certificate was verified, and found not to be revoked.
type Renewer struct {
	// Authority returns who signs now.
	Authority func() *pki.Authority
	// Now is the server's clock.
	Now func() time.Time
	Log *slog.Logger
}

// ServeHTTP takes a signing request in PEM form, and answers with a certificate.
func (h *Renewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	text, err := h.renew(r, http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-pem-file")
	_, _ = w.Write(text) // An error means that the host is gone; it asks again.
}

func (h *Renewer) renew(r *http.Request, body io.Reader) ([]byte, error) {
	u, ok := apirequest.UserFrom(r.Context())
	if !ok || r.Method != http.MethodPost {
		return nil, errors.New("invalid request for a new certificate")
	}
	host, ok := access.AgentOf(u)
	if !ok {
		return nil, errors.New("only hosts can renew their certificates here")
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return nil, err
	}
	public, err := pki.ParseRequest(text)
	if err != nil {
		return nil, err
	}
	if !public.(*ecdsa.PublicKey).Equal(r.TLS.PeerCertificates[0].PublicKey) {
		return nil, errors.New("a host keeps the key that it joined with: for another key, remove the host (holdfast host remove) and join it again")
	}
	cert, err := h.Authority().Issue(HostLeaf(host), public, h.Now())
	if err != nil {
		return nil, err
	}
	h.Log.Info("renewed the certificate of a host", "host", host, "until", cert.NotAfter)
	return pki.EncodeCert(cert), nil
}
