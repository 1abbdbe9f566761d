package prepare

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/holdfast-storage/holdfast/agent/pending"
	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// Secrets reads the Secrets that daemons need. It is safe for concurrent use.
type Secrets struct {
	Client client.Reader
	// OfNode says that the agent is that of a Node of Kubernetes, to which the operator gives the
	// right to read a Secret when it sees the Daemon.
	OfNode bool
	// Timeout bounds each request.
	Timeout time.Duration
}

// Of reads the Secrets that a daemon's devices and files need, all at once: a monitor needs
// several, and the time until it starts is the time until its cluster can do anything. The error
// wraps one of package pending where a Secret may come.
func (s *Secrets) Of(ctx context.Context, d *api.Daemon) (map[string]*corev1.Secret, error) {
	secrets := map[string]*corev1.Secret{}
	for _, x := range d.Spec.Devices {
		if x.KeySecret != "" {
			secrets[x.KeySecret] = &corev1.Secret{}
		}
	}
	for _, f := range d.Spec.Files {
		for _, src := range f.Sources {
			if src.Secret != nil {
				secrets[src.Secret.Name] = &corev1.Secret{}
			}
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, into := range secrets {
		group.Go(func() error { return s.Read(ctx, d.Namespace, name, into) })
	}
	return secrets, group.Wait()
}

// Read reads one Secret. Its errors are those of Of.
func (s *Secrets) Read(ctx context.Context, namespace, name string, into *corev1.Secret) error {
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, into)
	if apierrors.IsNotFound(err) {
		return pending.For("the Secret %s, which does not exist yet", name)
	}
	if s.OfNode && apierrors.IsForbidden(err) {
		return pending.For("the right to read the Secret %s, which the operator has not given yet", name)
	}
	if err != nil {
		return fmt.Errorf("while reading the Secret %s: %w", name, err)
	}
	return nil
}

// deviceKeys are the keys that the daemon's devices are encrypted with. They are kept in memory
// alone.
func deviceKeys(d *api.Daemon, secrets map[string]*corev1.Secret) (map[string][]byte, error) {
	keys := map[string][]byte{}
	for _, x := range d.Spec.Devices {
		if x.KeySecret == "" {
			continue
		}
		key, err := entry(secrets, &api.SecretKey{Name: x.KeySecret, Key: api.KeyLUKS})
		if err != nil {
			return nil, err
		}
		keys[x.Name] = key
	}
	return keys, nil
}

// entry returns one entry of a Secret.
func entry(secrets map[string]*corev1.Secret, key *api.SecretKey) ([]byte, error) {
	value, ok := secrets[key.Name].Data[key.Key]
	if !ok {
		return nil, pending.For("the entry %s of the Secret %s, which is not there yet", key.Key, key.Name)
	}
	return value, nil
}
