// Package livefigures is how a person asks the leader what a storage system holds and does at this
// moment. What changes every second is read when somebody looks, and is written nowhere.
//
// On bare machines a server passes the question on to the leader, and administrators and viewers
// may ask. In Kubernetes the operator answers at its port, without authentication: every pod that
// reaches the port may read figures; a NetworkPolicy can close it. A person asks by the API server
// (pods/proxy), where the account may, and else reads what the StorageStatus has.
package livefigures

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Prefix begins the path that figures are read at: Prefix + namespace/cluster.
const Prefix = "/holdfast/v1/figures/"

const (
	// fresh is how long an answer counts: those who look at one time share one question.
	fresh = time.Second
	// askTimeout bounds a question to a storage system.
	askTimeout = 2 * time.Second
)

// Ask asks a storage system. Without figures and without an error it can say no more than its
// StorageStatus has.
type Ask func(ctx context.Context, cluster types.NamespacedName) (*api.StorageFigures, error)

// Handler answers on the leader. It lets everybody in. On bare machines the API server has asked
// who the caller is; in Kubernetes nobody has, so an answer has figures only.
type Handler struct {
	// Ask asks; it is called once at a time for a cluster.
	Ask Ask

	flight singleflight.Group
	mu     sync.Mutex
	last   map[types.NamespacedName]answer
}

type answer struct {
	at      time.Time
	figures *api.StorageFigures
	err     error
}

func (a answer) isFresh() bool { return time.Since(a.at) < fresh }

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, ok := parse(r.URL.Path)
	if !ok || r.Method != http.MethodGet {
		http.NotFound(w, r)
		return
	}
	found, err, _ := h.flight.Do(cluster.String(), func() (any, error) { return h.figures(r.Context(), cluster) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	figures, _ := found.(*api.StorageFigures)
	if figures == nil {
		w.WriteHeader(http.StatusNoContent) // unlike the answer of a server that knows no such path
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(figures) // an error means that the caller is gone
}

func (h *Handler) figures(ctx context.Context, cluster types.NamespacedName) (*api.StorageFigures, error) {
	h.mu.Lock()
	had, found := h.last[cluster]
	h.mu.Unlock()
	if found && had.isFresh() {
		return had.figures, had.err
	}
	// Others may wait for the same answer when the first one is gone.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	figures, err := h.Ask(ctx, cluster)
	h.keep(cluster, answer{time.Now(), figures, err})
	return figures, err
}

// keep remembers an answer, and forgets those that do not count any more: anybody may ask for any
// name.
func (h *Handler) keep(cluster types.NamespacedName, a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last == nil {
		h.last = map[types.NamespacedName]answer{}
	}
	maps.DeleteFunc(h.last, func(_ types.NamespacedName, old answer) bool { return !old.isFresh() })
	h.last[cluster] = a
}

// Path is where the figures of a cluster are read.
func Path(cluster types.NamespacedName) string {
	return Prefix + cluster.Namespace + "/" + cluster.Name
}

func parse(path string) (cluster types.NamespacedName, ok bool) {
	rest, ok := strings.CutPrefix(path, Prefix)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 2 || parts[0] == "" || parts[1] == "" {
		return cluster, false
	}
	return types.NamespacedName{Namespace: parts[0], Name: parts[1]}, true
}
