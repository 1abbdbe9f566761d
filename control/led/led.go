// Package led serves what only the server that leads can answer, such as the calls of 'ceph orch':
// a server that does not lead passes them on to it.
package led

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// forwarded is set on requests that a server passes on. The one that receives it passes it on no
// more.
const forwarded = "Holdfast-Forwarded"

// findTimeout bounds the look for the leader.
const findTimeout = 2 * time.Second

// NoLeader is the word of a server that knows no leader that answers.
const NoLeader = "no server leads at the moment; the next leader takes over within seconds, so try again"

// Leader is what the server that leads answers with. The zero value leads nowhere. It is safe for
// concurrent use.
type Leader struct{ handler atomic.Pointer[http.Handler] }

// Lead has this server answer by h until the function that it returns is called.
func (l *Leader) Lead(h http.Handler) (end func()) {
	l.handler.Store(&h)
	return func() { l.handler.CompareAndSwap(&h, nil) }
}

// Handler serves what the leader answers on one server. A refusal is written as package orch/wire
// has it.
type Handler struct {
	// Leader is this server's.
	Leader *Leader
	// Server is the name of this server.
	Server string
	// Client reads, with all rights, which server leads and where it is.
	Client kubernetes.Interface
	// Transport reaches the other servers as one of them.
	Transport http.RoundTripper
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if own := h.Leader.handler.Load(); own != nil {
		(*own).ServeHTTP(w, r)
		return
	}
	if r.Header.Get(forwarded) != "" {
		refuse(w, NoLeader)
		return
	}
	address, err := h.find(r.Context())
	if err != nil {
		refuse(w, err.Error())
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: h.Transport,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.Out.URL.Scheme, p.Out.URL.Host, p.Out.Host = "https", address, ""
			p.Out.Header.Set(forwarded, h.Server)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			refuse(w, fmt.Sprintf("the server that leads, %s, does not answer: %v; try again", address, err))
		},
	}
	proxy.ServeHTTP(w, r)
}

func refuse(w http.ResponseWriter, why string) {
	wire.Refuse(w, http.StatusServiceUnavailable, syscall.EAGAIN, why)
}

// find is where the server that leads serves, as IP:port.
func (h *Handler) find(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, findTimeout)
	defer cancel()
	cached := metav1.GetOptions{ResourceVersion: "0"}
	lease, err := h.Client.CoordinationV1().Leases(api.SystemNamespace).Get(ctx, api.LeaderLease, cached)
	if err != nil {
		return "", fmt.Errorf("while looking which server leads: %w", err)
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	if name == "" || name == h.Server {
		return "", errors.New(NoLeader)
	}
	servers, err := h.Client.CoreV1().ConfigMaps(api.SystemNamespace).Get(ctx, endpoints.ServersName, cached)
	if err != nil {
		return "", fmt.Errorf("while reading where server %s is: %w", name, err)
	}
	if servers.Data[name] == "" {
		return "", fmt.Errorf("server %s leads, but is not on the list of servers; try again", name)
	}
	return servers.Data[name], nil
}
