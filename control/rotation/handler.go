package rotation

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/action"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/access"
	"github.com/holdfast-storage/holdfast/control/pki"
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
		Executor: api.ByLeader, Mode: action.Exclusive,
		Steps: []string{stepTrust, stepSign, stepDrop, stepRestart}, Timeout: 7 * 24 * time.Hour,
	}
}

// Check refuses a second rotation beside one that is under way.
func (h *Handler) Check(ctx context.Context, a *api.Action) error {
	s, _, err := h.load(ctx)
	if err != nil || s == nil || s.Action == string(a.UID) {
		return err
	}
	return fmt.Errorf("the authority is being rotated by another action already: %w", action.ErrRefused)
}

// Step carries one step on.
func (h *Handler) Step(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	s, secret, err := h.load(ctx)
	switch {
	case err != nil:
		return action.Progress{}, err
	case s == nil && step == stepTrust:
		return action.Progress{Message: "a new authority was made"}, h.begin(ctx, a)
	case s == nil: // The record of the last step's end was lost.
		return action.Progress{Done: true, Message: "the old authority is believed no more"}, nil
	case s.Action != string(a.UID):
		return action.Progress{}, fmt.Errorf("the authority is being rotated by another action: %w", action.ErrRefused)
	}
	if step == stepRestart {
		return h.restart(ctx, s, secret)
	}
	return h.reach(ctx, s, secret, map[string]Phase{stepTrust: Trust, stepSign: Sign, stepDrop: Drop}[step])
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

// rank orders the phases on the way forward.
var rank = map[Phase]int{Trust: 1, Sign: 2, Drop: 3}

// reach sets a phase, and waits until all servers and hosts are there.
func (h *Handler) reach(ctx context.Context, s *State, secret *corev1.Secret, phase Phase) (action.Progress, error) {
	if rank[s.Phase] > rank[phase] {
		return action.Progress{Done: true}, nil
	}
	if s.Phase != phase {
		if err := h.set(ctx, secret, phase); err != nil {
			return action.Progress{}, err
		}
	}
	fresh := s.New.Fingerprint()
	switch phase {
	case Trust:
		return h.wait(ctx, true, "believe the new authority", func(b pki.Belief) bool {
			return len(b.Trusted) == 2 && (b.Trusted[0] == fresh || b.Trusted[1] == fresh)
		})
	case Sign:
		return h.wait(ctx, true, "have a certificate of the new authority", func(b pki.Belief) bool { return b.Signer == fresh })
	}
	return h.wait(ctx, true, "believe the new authority alone", func(b pki.Belief) bool { return pki.Only(b.Trusted, fresh) })
}

// restart waits until the members of etcd believe the new authority alone, which they learn at their start. Then nothing is left
// of the old one, and the state is removed together with the keys in it.
func (h *Handler) restart(ctx context.Context, s *State, secret *corev1.Secret) (action.Progress, error) {
	fresh := s.New.Fingerprint()
	p, err := h.wait(ctx, false, "were restarted, one after another, so that their etcd believes the new authority alone (storage daemons go on)",
		func(b pki.Belief) bool { return pki.Only(b.Etcd, fresh) })
	if err != nil || !p.Done {
		return p, err
	}
	if err := h.Client.Delete(ctx, secret); err != nil && !apierrors.IsNotFound(err) {
		return action.Progress{}, err
	}
	p.Message = "the old authority is believed no more; kubeconfigs that were copied to other machines have to be copied anew"
	return p, nil
}

// Undo goes back to the old authority. Once it was dropped there is no way back, and what is done stays.
func (h *Handler) Undo(ctx context.Context, a *api.Action, step string) (action.Progress, error) {
	s, secret, err := h.load(ctx)
	if err != nil || s == nil || s.Action != string(a.UID) {
		return action.Progress{Done: err == nil}, err
	}
	if s.Phase == Drop {
		if step != stepTrust {
			return action.Progress{Done: true, Message: "the old authority was dropped already; the new one stays"}, nil
		}
		return action.Progress{Done: true}, client.IgnoreNotFound(h.Client.Delete(ctx, secret))
	}
	old := s.Old.Fingerprint()
	switch {
	case step == stepSign && s.Phase != Forget:
		if err := h.set(ctx, secret, Trust); err != nil {
			return action.Progress{}, err
		}
		return h.wait(ctx, true, "have a certificate of the old authority again", func(b pki.Belief) bool { return b.Signer == old })
	case step != stepTrust:
		return action.Progress{Done: true}, nil
	}
	if err := h.set(ctx, secret, Forget); err != nil {
		return action.Progress{}, err
	}
	p, err := h.wait(ctx, false, "believe the old authority alone", func(b pki.Belief) bool { return pki.Only(b.Trusted, old) })
	if err != nil || !p.Done {
		return p, err
	}
	return p, client.IgnoreNotFound(h.Client.Delete(ctx, secret))
}

// load reads the state; it is nil when no rotation is under way.
func (h *Handler) load(ctx context.Context) (*State, *corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := h.Client.Get(ctx, client.ObjectKey{Namespace: access.SystemNamespace, Name: SecretName}, secret)
	if apierrors.IsNotFound(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	s, err := Parse(secret)
	return s, secret, err
}

func (h *Handler) set(ctx context.Context, secret *corev1.Secret, phase Phase) error {
	if string(secret.Data[keyPhase]) == string(phase) {
		return nil
	}
	secret.Data[keyPhase] = []byte(phase)
	if phase == Drop {
		delete(secret.Data, keyOldKey)
	}
	if err := h.Client.Update(ctx, secret); err != nil {
		return fmt.Errorf("while going on to the phase %s: %w", phase, err)
	}
	return nil
}
