package bare

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// warmTimeout bounds Warm, which is of use only, and not needed.
const warmTimeout = 15 * time.Second

// Warm has the API server of this machine prepare each kind that a Store reads. It does so when a kind is asked for the first time,
// and takes a second or two for all of them: a server that may lead some day asks before, and acts at once when it does.
func Warm(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, warmTimeout)
	defer cancel()
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme, Mapper: newMapper()})
	if err != nil {
		return fmt.Errorf("while preparing the client of the API: %w", err)
	}
	var group errgroup.Group
	for _, list := range []client.ObjectList{
		&api.StorageClusterList{}, &api.StorageNodeList{}, &api.StorageStatusList{}, &api.DaemonList{}, &api.HostList{},
		&api.ActionList{}, &api.PlanList{}, &api.ClusterEventList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &coordinationv1.LeaseList{},
	} {
		group.Go(func() error {
			if err := c.List(ctx, list, client.Limit(1)); err != nil {
				return fmt.Errorf("while asking for a %T: %w", list, err)
			}
			return nil
		})
	}
	return group.Wait()
}
