package rotation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
	"github.com/holdfast-storage/holdfast/control/pki"
	"github.com/holdfast-storage/holdfast/internal/words"
)

// The Action.
const (
	KindName = "ca.rotate"
	Target   = "ca/holdfast"
)

// The steps of the Action.
const (
	stepTrust, stepSign, stepDrop, stepRestart = "trust", "sign", "drop", "restart"
)

// Handler carries out ca.rotate on the leader.
type Handler struct {
	// Client has the leader's rights, and knows Hosts, Secrets and ConfigMaps.
	Client client.Client
	// Authority returns who signs now.
	Authority func() *pki.Authority
	// Now is the server's clock.
	Now func() time.Time
}

var _ action.Handler = &Handler{}

// Kind describes ca.rotate.
func (h *Handler) Kind() action.Kind {
	return action.Kind{
		Name: KindName, Summary: "Replace the authority that signs all certificates by a new one",
		Executor: api.ByLeader,
		// Nothing that others rely on is away meanwhile. It may wait for days for a host that is off: were it exclusive, that host
		// could not even be removed, and nothing else be done.
		Mode:  action.Shared,
		Steps: []string{stepTrust, stepSign, stepDrop, stepRestart}, Timeout: 7 * 24 * time.Hour,
	}
}

// Check refuses a second rotation beside one that is under way. One whose action ended without it, because a host did not
// come back in time, is taken over.
func (h *Handler) Check(ctx context.Context, a *api.Action) error {
	s, _, err := h.load(ctx)
	if err != nil || s == nil || s.Action == string(a.UID) {
		return err
	}
	return h.abandoned(ctx, s)
}

// abandoned is nil when the action of a rotation has ended or is gone.
func (h *Handler) abandoned(ctx context.Context, s *State) error {
	var actions api.ActionList
	if err := h.Client.List(ctx, &actions, client.InNamespace(api.SystemNamespace)); err != nil {
		return fmt.Errorf("while reading the actions: %w", err)
	}
	for i := range actions.Items {
		if other := &actions.Items[i]; string(other.UID) == s.Action && !other.Status.State.Final() {
			return fmt.Errorf("the authority is being rotated already, by the action %s: %w", other.Name, action.ErrRefused)
		}
	}
	return nil
}

// Step carries one step on.
func (h *Handler) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	s, secret, err := h.load(ctx)
	switch {
	case err != nil:
		return action.Progress{}, err
	case s == nil && step == stepTrust:
		if p, err := h.removedServers(ctx); err != nil || p.WaitsFor != "" {
			return p, err
		}
		return action.Progress{Message: "a new authority was made"}, h.begin(ctx, a)
	case s == nil: // The record of the last step's end was lost.
		return action.Progress{Done: true, Message: "the old authority is not trusted any more"}, nil
	case s.Action != string(a.UID):
		return action.Progress{Message: "continuing an interrupted rotation"}, h.takeOver(ctx, a, s, secret)
	}
	if step == stepRestart {
		return h.restart(ctx, s, secret)
	}
	return h.reach(ctx, s, secret, map[string]Phase{stepTrust: Trust, stepSign: Sign, stepDrop: Drop}[step])
}

// removedServers waits for servers that were removed, and hold a member of etcd still: they would get the new authority, which is made to keep them out.
func (h *Handler) removedServers(ctx context.Context) (action.Progress, error) {
	var list corev1.ConfigMap
	if err := h.Client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: endpoints.ServersName}, &list); err != nil {
		return action.Progress{}, fmt.Errorf("while reading the list of servers: %w", err)
	}
	var removed []string
	for _, name := range slices.Sorted(maps.Keys(list.Data)) {
		switch err := h.Client.Get(ctx, client.ObjectKey{Name: name}, &api.Host{}); {
		case apierrors.IsNotFound(err):
			removed = append(removed, name)
		case err != nil:
			return action.Progress{}, fmt.Errorf("while looking for the Host of server %s: %w", name, err)
		}
	}
	if len(removed) == 0 {
		return action.Progress{}, nil
	}
	return action.Progress{
		Message: "no new authority is made while a removed server would get it", Recheck: recheck,
		WaitsFor: "these servers, whose Hosts were deleted, to release their members of etcd ('holdfast quorum' says when), or, if that was a mistake, to be restarted: " +
			words.Few(removed),
	}, nil
}

func (h *Handler) begin(ctx context.Context, a *api.Action) error {
	s, err := Begin(string(a.UID), h.Authority(), h.Now())
	if err != nil {
		return err
	}
	secret, err := s.Secret()
	if err != nil {
		return err
	}
	return h.Client.Create(ctx, secret)
}

