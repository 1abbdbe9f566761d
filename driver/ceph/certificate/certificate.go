// Package certificate reads the certificates that gateways show, from their Secrets.
package certificate

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
	"github.com/holdfast-storage/holdfast/internal/rgw"
)

// The entries of a Secret of type kubernetes.io/tls.
const (
	Entry    = "tls.crt"
	KeyEntry = "tls.key"
)

// Certificate is what a Secret has for gateways to show.
type Certificate struct {
	// Fingerprint tells it from others.
	Fingerprint string
	NotAfter    time.Time
	// Problem is why it cannot be shown; then nothing else is set.
	Problem engine.Objection
}

// Read reads the certificates that gateways show, by the names of their Secrets. One that cannot be read just now
// is missing.
func Read(ctx context.Context, view *engine.View, secrets engine.SecretReader) map[string]Certificate {
	all := map[string]Certificate{}
	for _, s := range engine.OfKind[*api.ObjectStore](view.Resources) {
		if s.Spec.Gateways.TLS == nil {
			continue
		}
		name := s.Spec.Gateways.TLS.SecretName
		data, err := secrets.Secret(ctx, name)
		switch {
		case errors.Is(err, engine.ErrNotFound):
			all[name] = Certificate{Problem: engine.Refusal(api.ReasonDependencyNotReady,
				"Secret %s of type kubernetes.io/tls does not exist in namespace %s: create it with 'kubectl create secret tls "+
					"%s --cert FILE --key FILE'", name, s.Namespace, name)}
		case err == nil:
			all[name] = certificateOf(name, data)
		}
	}
	return all
}

// certificateOf reads a Secret. What crypto/tls says against it names no part of the key.
func certificateOf(name string, data map[string][]byte) Certificate {
	for _, entry := range []string{Entry, KeyEntry} {
		if len(data[entry]) == 0 {
			return Certificate{Problem: engine.Refusal(api.ReasonInvalidSpec, "the Secret %s has no entry %s", name, entry)}
		}
	}
	pair, err := tls.X509KeyPair(data[Entry], data[KeyEntry])
	if err != nil {
		return Certificate{Problem: engine.Refusal(api.ReasonInvalidSpec, "cannot use the certificate in Secret %s: %v",
			name, err)}
	}
	return Certificate{Fingerprint: rgw.Fingerprint(pair.Certificate[0]), NotAfter: pair.Leaf.NotAfter}
}

// ExpiresSoon is how long before its end the status of a store warns of a certificate.
const ExpiresSoon = 21 * 24 * time.Hour

// Day is the date of a time, in UTC.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
