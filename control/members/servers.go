package members

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
	"github.com/holdfast-storage/holdfast/control/endpoints"
)

// servers is what the API knows of the servers: their Hosts, and the list of where they serve. It
// follows the changes, so that looking again and again costs nothing. What it says may be some
// milliseconds old.
type servers struct{ cache cache.Cache }

// newServers returns servers that reads with the rights of config. No request is sent before run.
func newServers(config *rest.Config) (*servers, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{api.AddToScheme, corev1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("while registering kinds: %w", err)
		}
	}
	isServer, err := labels.NewRequirement(api.LabelServer, selection.Exists, nil)
	if err != nil {
		return nil, err
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(api.GroupVersion.WithKind("Host"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	c, err := cache.New(config, cache.Options{
		Scheme: scheme, Mapper: mapper,
		ByObject: map[client.Object]cache.ByObject{
			&api.Host{}: {Label: labels.NewSelector().Add(*isServer)},
			&corev1.ConfigMap{}: {
				Namespaces: map[string]cache.Config{api.SystemNamespace: {}},
				Field:      fields.OneTermEqualSelector("metadata.name", endpoints.ServersName),
			},
		},
	})
	return &servers{c}, err
}

// run follows the changes until ctx ends.
func (s *servers) run(ctx context.Context) error { return s.cache.Start(ctx) }

// hosts lists the Hosts that run a server. The first time it waits until they were read.
func (s *servers) hosts(ctx context.Context) ([]api.Host, error) {
	list := &api.HostList{}
	if err := s.cache.List(ctx, list); err != nil {
		return nil, fmt.Errorf("while listing the servers: %w", err)
	}
	return list.Items, nil
}

// published is the list of where the servers serve. The first time it waits until it was read.
func (s *servers) published(ctx context.Context) (*corev1.ConfigMap, error) {
	list := &corev1.ConfigMap{}
	err := s.cache.Get(ctx, client.ObjectKey{Namespace: api.SystemNamespace, Name: endpoints.ServersName}, list)
	if err != nil {
		return nil, fmt.Errorf("while reading the list of servers: %w", err)
	}
	return list, nil
}
