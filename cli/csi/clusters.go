package csi

import (
	"cmp"
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/csi/controller"
)

// statusTimeout bounds the question for the state of a cluster.
const statusTimeout = 10 * time.Second

// statuses knows clusters by their StorageStatuses.
type statuses struct{ client client.Reader }

// clustersOf returns who knows the states of clusters; nil outside of Kubernetes.
func clustersOf(names []string, config func() (*rest.Config, error)) (controller.Clusters, error) {
	if len(names) > 0 {
		return nil, nil //nolint:nilnil // without an API no class names a cluster
	}
	c, err := config()
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("while registering kinds: %w", err)
	}
	reader, err := client.New(c, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("while preparing the client of the API: %w", err)
	}
	return statuses{reader}, nil
}

// Offline implements controller.Clusters.
func (s statuses) Offline(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	var x api.StorageStatus
	err := s.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &x)
	switch {
	case apierrors.IsNotFound(err):
		return "", controller.ErrNoCluster
	case err != nil:
		return "", fmt.Errorf("while reading storagestatus/%s: %w", name, err)
	case x.Status.Status != api.StorageOffline:
		return "", nil
	}
	return cmp.Or(x.Status.Message, "its StorageStatus does not say why"), nil
}
