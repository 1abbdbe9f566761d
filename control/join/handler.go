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
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/doors"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/words"
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
	// Refused is told of requests that are not looked at because there are too many; see
	// doors.Listener.Refused. It may be nil.
	Refused func(why, whose string)

	limitsOnce sync.Once
	limitsOf   *limits
}

// bodyTimeout is how long a request may take to arrive.
const bodyTimeout = 10 * time.Second

// ServeHTTP takes one joiner.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 30*time.Second)
	defer cancel()
	group, _ := doors.Group(r.RemoteAddr)
	done, ok := h.limits().enter(group)
	if !ok {
		h.answer(w, &response{Error: busy, Again: true}, http.StatusServiceUnavailable)
		return
	}
	defer done()
	answer, status := &response{}, http.StatusOK
	q, err := read(w, r)
	if err == nil {
		answer, err = h.join(ctx, q)
	}
	if err != nil {
		answer, status = h.refuse(q, group, err)
	}
	h.answer(w, answer, status)
}

// busy answers a joiner, which asks again by itself.
const busy = "the server has too many requests to join: try again in a minute"

func (h *Handler) answer(w http.ResponseWriter, answer *response, status int) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		h.Log.Debug("a joiner did not wait for the answer", "error", err)
	}
}

// read reads a request. Anybody may send something here, and so may not keep the server waiting for
// the rest of it.
func read(w http.ResponseWriter, r *http.Request) (*request, error) {
	q, set := &request{}, http.NewResponseController(w).SetReadDeadline
	_ = set(time.Now().Add(bodyTimeout)) // where a deadline cannot be set the connection is somebody's test
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(q)
	if r.Method != http.MethodPost || err != nil {
		return &request{}, refused("this is no request to join; both sides may be of very different versions")
	}
	_ = set(time.Time{}) // the deadline would end what follows as well
	return q, nil
}

func (h *Handler) refuse(q *request, from string, err error) (*response, int) {
	var told *refusal
	if errors.As(err, &told) && told.again {
		return &response{Error: err.Error(), Again: true}, http.StatusServiceUnavailable
	}
	if told == nil && !errors.Is(err, etcd.ErrTaken) {
		if h.limits().told.Allow() {
			h.Log.Error("a host could not join", "host", printable(q.Host), "from", from, "error", err)
		}
		const later = "the server could not do it now; its log says why"
		return &response{Error: later, Again: true}, http.StatusServiceUnavailable
	}
	if h.limits().refused(from) {
		h.Log.Warn("refused a host that wanted to join", "host", printable(q.Host), "from", from,
			"reason", words.Cut(err.Error(), mostSaid))
	}
	return &response{Error: err.Error()}, http.StatusForbidden
}

// printable is a host's name for the log: anybody may send anything as one.
func printable(name string) string {
	if len(validation.IsDNS1123Subdomain(name)) > 0 { // at most 253 characters, of which each part has 63
		return "?"
	}
	return name
}

// mostSaid bounds what is logged or answered of what somebody sent, in bytes.
const mostSaid = 512

// join checks the token first. Without a valid one the answer reveals nothing about hosts and servers.
func (h *Handler) join(ctx context.Context, q *request) (*response, error) {
	if _, err := h.record(ctx, q); err != nil {
		return nil, err
	}
	public, err := pki.ParseRequest(q.Request)
	if err != nil {
		return nil, refused("the certificate request cannot be read: %s", words.Cut(err.Error(), mostSaid))
	}
	keyID, err := pki.KeyID(public)
	if err != nil {
		return nil, err
	}
	if err := h.check(q); err != nil {
		return nil, err
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
		return refused("a host cannot be named %q (--name): %s", words.Cut(q.Host, mostSaid), strings.Join(problems, "; "))
	}
	if u, err := url.Parse(q.PeerURL); q.Role == RoleServer && (err != nil || u.Scheme != "https" || u.Port() == "") {
		return refused("%q is no address for the peers of etcd", words.Cut(q.PeerURL, mostSaid))
	}
	return nil
}

// record reads the record of the token. The answer to a missing token and to a wrong secret is the same.
func (h *Handler) record(ctx context.Context, q *request) (record, error) {
	if len(q.ID) > maxID || q.ID == "" || strings.Trim(q.ID, "0123456789abcdef") != "" {
		return record{}, refusedUnknown()
	}
	secret, err := h.Client.CoreV1().Secrets(systemNamespace).Get(ctx, recordName(q.ID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return record{}, refusedUnknown()
	}
	if err != nil {
		return record{}, fmt.Errorf("while reading the record of the token: %w", err)
	}
	r := record{secret}
	return r, r.proves(q)
}

// useToken binds the token to the joiner. Two joiners that come at once are told apart by the record's resource version.
func (h *Handler) useToken(ctx context.Context, q *request, keyID string) (record, error) {
	for {
		r, err := h.record(ctx, q)
		if err != nil {
			return record{}, err
		}
		used, err := r.usable(q, keyID, h.Now())
		if err != nil {
			return record{}, err
		}
		// A name or a place that is taken is found before the token is used up.
		if q.Role == RoleServer {
			if err := h.Free(ctx, q.Host, q.PeerURL); err != nil {
				return record{}, err
			}
		}
		if used {
			return r, nil
		}
		if err := h.Hosts.free(ctx, q.Host, keyID); err != nil {
			return record{}, err
		}
		r.use(q, keyID, h.Now())
		updated, err := h.Client.CoreV1().Secrets(systemNamespace).Update(ctx, r.Secret, metav1.UpdateOptions{})
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
