package join

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// Handler takes joiners, on a server.
type Handler struct {
	Client kubernetes.Interface
	Hosts  *Hosts
	// Authority returns who signs now, and Trusted all that are believed.
	Authority func() *pki.Authority
	Trusted   func() []*x509.Certificate
	// EncryptionKey is handed to joining servers.
	EncryptionKey []byte
	// Free refuses a server in whose place another one runs; see etcd.Member.Free.
	Free func(ctx context.Context, name, peerURL string) error
	// Generation is handed to joining servers.
	Generation int64
	// Servers lists the servers as IP:port.
	Servers func(ctx context.Context) ([]string, error)
	// Now is the server's clock.
	Now func() time.Time
	Log *slog.Logger
}

// bodyTimeout is how long a request may take to arrive.
const bodyTimeout = 10 * time.Second

// ServeHTTP takes one joiner.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	// Anybody may send something here, and so may not keep the server waiting for the rest of it. Where a deadline cannot be
	// set the connection is somebody's test.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout))
	q := &request{}
	answer, status := &response{}, http.StatusOK
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(q)
	if r.Method != http.MethodPost || err != nil {
		err = refused("this is no request to join; both sides may be of very different versions")
	} else {
		answer, err = h.join(ctx, q)
	}
	if err != nil {
		answer, status = h.refuse(q, err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Log.Debug("a joiner did not wait for the answer", "error", err)
	}
}

func (h *Handler) refuse(q *request, err error) (*response, int) {
	var told *refusal
	switch {
	case errors.As(err, &told) && told.again:
		return &response{Error: err.Error(), Again: true}, http.StatusServiceUnavailable
	case errors.As(err, &told):
		h.Log.Warn("refused a host that wanted to join", "host", q.Host, "reason", told.message)
		return &response{Error: told.message}, http.StatusForbidden
	case errors.Is(err, etcd.ErrTaken):
		h.Log.Warn("refused a server that wanted to join", "host", q.Host, "reason", err)
		return &response{Error: err.Error()}, http.StatusForbidden
	}
	h.Log.Error("could not let a host join", "host", q.Host, "error", err)
	return &response{Error: "the server could not do it now; its log says why", Again: true}, http.StatusServiceUnavailable
}

func (h *Handler) join(ctx context.Context, q *request) (*response, error) {
	public, err := pki.ParseRequest(q.Request)
	if err != nil {
		return nil, refused("the certificate request cannot be read: %v", err)
	}
	keyID, err := pki.KeyID(public)
	if err != nil {
		return nil, err
	}
	if err := h.check(q); err != nil {
		return nil, err
	}
	if q.Role == RoleServer {
		if err := h.Free(ctx, q.Host, q.PeerURL); err != nil {
			return nil, err
		}
	}
	r, err := h.useToken(ctx, q, keyID)
	if err != nil {
		return nil, err
	}
	if err := h.register(ctx, r, keyID); err != nil {
		return nil, err
	}
	cert, err := h.Authority().Issue(HostLeaf(q.Host), public, h.Now())
	if err != nil {
		return nil, err
	}
	answer := &response{CA: pki.EncodeBundle(h.Trusted()), Certificate: pki.EncodeCert(cert)}
	if answer.Servers, err = h.Servers(ctx); err != nil {
		return nil, err
	}
	if q.Role == RoleServer {
		if answer.Server, err = h.share(ctx, q); err != nil {
			return nil, err
		}
	}
	h.Log.Info("a host joined", "host", q.Host, "role", q.Role)
	return answer, nil
}

// HostLeaf is what the certificate of a host's agent says.
func HostLeaf(host string) pki.Leaf {
	return pki.Leaf{User: access.HostUser(host), Groups: []string{access.GroupHosts}}
}

// check looks at what needs no state.
func (h *Handler) check(q *request) error {
	now := h.Now()
	if skew := q.Time.Sub(now); skew.Abs() > maxSkew {
		return refused("the clocks are %s apart: it is %s on this host and %s on the server. Set the clock, e.g. with chrony, then join again",
			skew.Abs().Round(time.Second), q.Time.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	if problems := validation.IsDNS1123Label(q.Host); len(problems) > 0 {
		return refused("a host cannot be named %q (--name): %s", q.Host, strings.Join(problems, "; "))
	}
	if u, err := url.Parse(q.PeerURL); q.Role == RoleServer && (err != nil || u.Scheme != "https" || u.Port() == "") {
		return refused("%q is no address for the peers of etcd", q.PeerURL)
	}
	return nil
}

// useToken binds the token to the joiner. Two joiners that come at once are told apart by the record's resource version.
func (h *Handler) useToken(ctx context.Context, q *request, keyID string) (record, error) {
	secrets := h.Client.CoreV1().Secrets(systemNamespace)
	for {
		if strings.ContainsFunc(q.ID, func(r rune) bool { return !strings.ContainsRune("0123456789abcdef", r) }) || q.ID == "" {
			return record{}, refusedUnknown()
		}
		secret, err := secrets.Get(ctx, recordName(q.ID), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return record{}, refusedUnknown()
		}
		if err != nil {
			return record{}, fmt.Errorf("while reading the record of the token: %w", err)
		}
		r := record{secret}
		if used, err := r.usable(q, keyID, h.Now()); used || err != nil {
			return r, err
		}
		// A name that is taken is found before the token is used up.
		if err := h.Hosts.free(ctx, q.Host, keyID); err != nil {
			return record{}, err
		}
		r.use(q, keyID, h.Now())
		updated, err := secrets.Update(ctx, r.Secret, metav1.UpdateOptions{})
		if !apierrors.IsConflict(err) {
			return record{updated}, err
		}
	}
}

// register makes the Host of the joiner that the token is bound to, and notes that it did.
func (h *Handler) register(ctx context.Context, r record, keyID string) error {
	host := r.text(keyUsedBy)
	if r.settled() {
		exists, err := h.Hosts.has(ctx, host)
		if err != nil {
			return err
		}
		if exists {
			return h.Hosts.free(ctx, host, keyID)
		}
		return refused("the host %s joined with this token at %s and was deleted since: create another token with 'holdfast token create'",
			host, r.text(keyUsedAt))
	}
	if err := h.Hosts.Register(ctx, host, keyID); err != nil {
		return err
	}
	r.Data[keyHost] = []byte(host)
	_, err := h.Client.CoreV1().Secrets(systemNamespace).Update(ctx, r.Secret, metav1.UpdateOptions{})
	return err
}

func (h *Handler) share(ctx context.Context, q *request) (*Share, error) {
	authority := h.Authority()
	key, err := authority.KeyPEM()
	if err != nil {
		return nil, err
	}
	if err := h.Hosts.MarkServer(ctx, q.Host); err != nil {
		return nil, err
	}
	return &Share{CA: authority.CertPEM(), CAKey: key, EncryptionKey: h.EncryptionKey, Generation: h.Generation}, nil
}
