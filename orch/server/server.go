// Package server answers the calls of 'ceph orch' on the leader.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/wire"
)

// Store is what calls are answered from. An engine.Store is one.
type Store interface {
	// View is a cluster as the leader's caches have it; see engine.Store.
	View(ctx context.Context, cluster types.NamespacedName) (*engine.View, error)
}

// Handler serves the calls below wire.Prefix. It lets everybody in: the server of the control plane
// has asked who the caller is. It is safe for concurrent use.
type Handler struct {
	Store Store
	// Leader is the name of this leader.
	Leader string
	Log    *slog.Logger
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cluster, method, ok := wire.Parse(r.URL.Path)
	if !ok || r.Method != http.MethodPost {
		wire.NoCall(w, r)
		return
	}
	body, ok := wire.ReadCall(w, r)
	if !ok {
		return
	}
	result, err := h.answer(r.Context(), cluster, method, body)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(result); err == nil {
			wire.Write(w, http.StatusOK, wire.Reply{Result: text})
			return
		}
	}
	var refusal *answer.Error
	if !errors.As(err, &refusal) {
		h.Log.Warn("cannot answer a call of ceph orch", "cluster", cluster.String(), "method", method, "error", err)
		refusal = &answer.Error{Errno: -int(syscall.EAGAIN), Message: "the leader of Holdfast cannot answer: " + err.Error()}
	}
	wire.Write(w, http.StatusUnprocessableEntity, wire.Reply{Error: refusal.Message, Errno: refusal.Errno})
}

func (h *Handler) answer(ctx context.Context, cluster types.NamespacedName, method string, args []byte) (any, error) {
	if method == wire.MethodCapabilities {
		return answer.Methods(), nil
	}
	view, err := h.Store.View(ctx, cluster)
	if errors.Is(err, engine.ErrNotFound) || err == nil && view.Cluster.Spec.Type != api.StorageCeph {
		return nil, answer.Errorf("Holdfast has no Ceph cluster %s", cluster)
	}
	if err != nil {
		return nil, err
	}
	return answer.Answer(method, &answer.Call{View: view, Now: time.Now(), Leader: h.Leader, Args: args})
}
