// Package server answers the calls of 'ceph orch' on the leader.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/orch/answer"
	"github.com/holdfast-storage/holdfast/orch/wire"
	"github.com/holdfast-storage/holdfast/orch/write"
)

// Clients are clients in the name of 'ceph orch' of clusters. It is safe for concurrent use.
type Clients struct {
	// InNameOf makes one.
	InNameOf func(user string, groups []string) (client.Client, error)

	mu  sync.Mutex
	all map[types.NamespacedName]client.Client
}

// Of is the client in the name of 'ceph orch' of a cluster.
func (c *Clients) Of(cluster types.NamespacedName) (client.Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if have := c.all[cluster]; have != nil {
		return have, nil
	}
	made, err := c.InNameOf(wire.User(cluster), wire.Groups())
	if err != nil {
		return nil, err
	}
	if c.all == nil {
		c.all = map[types.NamespacedName]client.Client{}
	}
	c.all[cluster] = made
	return made, nil
}

// answerWithin bounds the answer to a call. The agents wait a little longer (agent/relay), and the
// module in ceph-mgr longer still.
const answerWithin = 2300 * time.Millisecond

// Store is what calls are answered from. An engine.Store is one.
type Store interface {
	// View is a cluster as the leader's caches have it; see engine.Store.
	View(ctx context.Context, cluster types.NamespacedName) (*engine.View, error)
}

// Handler serves the calls below wire.Prefix. It lets everybody in: the server of the control plane
// has asked who the caller is. It is safe for concurrent use.
type Handler struct {
	Store Store
	// Home and Clients carry out calls that change something. Nil: there are no such calls.
	Home    write.Home
	Clients *Clients
	// Leaving is that of a write.Call.
	Leaving func(*engine.View) write.Leaving
	// Leader is the name of this leader.
	Leader string
	Log    *slog.Logger

	rows answer.Rows
}

// New returns a Handler that carries out calls that change something, too: it plans them with
// asked.
func New(store Store, asked write.Asked, clients *Clients, leader string, log *slog.Logger) *Handler {
	return &Handler{Store: store, Home: home{store, asked}, Clients: clients, Leader: leader, Log: log}
}

// home is what calls that change something are carried out with.
type home struct {
	Store
	write.Asked
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
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	result, err := h.answer(ctx, cluster, method, body, wire.CallID(r.Header))
	if err == nil {
		var text json.RawMessage
		if text, err = encode(result); err == nil {
			wire.WriteResult(w, text)
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

// encode makes JSON of a result, where it is none. To encode JSON would take as long again.
func encode(result any) (json.RawMessage, error) {
	if text, done := result.(json.RawMessage); done {
		return text, nil
	}
	return json.Marshal(result)
}

// methods are all that there are.
func (h *Handler) methods() []string {
	all := answer.Methods()
	if h.Home != nil {
		all = append(all, write.Methods()...)
	}
	slices.Sort(all)
	return all
}

func (h *Handler) answer(
	ctx context.Context, cluster types.NamespacedName, method string, args []byte, id string,
) (result any, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			h.Log.Error("panic while answering ceph orch", "method", method, "panic", fault,
				"stack", string(debug.Stack()))
			result, err = nil, fmt.Errorf("fault in Holdfast (see the log of the leader): %v", fault)
		}
	}()
	view, err := h.Store.View(ctx, cluster)
	if errors.Is(err, engine.ErrNotFound) || err == nil && view.Cluster.Spec.Type != api.StorageCeph {
		return nil, answer.Errorf("Holdfast has no Ceph cluster %s", cluster)
	}
	if err != nil {
		return nil, err
	}
	if method == wire.MethodState {
		return wire.State{Methods: h.methods(), Progress: answer.Progress(view, time.Now())}, nil
	}
	call := answer.Call{View: view, Now: time.Now(), Leader: h.Leader, Args: args, Rows: &h.rows}
	if h.Home == nil || !write.Knows(method) {
		return answer.Answer(method, &call)
	}
	c, err := h.Clients.Of(cluster)
	if err != nil {
		return nil, err
	}
	w := write.Call{Call: call, Home: h.Home, Leaving: h.Leaving, Client: c, ID: id, Log: h.Log}
	return write.Do(ctx, method, &w)
}
