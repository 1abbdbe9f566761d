// Package rotation changes the authority that all certificates hang on, while everything runs: the new one is believed first,
// then it signs, then the old one is believed no more. Each step waits for every server and every host.
//
// The state lies in a Secret, which is encrypted in etcd and can be read by administrators and servers alone; it holds the keys of
// both authorities until the old one is dropped. Servers follow the state and say in a ConfigMap how far they are; what hosts say
// is an annotation on their Hosts.
package rotation

import (
	"crypto/x509"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/pki"
)

// Names of what a rotation is kept in, below api.SystemNamespace.
const (
	// SecretName is the Secret that holds the state; it is there only during a rotation.
	SecretName = "ca-rotation"
	// BeliefsName is the ConfigMap in which each server says whom it believes, by its name.
	BeliefsName = "trust"
	// Annotation is on each Host, and says whom the host believes. It is written during a rotation alone.
	Annotation = "holdfast.io/trust"
)

// Phase is how far a rotation is.
type Phase string

// The phases. A rotation that is undone goes from Sign back to Trust, and from Trust to Forget.
const (
	// Trust: the old authority signs, and both are believed.
	Trust Phase = "Trust"
	// Sign: the new authority signs, and both are believed.
	Sign Phase = "Sign"
	// Drop: the new authority alone is believed. There is no way back.
	Drop Phase = "Drop"
	// Forget: the old authority alone is believed, as before.
	Forget Phase = "Forget"
)

// State is a rotation.
type State struct {
	// Action is the UID of the Action that carries it out.
	Action string
	Phase  Phase
	// Generation counts the phases that were gone into, the way back included.
	Generation int64
	// Old is nil once it was dropped.
	Old, New *pki.Authority
	// Cross is the new authority's certificate, signed by the old one. It comes along with certificates of etcd's members,
	// which learn whom to believe at their start alone.
	Cross *x509.Certificate
}

// Begin makes a new authority in the place of old.
func Begin(action string, old *pki.Authority, now time.Time) (*State, error) {
	next, err := pki.NewAuthority(now)
	if err != nil {
		return nil, err
	}
	cross, err := old.Cross(next, now)
	if err != nil {
		return nil, err
	}
	return &State{Action: action, Phase: Trust, Generation: 1, Old: old, New: next, Cross: cross}, nil
}

// Signer is who signs in this phase.
func (s *State) Signer() *pki.Authority {
	if s.Phase == Sign || s.Phase == Drop {
		return s.New
	}
	return s.Old
}

// Trusted are who is believed in this phase, the signer first.
func (s *State) Trusted() []*x509.Certificate {
	trusted := []*x509.Certificate{s.Signer().Certificate()}
	switch s.Phase {
	case Trust:
		trusted = append(trusted, s.New.Certificate())
	case Sign:
		trusted = append(trusted, s.Old.Certificate())
	case Drop, Forget: // the signer alone
	}
	return trusted
}

// Keys of the Secret.
const (
	keyAction, keyPhase = "action", "phase"
	keyGeneration       = "generation"
	keyOld, keyOldKey   = "old.crt", "old.key"
	keyNew, keyNewKey   = "new.crt", "new.key"
	keyCross            = "cross.crt"
)

// Secret writes the state.
func (s *State) Secret() (*corev1.Secret, error) {
	oldKey, err := s.Old.KeyPEM()
	if err != nil {
		return nil, err
	}
	newKey, err := s.New.KeyPEM()
	if err != nil {
		return nil, err
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: api.SystemNamespace, Name: SecretName},
		Type:       "holdfast.io/ca-rotation",
		Data: map[string][]byte{
			keyAction: []byte(s.Action), keyPhase: []byte(s.Phase), keyGeneration: generation(s.Generation), keyCross: pki.EncodeCert(s.Cross),
			keyOld: s.Old.CertPEM(), keyOldKey: oldKey, keyNew: s.New.CertPEM(), keyNewKey: newKey,
		},
	}, nil
}

func generation(n int64) []byte { return strconv.AppendInt(nil, n, 10) }

// GenerationOf reads State.Generation alone; it is 0 where there is no state.
func GenerationOf(secret *corev1.Secret) int64 {
	if secret == nil {
		return 0
	}
	n, _ := strconv.ParseInt(string(secret.Data[keyGeneration]), 10, 64) // it is written by this package alone
	return n
}

// Parse reads the state.
func Parse(secret *corev1.Secret) (s *State, err error) {
	data := secret.Data
	s = &State{Action: string(data[keyAction]), Phase: Phase(data[keyPhase]), Generation: GenerationOf(secret)}
	if s.New, err = pki.ParseAuthority(data[keyNew], data[keyNewKey]); err == nil {
		s.Cross, err = pki.ParseCert(data[keyCross])
	}
	if err == nil && s.Phase != Drop {
		s.Old, err = pki.ParseAuthority(data[keyOld], data[keyOldKey])
	}
	if err != nil {
		return nil, fmt.Errorf("while reading the state of the authority's rotation: %w", err)
	}
	return s, nil
}