// takeOver goes on with a rotation that was given up, from its phase. One that was on its way back begins anew, with the
// authority that was made for it.
func (h *Handler) takeOver(ctx context.Context, a *api.Action, s *State, secret *corev1.Secret) error {
	if err := h.abandoned(ctx, s); err != nil {
		return err
	}
	secret.Data[keyAction] = []byte(a.UID)
	if s.Phase == Forget {
		return h.set(ctx, s, secret, Trust)
	}
	return h.Client.Update(ctx, secret)
}

// rank orders the phases on the way forward.
var rank = map[Phase]int{Trust: 1, Sign: 2, Drop: 3}

// reach sets a phase, and waits until all servers and hosts are there.
func (h *Handler) reach(ctx context.Context, s *State, secret *corev1.Secret, phase Phase) (action.Progress, error) {
	if rank[s.Phase] > rank[phase] {
		return action.Progress{Done: true}, nil
	}
	if err := h.set(ctx, s, secret, phase); err != nil {
		return action.Progress{}, err
	}
	fresh := s.New.Fingerprint()
	switch phase {
	case Trust:
		return h.wait(ctx, s, true, "trust the new authority", func(b pki.Belief) bool {
			return len(b.Trusted) == 2 && (b.Trusted[0] == fresh || b.Trusted[1] == fresh)
		})
	case Sign:
		return h.wait(ctx, s, true, "get a certificate of the new authority", func(b pki.Belief) bool { return b.Signer == fresh })
	default:
		return h.wait(ctx, s, true, "trust only the new authority", func(b pki.Belief) bool { return pki.Only(b.Trusted, fresh) })
	}
}

// restart waits until the members of etcd trust only the new authority, which they learn at their start. Then nothing is left
// of the old one, and the state is removed together with the keys in it.
func (h *Handler) restart(ctx context.Context, s *State, secret *corev1.Secret) (action.Progress, error) {
	fresh := s.New.Fingerprint()
	p, err := h.wait(ctx, s, false, "be restarted, one after another, so that their etcd trusts only the new authority (storage daemons keep running)",
		func(b pki.Belief) bool { return pki.Only(b.Etcd, fresh) })
	if p.Done {
		p.Message = "the old authority is not trusted any more; copy kubeconfigs to other machines again"
	}
	return h.end(ctx, secret, p, err)
}

// Undo goes back to the old authority. Once it was dropped there is no way back: what is done stays, and the servers at least
// are brought to where hosts follow them.
func (h *Handler) Undo(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	s, secret, err := h.load(ctx)
	if err != nil || s == nil || s.Action != string(a.UID) {
		return action.Progress{Done: err == nil}, err
	}
	if s.Phase == Drop {
		if step != stepTrust {
			return action.Progress{Done: true, Message: "the old authority was dropped already; the new one stays"}, nil
		}
		p, err := h.wait(ctx, s, false, "trust only the new authority", func(b pki.Belief) bool { return pki.Only(b.Trusted, s.New.Fingerprint()) })
		return h.end(ctx, secret, p, err)
	}
	old := s.Old.Fingerprint()
	switch {
	case step == stepSign && s.Phase != Forget:
		if err := h.set(ctx, s, secret, Trust); err != nil {
			return action.Progress{}, err
		}
		return h.wait(ctx, s, true, "get a certificate of the old authority again", func(b pki.Belief) bool { return b.Signer == old })
	case step != stepTrust:
		return action.Progress{Done: true}, nil
	}
	if err := h.set(ctx, s, secret, Forget); err != nil {
		return action.Progress{}, err
	}
	p, err := h.wait(ctx, s, false, "trust only the old authority", func(b pki.Belief) bool { return pki.Only(b.Trusted, old) })
	return h.end(ctx, secret, p, err)
}

// end removes the state, together with the keys in it, when the last step is done.
func (h *Handler) end(ctx context.Context, secret *corev1.Secret, p action.Progress, err error) (action.Progress, error) {
	if err != nil || !p.Done {
		return p, err
	}
	return p, client.IgnoreNotFound(h.Client.Delete(ctx, secret))
}

// load reads the state; it is nil when no rotation is under way.
func (h *Handler) load(ctx context.Context) (*State, *corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := h.Client.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := Parse(secret)
	return s, secret, err
}

// set goes into a phase. What servers and hosts said before that counts no more.
func (h *Handler) set(ctx context.Context, s *State, secret *corev1.Secret, phase Phase) error {
	if s.Phase == phase {
		return nil
	}
	s.Phase, s.Generation = phase, s.Generation+1
	secret.Data[keyPhase], secret.Data[keyGeneration] = []byte(phase), generation(s.Generation)
	if phase == Drop {
		delete(secret.Data, keyOldKey)
	}
	if err := h.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("while beginning the phase %s: %w", phase, err)
	}
	return nil
}
