package apiserver

import (
	"net/http"
	"slices"
	"sync/atomic"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Starting begins the answer of a server that does not serve yet, and will within seconds.
const Starting = "this server is starting"

// gate keeps everybody but the server itself waiting until all kinds are served. Before, a client would be told that there are
// no such kinds, and believe it; an agent would be told that there are no daemons.
type gate struct{ isOpen atomic.Bool }

// guard refuses requests while the gate is closed, in a way that Kubernetes clients wait and ask again.
func (g *gate) guard(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u, ok := request.UserFrom(r.Context())
		if g.isOpen.Load() || ok && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) {
			api.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Retry-After", "1")
		http.Error(w, Starting+", and does not serve all kinds yet", http.StatusServiceUnavailable)
	})
}

// Open lets everybody in.
func (s *Server) Open() { s.gate.isOpen.Store(true) }
