package store

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/engine"
)

// MakeSecret creates the Secret if there is none of this name. One of this name that is not the
// cluster's is an error: it must not be used as a key, nor be written over.
func (s *Store) MakeSecret(ctx context.Context, cluster *api.StorageCluster, want engine.SecretWant,
	data func() (map[string][]byte, error),
) error {
	name := types.NamespacedName{Namespace: cluster.Namespace, Name: want.Name}
	var have corev1.Secret
	if err := s.cache.Get(ctx, name, &have); err == nil {
		return ownSecret(cluster, &have)
	}
	values, err := data()
	if err != nil {
		return err
	}
	err = s.create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: name.Namespace, Name: name.Name, Annotations: want.Annotations,
			Labels: engine.LabelsFor(cluster, engine.ComponentSecret),
		},
		Type: corev1.SecretTypeOpaque, Data: values,
	})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	if err := s.api.Get(ctx, name, &have); err != nil {
		return err
	}
	return ownSecret(cluster, &have)
}

// RemoveSecret deletes a Secret of the cluster.
func (s *Store) RemoveSecret(ctx context.Context, cluster types.NamespacedName, name string) error {
	at := types.NamespacedName{Namespace: cluster.Namespace, Name: name}
	var have corev1.Secret
	if err := s.cache.Get(ctx, at, &have); err != nil || have.Labels[api.LabelCluster] != cluster.Name {
		return client.IgnoreNotFound(err)
	}
	return remove[corev1.Secret](ctx, s, at)
}

func ownSecret(cluster *api.StorageCluster, have *corev1.Secret) error {
	if owner := have.Labels[api.LabelCluster]; owner != cluster.Name {
		return fmt.Errorf("secret %s exists but does not belong to cluster %s (label %s is %q): rename or delete it",
			have.Name, cluster.Name, api.LabelCluster, owner)
	}
	return nil
}

// secretReader reads the Secrets of one cluster from the API itself: what they hold is in no cache.
type secretReader struct {
	api     client.Reader
	cluster types.NamespacedName
}

// Secrets reads the Secrets of a cluster.
func (s *Store) Secrets(cluster types.NamespacedName) engine.SecretReader {
	return secretReader{s.api, cluster}
}

// Secret returns what the named Secret holds.
func (r secretReader) Secret(ctx context.Context, name string) (map[string][]byte, error) {
	var secret corev1.Secret
	if err := r.api.Get(ctx, types.NamespacedName{Namespace: r.cluster.Namespace, Name: name}, &secret); err != nil {
		return nil, notFound(err, "secret %s of cluster %s", name, r.cluster)
	}
	// Certificates, and tokens of other clusters, are their owners', and named by resources.
	if secret.Labels[api.LabelCluster] != r.cluster.Name && secret.Type != corev1.SecretTypeTLS && secret.Type != api.SecretTypeMirrorToken {
		return nil, fmt.Errorf("secret %s does not belong to cluster %s: %w", name, r.cluster, engine.ErrNotFound)
	}
	return secret.Data, nil
}

func (s *Store) dropSecrets(ctx context.Context, cluster types.NamespacedName) error {
	err := s.api.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{api.LabelCluster: cluster.Name})
	if err != nil {
		return fmt.Errorf("while removing secrets: %w", err)
	}
	return nil
}
