package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"

	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/etcd"
	"github.com/holdfast-storage/holdfast/control/members"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// seatHandler answers servers that ask about their seats. Its methods may run at the same time.
type seatHandler struct {
	settings  *settings
	client    kubernetes.Interface
	member    *etcd.Member
	quorum    *members.Manager
	revoked   *access.Revocation
	following *follower
}

func (h *seatHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := &question{}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<10)).Decode(q); r.Method != http.MethodPost || err != nil {
		http.Error(w, "invalid request about the members of etcd", http.StatusBadRequest)
		return
	}
	answer, err := h.answer(r.Context(), q)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // An error means that the other one is gone.
}

// answer answers by the word of the quorum: without one it is an error.
func (h *seatHandler) answer(ctx context.Context, q *question) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout/2)
	defer cancel()
	m := h.member
	if err := m.Sync(ctx); err != nil {
		return nil, fmt.Errorf("no quorum to list the members of etcd: %w", err)
	}
	if gone, err := h.isGone(ctx, q); err != nil || gone {
		return &reply{Generation: h.settings.Generation, Removed: gone}, err
	}
	servers, err := endpoints.Published(ctx, h.client)
	if err != nil {
		return nil, err
	}
	if q.Standby && q.Endpoint != "" && !slices.Contains(servers, q.Endpoint) {
		// If the control plane is restored on it, hosts must find it.
		if err := endpoints.Publish(ctx, h.client, q.Name, q.Endpoint); err != nil {
			return nil, err
		}
	}
	answer := &reply{Generation: h.settings.Generation, Servers: servers}
	info, found := m.Find(q.PeerURL)
	if !found && q.NewURL != "" {
		info, found = m.Find(q.NewURL)
	}
	if q.Standby {
		if q.Full {
			h.quorum.Full(q.Name, words.Cut(q.NoRoom, 300))
		} else {
			h.quorum.Asked(q.Name, q.PeerURL, found && info.Name != "", words.Cut(q.Damaged, 300))
			info, found = m.Find(q.PeerURL)
		}
		answer.Rotation = h.following.noteStandby(ctx, h.client, q.Name, q.Belief)
	}
	switch {
	case found && info.Name == "" && q.Standby && !q.Full:
		answer.Existing = m.Existing(q.Name, q.PeerURL)
	case found:
		answer.Member = true
	}
	return answer, nil
}

// isGone says whether a standby was removed. One that joins has its Host before it gets anything
// that it could ask with. A member is not asked after: its Host may have been deleted by mistake,
// and the grace is for the quorum's manager to see to.
func (h *seatHandler) isGone(ctx context.Context, q *question) (bool, error) {
	if !q.Standby {
		return false, nil
	}
	return h.hostGone(ctx, q.Name, q.HostKey)
}

// hostGone says whether the Host of a server is gone, or another machine's; an empty key stands for
// any.
func (h *seatHandler) hostGone(ctx context.Context, name, hostKey string) (bool, error) {
	err := h.revoked.Check(ctx, name, hostKey)
	if apierrors.IsUnauthorized(err) {
		return true, nil
	}
	return false, err
}
